"""Admission of requests before the webhook: authentication, the parsing of valid heartbeats, and the format of every response.

All of it loads in some milliseconds, because none of it needs the pydantic models that report what is wrong with a body: a Lambda that only
receives heartbeats needs nothing else. `prime_train.control_plane.webhook` uses the same admission, and reads all other requests.
"""
