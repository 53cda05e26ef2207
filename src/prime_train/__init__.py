"""Train models on rented accelerator pods, with rules that decide what runs where."""

__version__ = "0.1.0"
