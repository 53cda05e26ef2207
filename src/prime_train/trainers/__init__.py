"""The kinds of trainers: how each starts, saves, resumes, reports and fails, with its own rules."""
