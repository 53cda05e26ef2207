"""Rules about the machine that is asked for: GPUs, their memory, disk and host memory."""
