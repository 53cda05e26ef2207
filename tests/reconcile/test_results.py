"""When a run has ended, its results are in the bucket, gathered from what its attempts left there; and the
pull request that started it shows them beside those of the base branch, in its comment and its check.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from prime_train.buckets.keys import METRICS_STREAM, piece_key, results_key
from prime_train.errors import TemporaryError
from prime_train.github.api import GitHub
from prime_train.github.notifier import GitHubNotifier
from prime_train.outputs.results.numbers import (
    AttemptResults,
    Number,
    ResultSource,
    number,
    parse_run_results,
)
from prime_train.outputs.results.write import pull_results, read_results
from prime_train.runs.run import Origin, Run, RunState
from prime_train.spec.causes import Cause
from prime_train.spec.limits import STEP_MAX
from tests import builders as b
from tests.fakes.github import FakeGitHub
from tests.reconcile.ports import Outside

REPO, CONFIG = "acme/models", "configs/a.yaml"


def streamed(w: Outside, run_id: str, text: str, *, attempt: int = 1, piece: int = 1) -> None:
    w.bucket.objects[piece_key(run_id, attempt, w.identity(attempt, run_id), METRICS_STREAM, piece)] = (
        text.encode()
    )


def measured(w: Outside, run_id: str, *numbers: Number, attempt: int = 1) -> None:
    made = AttemptResults(run=run_id, attempt=attempt, identity=w.identity(attempt, run_id), numbers=numbers)
    w.bucket.objects[made.key] = made.data


def finished(w: Outside, run_id: str = b.RUN_ID, *, step: int = 20) -> None:
    w.after(30).exit(Cause.FINISHED, run_id, step=step)
    w.settle(run_id)
    assert w.run(run_id).state is RunState.SUCCEEDED


def written(w: Outside, run_id: str = b.RUN_ID) -> dict[str, float | None]:
    results = parse_run_results(w.bucket.objects[results_key(run_id)], run_id)
    assert results is not None
    assert (results.state, results.attempt, results.ended_s) == (
        w.run(run_id).state.value,
        w.run(run_id).attempt,
        w.run(run_id).ended_s,
    )
    return {name: one.value for name, one in results.final.items()}


def test_the_last_value_of_each_figure_counts_and_a_loss_that_became_nan_has_none() -> None:
    w = Outside().with_identities().trains()
    streamed(w, b.RUN_ID, "step,time_s,loss,lr\n1,1,3.5,0.1\n2,2,3.0,\n")
    streamed(w, b.RUN_ID, "3,3,nan,\nstep,time_s,loss,lr,eval\n4,4,nan,,0.5\n5,5,", piece=2)
    measured(
        w,
        b.RUN_ID,
        number("acc", 0.7, ResultSource.EVALUATION, step=3),
        number("acc", 0.9, ResultSource.AFTER, by="evaluate"),
    )
    finished(w)
    assert written(w) == {"loss": None, "lr": 0.1, "eval": 0.5, "acc": 0.9}


def test_what_a_lost_machine_did_after_its_last_checkpoint_does_not_count() -> None:
    w = Outside().with_identities().trains(step=14)
    streamed(w, b.RUN_ID, "step,time_s,loss,eval\n9,1,3.5,\n10,1,3.4,0.4\n14,1,0.1,0.99\n")
    measured(
        w,
        b.RUN_ID,
        number("acc", 0.5, ResultSource.EVALUATION, step=10),
        number("acc", 0.99, ResultSource.EVALUATION, step=14),
    )
    manifest = w.save_checkpoint(10)
    w.store.commit(b.commit(10, key=manifest.key, identity=w.identity(1)), w.now_s)
    w.pods.real.preempt(w.pods.real.list()[0].pod_id)
    w.after(60).settle()
    w.trains(step=12)
    assert w.run().attempts[1].resumed_step == 10
    streamed(w, b.RUN_ID, "step,time_s,loss\n12,1,3.0\n20,1,2.0\n", attempt=2)
    finished(w)
    assert written(w) == {"loss": 2.0, "eval": 0.4, "acc": 0.5}


def test_results_that_could_not_be_written_are_gathered_when_they_are_read() -> None:
    w = Outside().with_identities().trains()
    streamed(w, b.RUN_ID, "step,time_s,loss\n1,1,3.5\n")
    w.after(30).exit(Cause.FINISHED, step=20)
    w.fail["bucket"] = TemporaryError("no answer")
    w.settle()
    assert w.run().state is RunState.SUCCEEDED
    assert "ResultsFailed" in w.received
    assert results_key(b.RUN_ID) not in w.bucket.objects
    del w.fail["bucket"]
    found = read_results(w.bucket, w.run())
    assert found is not None
    assert found.final["loss"].value == 3.5


def test_the_last_step_that_a_key_can_name_keeps_no_machine_and_no_result() -> None:
    w = Outside().with_identities().trains(step=STEP_MAX)
    streamed(w, b.RUN_ID, "step,time_s,loss\n1,1,3.5\n")
    w.after(30).exit(Cause.FINISHED, step=STEP_MAX)
    w.settle()
    assert list(w.pods.real.list()) == []
    assert parse_run_results(w.bucket.objects[results_key(b.RUN_ID)], b.RUN_ID) == read_results(
        w.bucket, w.run()
    )


@pytest.mark.parametrize("forged", [b"{}", b'{"numbers": NaN', b"\xff" * 9])
def test_what_is_no_result_of_this_run_is_gathered_anew(forged: bytes) -> None:
    w = Outside().with_identities().trains()
    streamed(w, b.RUN_ID, "step,time_s,loss\n1,1,3.5\n")
    finished(w)
    good = w.bucket.objects[results_key(b.RUN_ID)]
    older = json.dumps(json.loads(good) | {"ended_s": 1, "numbers": []}).encode()
    for content in (forged, older):
        w.bucket.objects[results_key(b.RUN_ID)] = content
        found = read_results(w.bucket, w.run())
        assert found is not None
        assert found.data == good


# ------------------------------------------------------------------------------------------------------------
# pull requests


@dataclass
class Proposed:
    """A repository with a pull request that changes a config, and runs launched from both branches."""

    fake: FakeGitHub
    w: Outside

    def launched(
        self,
        run_id: str,
        *,
        loss: float | None,
        base: str = "main",
        require: tuple[str, ...] = ("loss <= base * 1.02",),
    ) -> Run:
        """Launch a run from the pull request's branch, or with an empty `base` from the base branch, and with
        a `loss` let it end.
        """
        head = self.fake.pull(REPO, 1)["head"]["sha"]
        branch = "change" if base else "main"
        origin = Origin(
            REPO, head, CONFIG, run_id, 1 if base else None, actor="ann", branch=branch, base=base
        )
        spec = b.spec(trainer={"steps": 20}, require=list(require))
        self.w.store.create(Run(run_id, spec, created_s=self.w.now_s, origin=origin, commit=head))
        self.w.trains(run_id)
        if loss is not None:
            streamed(self.w, run_id, f"step,time_s,loss\n20,1,{loss}\n")
            finished(self.w, run_id)
        self.w.sweeps(30)
        return self.w.run(run_id)

    @property
    def check(self) -> Mapping[str, Any]:
        return next(
            one for one in reversed(self.fake.statuses(REPO)) if one["context"] == f"prime-train/{CONFIG}"
        )

    @property
    def comment(self) -> str:
        return str(self.fake.comments(REPO, 1)[-1]["body"])


@pytest.fixture
def proposed() -> Iterator[Proposed]:
    w = Outside().with_identities()
    with FakeGitHub() as fake:
        fake.add_repo(REPO, files={CONFIG: "name: a\n"})
        fake.add_user("ann", repo=REPO, role="write")
        fake.add_pull(REPO, "change", author="ann", files={CONFIG: "name: b\n"})
        permissions = {"pull-requests": "write", "statuses": "write"}

        def client(repository: str) -> GitHub:
            return GitHub(
                repository, fake.job_token(repository, permissions), url=fake.url, clock=lambda: w.now_s
            )

        github = GitHubNotifier(
            client,
            w.store.load,
            clock=lambda: w.now_s,
            results=lambda run: pull_results(w.store, lambda: w.bucket, run),
        )
        w.world = replace(w.world, notifiers=(w.reported, github))
        yield Proposed(fake, w)
        assert fake.violations == []


def test_the_check_of_a_worse_run_fails_and_that_of_a_later_better_one_passes(proposed: Proposed) -> None:
    proposed.launched("base-1", loss=2.0, base="")
    proposed.launched("worse", loss=None)
    assert (proposed.check["state"], proposed.check["description"]) == ("pending", "worse has not ended")
    streamed(proposed.w, "worse", "step,time_s,loss\n20,1,2.5\n")
    finished(proposed.w, "worse")
    proposed.w.sweeps(30)
    assert (proposed.check["state"], proposed.check["description"]) == (
        "failure",
        "not met: loss <= base * 1.02 (it is 2.5, the limit is 2.04)",
    )
    assert (
        "| `loss` | 2 | 2.5 | +0.5 (+25.0%) | `loss <= base * 1.02` (2.04) | ❌ not met |" in proposed.comment
    )
    proposed.launched("better", loss=1.5)
    assert (proposed.check["state"], proposed.check["description"]) == (
        "success",
        "met: loss <= base * 1.02 (it is 1.5, the limit is 2.04)",
    )


def test_without_a_run_on_the_base_branch_nothing_is_green(proposed: Proposed) -> None:
    proposed.launched("elsewhere", loss=2.0, base="other")
    proposed.launched("first", loss=1.0)
    assert (proposed.check["state"], proposed.check["description"]) == (
        "pending",
        "not known yet: loss <= base * 1.02 (there is no base run to compare with)",
    )
    assert "There is no base to compare with" in proposed.comment


def test_an_older_run_of_the_same_commit_does_not_overrule_the_newer_one(proposed: Proposed) -> None:
    proposed.launched("older", loss=None, require=("loss < 3",))
    proposed.w.after(60)
    proposed.launched("newer", loss=9.0, require=("loss < 3",))
    assert proposed.check["state"] == "failure"
    streamed(proposed.w, "older", "step,time_s,loss\n20,1,1.0\n")
    finished(proposed.w, "older")
    proposed.w.sweeps(30)
    assert (proposed.check["state"], proposed.check["description"]) == (
        "failure",
        "not met: loss < 3 (it is 9)",
    )


def test_a_bucket_that_does_not_answer_leaves_the_check_pending_until_it_does(proposed: Proposed) -> None:
    proposed.launched("run-1", loss=None, require=("loss < 3",))
    streamed(proposed.w, "run-1", "step,time_s,loss\n20,1,1.0\n")
    proposed.w.fail["bucket"] = TemporaryError("no answer")
    finished(proposed.w, "run-1")
    proposed.w.sweeps(30)
    assert proposed.check["description"] == "the results of run-1 cannot be read: no answer"
    del proposed.w.fail["bucket"]
    proposed.w.sweeps(120)
    assert proposed.check["state"] == "success"
