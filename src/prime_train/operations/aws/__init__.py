"""The parts of a deployment to AWS."""
