"""Estimates what a training needs and costs: GPU memory, step time, dollars, and the best machine for it."""
