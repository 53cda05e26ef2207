"""A small real training run, for showing and testing the supervisor on any machine.

`python -m prime_train.demo.train` trains a character-level neural language model
(Bengio et al., "A Neural Probabilistic Language Model", 2003) with numpy alone.

The text it learns, `corpus.txt` (54,590 ASCII characters), is the United States
Declaration of Independence (1776) followed by the United States Constitution with
its Amendments I to XXVII. Both are in the public domain. They were taken from the
Debian package `miscfiles` 1.5+dfsg-4 (`/usr/share/state/us-declaration.gz` and
`/usr/share/state/us-constitution.gz`), whose copyright file lists the two, added by
Debian under `debian/addons/`, as public domain. The only changes: trailing blanks
removed, runs of blank lines cut to one, the two texts joined.
"""
