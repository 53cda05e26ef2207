"""Estimates the GPU memory of a training or an inference server, phase by phase."""
