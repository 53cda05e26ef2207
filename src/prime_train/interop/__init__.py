"""To and from other tools: exports, imports, and the bundle that reproduces a run."""
