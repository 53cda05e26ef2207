"""Training scripts that save, report and resume in the twelve most usual ways."""
