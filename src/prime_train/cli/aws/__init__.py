"""Verbs for the control plane on AWS: deploy it, check it, take it away."""
