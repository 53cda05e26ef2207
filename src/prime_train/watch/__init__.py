"""The loop that keeps runs alive: observe, judge, decide, save, carry out; sweeps, clean-up, the outbox of
alerts.
"""
