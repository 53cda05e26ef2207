"""Adapters to external systems: one module or package per technology, each behind a port of `prime_train.ports`."""
