"""The implementations that a config can name, one row each: kinds of trainers, and providers of machines.

A row names the code that implements it and does not import it, so reading a config loads none of them. The spec, its JSON schema and the
findings of `validate` take the allowed names from these rows.
"""
