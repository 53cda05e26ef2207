"""The output of findings about configs, and the check shared by `validate` and `lint`."""
