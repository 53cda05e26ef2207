"""The outside, one technology a module, each behind a port of `prime_train.ports`."""
