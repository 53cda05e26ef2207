"""The machine's GPUs: reading them through the driver, judging their health, and reporting them in heartbeats."""
