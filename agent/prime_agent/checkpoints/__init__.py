"""The path of a checkpoint from the trainer's folder to a manifest in the bucket: completeness, upload and clean-up."""
