"""Random histories on real processes: a control plane, watchers, machines and trainers, and faults of every
kind between them.
"""
