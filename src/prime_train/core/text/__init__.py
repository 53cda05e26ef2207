"""Texts that people and machines wrote: made safe, measured, parsed and formatted."""
