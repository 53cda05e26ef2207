"""From the trainer's folder to a manifest in the bucket: which checkpoint is complete, how it is uploaded, and what may go."""
