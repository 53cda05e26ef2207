"""The store in one DynamoDB table: for a control plane of which no machine stays up.

Layout. Two strings are the key of every item:

    LEASE#<shard> / <run>       an awake run's lease, with the run's version, pace and when it is due: small, written by every heartbeat
    RUNS#<shard>  / <run>       the run as JSON; of a run at rest, also what its lease item had
    RUN#<run>     / EV#<n>      what happened, one item a save, numbered by the run's version; goes after some time (`exp`)
    OUT           / <place>     an alert that waits to be sent, in the order of time, with the notifiers that are done with it (`sent_by`)
    TOLD#<key>    / TOLD        that an alert with this key was told; goes after some time (`exp`)
    CTL           / WATCH       the memory of the watchers

A run is awake while it has something left to do (`next_check_s`) or its lease is open. Only then is there a lease item, so a sweep, which
reads all of them, costs by the runs that live and not by all that ever were. A fence and a save may lead from one to the other, and a
`wake` back.

One heartbeat is one write of one unit (1 KiB). Nothing that a heartbeat changes is in an index: an index on deadlines would triple that,
and could not be read consistently. What a heartbeat with news wakes lies on the item the heartbeat writes; so does all that a fence must
be sure of.

Consistency. Reads are strongly consistent. A run lies in two items that are not read at one moment; both hold the version the JSON was
saved with (`saved_version`), and a pair that does not fit is read again. `list_runs` is consistent for each run, not across them.
Whatever changes both items is one transaction with a token, so that it is carried out once even where its answer is lost.

Importing this package loads nothing else: a webhook that only hears heartbeats needs `heartbeats` over `signed`, and neither boto3 nor a
parser of what a run is.
"""
