"""Machines of one's own, which are reached by SSH: a file lists them, and each is given to one attempt at a time."""
