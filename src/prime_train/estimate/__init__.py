"""Formulas and tables: GPUs, models, memory, time, dollars."""
