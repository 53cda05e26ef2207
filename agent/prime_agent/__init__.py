"""The agent on a pod: it starts the training, watches it and reports to the control plane."""
