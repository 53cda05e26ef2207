"""The rights of callers: signatures of requests, links to the dashboard, and the secrets and bucket keys that a run may have."""
