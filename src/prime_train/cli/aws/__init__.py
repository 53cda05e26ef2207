"""Commands for the control plane on AWS: deploy, check and delete it."""
