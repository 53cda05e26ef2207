"""The commands that the GitHub Actions call: input comes from environment variables and the event file, results go to step outputs and the
job summary."""
