"""What a user can ask for, as plain functions: values in, values out, nothing printed."""
