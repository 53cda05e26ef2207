"""The operations offered to users, as plain functions that take and return values and print nothing."""
