"""A trainer that trains nothing, and saves, resumes and reports its steps as the trainer of each kind does,
and the faults it can have.
"""
