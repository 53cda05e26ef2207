"""What runs on a pod: starts the training, watches it and reports back."""
