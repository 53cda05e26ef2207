"""Makes a run's config of the file of another tool: a SkyPilot task, a Kubernetes Job, a dstack task or a Slurm script. Whatever cannot be
carried over is listed with its line and the reason."""
