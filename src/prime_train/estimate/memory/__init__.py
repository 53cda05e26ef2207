"""How much GPU memory a training or an inference server takes, phase by phase."""
