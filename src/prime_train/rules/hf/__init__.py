"""Rules about the Trainer of transformers and TRL."""
