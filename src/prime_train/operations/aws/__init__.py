"""What a deployment to AWS is made of."""
