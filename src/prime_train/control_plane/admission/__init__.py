"""What stands before the webhook: who asks, and what for; the heartbeats that are surely right; and the form of every answer.

All of it loads in some milliseconds, for none of it needs the models that say what is wrong with a body: a Lambda that only hears
heartbeats needs no more than this. `prime_train.control_plane.webhook` goes through the same door, and reads everything else.
"""
