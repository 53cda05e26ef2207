"""How values become words: amounts, sizes, times, commands, what is redacted, and errors as they are
explained to a user.
"""
