"""The marks beside manifests in the bucket: which checkpoints are proven, and which are distrusted.

The decisions are in the run; the marks tell them to whoever has only the bucket: retention on a machine, and
lists of checkpoints. They are written by the control plane alone. One that could not be written is written at
the next fence.
"""

from prime_train.buckets.keys import Mark, Place, mark_key, mark_prefix, marked
from prime_train.buckets.port import Bucket
from prime_train.runs.resuming.trust import proven_places
from prime_train.runs.run import Run


def write_marks(bucket: Bucket, run: Run) -> frozenset[Place]:
    """Write the marks of the run that the bucket lacks, delete those that no longer hold, and return all
    proven checkpoints. Raises the bucket's errors.
    """
    proven, distrusted = proven_places(run.attempts), frozenset(one.place for one in run.distrusted)
    there = marked(run.run_id, [stat.key for stat in bucket.list(mark_prefix(run.run_id))])
    for mark, places in ((Mark.PROVEN, proven), (Mark.DISTRUSTED, distrusted)):
        for step, attempt in sorted(places - there[mark]):
            bucket.put(mark_key(run.run_id, step, attempt, mark), b"")
    for step, attempt in sorted(there[Mark.DISTRUSTED] - distrusted):
        bucket.delete(mark_key(run.run_id, step, attempt, Mark.DISTRUSTED))
    return proven | there[Mark.PROVEN]
