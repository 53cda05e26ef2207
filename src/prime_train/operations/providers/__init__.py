"""Adds providers of machines, checks their credentials without renting anything, and says which are set up."""
