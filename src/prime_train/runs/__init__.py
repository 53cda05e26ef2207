"""The life of a run, pure: its record, what machines tell of it, verdict, decision, change, ledger, budget;
and the port of its store.
"""
