"""The store in one DynamoDB table, for a control plane without a permanently running machine.

Layout. Two strings are the key of every item:

    LEASE#<shard> / <run>       lease of an awake run, with the run's version, pace and next check: small, written by every heartbeat
    RUNS#<shard>  / <run>       the run as JSON; for a run at rest, also the content of its lease item
    RUN#<run>     / EV#<n>      history, one item per save, numbered by the run's version; expires (`exp`)
    OUT           / <place>     an alert that waits to be sent, in order of time, with the notifiers that are done with it (`sent_by`)
    TOLD#<key>    / TOLD        records that an alert with this key was put into the outbox; expires (`exp`)
    CTL           / WATCH       state shared by the watchers

A run is awake while it has a next check (`next_check_s`) or its lease is open. Only then does it have a lease item, so the cost of a
sweep, which reads all of them, depends on the awake runs and not on all runs ever created. A fence or a save may put a run to rest or wake
it; a `wake` wakes it.

One heartbeat is one write of one unit (1 KiB). No index contains an attribute that a heartbeat changes: an index on deadlines would triple
that cost, and could not be read consistently. Waking a run by a heartbeat with news changes only the item that the heartbeat writes, and a
fence needs to check only that item.

Consistency. Reads are strongly consistent. A run is stored in two items that are not read at the same moment; both hold the version at
which the JSON was saved (`saved_version`), and a pair with different versions is read again. `list_runs` is consistent for each run, not
across runs. A change of both items is one transaction with a token, so that it takes effect once even if its response is lost.
"""
