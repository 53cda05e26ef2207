"""Rules about the requested machine: GPUs, GPU memory, disk and host memory."""
