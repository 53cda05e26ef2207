"""Admission of requests: authentication over the bytes as they arrived, and the format of every response. Pure, and without a framework."""
