"""What a training needs and what it costs: GPU memory, step time, dollars, and the machine to take."""
