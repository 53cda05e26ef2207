"""Conventions of each trainer library: the names of its checkpoints, and the arguments with which it resumes.

prime-rl, whose conventions depend on its configs, has a package of its own.
"""
