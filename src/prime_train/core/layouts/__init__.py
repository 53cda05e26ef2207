"""What each library of trainers decides itself: the names of its checkpoints, and the arguments with which it resumes.

prime-rl, whose configs decide much more, has a package of its own.
"""
