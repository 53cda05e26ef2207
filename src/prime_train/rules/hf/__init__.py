"""Rules about the Trainer of transformers and about TRL."""
