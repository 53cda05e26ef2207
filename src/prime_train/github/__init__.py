"""GitHub: jobs, comments, checks of pull requests, and what sets a repository up."""
