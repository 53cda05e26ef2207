"""What is done after training: the steps under `after` in a config."""
