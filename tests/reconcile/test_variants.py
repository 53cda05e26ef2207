"""A run whose config has variants: each attempt gets that of its own machine, also where another one takes
over.
"""

from prime_train.github.pull_request import run_comment
from prime_train.providers.memory import MemoryPods
from prime_train.runs.offer import Offer
from prime_train.runs.run import RunState
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import Bootstrap
from prime_train.spec.causes import Cause
from prime_train.status.run_status import RunFacts, status_of
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.buckets import no_bucket
from tests.reconcile.ports import MASTER, Outside
from tests.webhook.calls import ask, handle

LARGE = Offer("memory", "large", 2.0, spot=True, gpu="H100_80GB", gpu_count=2, gpu_gb=80, disk_gib=1000)
SMALL = Offer("memory", "small", 3.0, spot=True, gpu="RTX4090_24GB", gpu_count=1, gpu_gb=24, disk_gib=1000)
NEITHER = Offer(
    "memory", "neither", 0.1, spot=True, gpu="RTX4090_24GB", gpu_count=8, gpu_gb=24, disk_gib=1000
)
SPEC = {
    "trainer": {"kind": "torchrun", "command": "train.py"},
    "hardware": {
        "variants": [
            {
                "count": 2,
                "gpu_gb_min": 80,
                "set": {"trainer.workers": 2, "trainer.command": "train.py --batch 32"},
            },
            {"count": 1, "gpu_gb_min": 24, "set": {"trainer.command": "train.py --batch 4"}},
        ]
    },
}


def job_of(w: Outside, attempt: int) -> Bootstrap:
    request = ask("bootstrap", attempt=attempt, master=MASTER, at_s=w.now_s)._replace(now_s=w.now_s)
    response = handle(
        WebhookContext(w.store, (MASTER,), secrets={}, bucket_url="file:///bucket", bucket=no_bucket), request
    )
    assert response.status == 200, response.body
    return Bootstrap.model_validate_json(response.body)


def test_a_machine_of_another_size_that_takes_over_gets_its_own_variant() -> None:
    w = Outside(SPEC)
    w.pods.real = MemoryPods(offers=(NEITHER, LARGE, SMALL), stock={"large": 1}, clock=lambda: w.now_s)
    w.trains()
    first = job_of(w, 1).spec
    assert (first.trainer.command, first.trainer.workers, first.hardware.count) == (
        "train.py --batch 32",
        2,
        2,
    )
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    w.pods.real.set_stock("large", 0)  # whoever took the machine has it
    w.after(60).settle()
    assert w.run().state is RunState.BOOTING
    second = job_of(w, 2).spec
    assert (second.trainer.command, second.trainer.workers, second.hardware.gpus) == (
        "train.py --batch 4",
        1,
        ("RTX4090_24GB",),
    )
    attempts = [(attempt.offer.offer_id, attempt.variant, attempt.cause) for attempt in w.run().attempts]
    assert attempts == [
        ("large", "variant 1 (2 GPUs of 80 GB or more)", Cause.PREEMPTED),
        ("small", "variant 2 (1 GPU of 24 GB or more)", None),
    ]
    record = RunRecord(w.run(), w.lease())
    assert status_of(RunFacts(record, w.now_s)).variant == "variant 2 (1 GPU of 24 GB or more)"
    shown = run_comment(record.run, record.lease, w.now_s)
    assert "variant 1 (2 GPUs of 80 GB or more)" in shown
    assert "spot, $3.00 an hour, variant 2 (1 GPU of 24 GB or more)" in shown
    assert w.run().spec == b.spec(**SPEC), "the run keeps its config, from which the next machine's is made"
    assert any("for variant 2 (1 GPU of 24 GB or more)" in line.text for line in w.store.history(b.RUN_ID))
