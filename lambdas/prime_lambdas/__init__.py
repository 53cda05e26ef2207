"""Thin entry points that run the control plane on AWS Lambda."""
