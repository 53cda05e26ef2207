"""Which events start which jobs, and what of them reaches which command: all workflows, run by act, with a
command that prints its arguments.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.github import scratch
from tests.github.act import Act, Ran, needs_act
from tests.github.files import ROOT, consumer_workflows, parsed

pytestmark = needs_act

HOSTILE = "configs/a b'\";$(touch pwned)`touch pwned`${IFS}&|.yaml"
BY_LABEL, BY_MERGE = {"PRIME_TRAIN_ON_LABEL": "true"}, {"PRIME_TRAIN_ON_MERGE": "true"}
BY_COMMITS = {"PRIME_TRAIN_PROBE": "true"}
FORK = {"full_name": "stranger/models"}
COMMENT = {
    "issue": {"number": 7, "pull_request": {"url": "https://api.github.com/repos/acme/models/pulls/7"}},
    "comment": {
        "id": 1,
        "body": "/prime-train stop",
        "author_association": "MEMBER",
        "user": {"login": "octocat", "type": "User"},
    },
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository that has this project's workflows as its own."""
    folder = tmp_path_factory.mktemp("models")
    scratch.write_workflows(folder)
    return scratch.repository(folder, {"configs/demo.yaml": "name: demo\n"})


class Runs:
    def __init__(self, act: Act, repository: Path, recorder: Path) -> None:
        self.act, self.repository, self.recorder = act, repository, recorder

    def run(self, workflow: str, event: str, payload: dict[str, Any], **more: Any) -> Ran:
        ran = self.act.run(
            self.repository, workflow, event, payload, env={scratch.WARM: str(self.recorder)}, **more
        )
        assert not list(self.repository.rglob("pwned"))
        assert not list(self.act.home.rglob("pwned"))
        return ran


@pytest.fixture
def runs(act: Act, models: Path, recorder: Path) -> Runs:
    return Runs(act, models, recorder)


def reported(ran: Ran, job: str, verb: str) -> dict[str, str]:
    output = json.loads(ran.step(job, f"{verb}/verb").text)
    assert output["arguments"] == ["gha", verb]
    environment: dict[str, str] = output["environment"]
    assert not [name for name in environment if name.startswith("INPUT_")]
    return environment


def pull(action: str, **more: Any) -> dict[str, Any]:
    event = scratch.pull_request(action=action)
    for name, value in more.items():
        place = event if name in ("label", "sender") else event["pull_request"]
        place[name] = value
    return event


def labelled(**more: Any) -> dict[str, Any]:
    return pull("labeled", **{"label": {"name": "train"}, **more})


def test_a_dispatch_hands_over_its_inputs_as_they_are(runs: Runs) -> None:
    inputs = {"config": HOSTILE, "name": "$(touch pwned)", "dry-run": "true", "again": "false"}
    variables = {"PRIME_TRAIN_URL": "https://plane.example.com", "PRIME_TRAIN_BUCKET": "s3://b"}
    secrets = {
        "PRIME_TRAIN_MASTER_KEY": "ab" * 32,
        "PRIME_TRAIN_CREDENTIALS": "{}",
        "AWS_ACCESS_KEY_ID": "AKIA",
    }
    ran = runs.run(
        "launch.yml", "workflow_dispatch", {"inputs": inputs}, variables=variables, secrets=secrets
    )
    assert reported(ran, "validate", "validate")["PRIME_TRAIN_INPUT_PATHS"] == HOSTILE
    (job,) = set(ran.jobs) - {"validate"}
    given = reported(ran, job, "launch")
    assert given["PRIME_TRAIN_INPUT_CONFIG"] == HOSTILE
    assert given["PRIME_TRAIN_INPUT_NAME"] == "$(touch pwned)"
    assert (given["PRIME_TRAIN_INPUT_DRY_RUN"], given["PRIME_TRAIN_INPUT_AGAIN"]) == ("true", "false")
    assert given["PRIME_TRAIN_URL"] == given["PRIME_TRAIN_STORE"] == "https://plane.example.com"
    assert given["PRIME_TRAIN_BUCKET"] == "s3://b"
    # Secrets, which the log does not show.
    assert {given[name] for name in secrets} == {"***"}


def test_an_event_sent_to_the_repository_launches_what_it_names(runs: Runs) -> None:
    payload = {"config": "configs/demo.yaml", "again": True}
    ran = runs.run(
        "launch.yml", "repository_dispatch", {"action": "prime-train-launch", "client_payload": payload}
    )
    given = reported(ran, "launch configs/demo.yaml", "launch")
    assert given["PRIME_TRAIN_INPUT_CONFIG"] == "configs/demo.yaml"
    assert (given["PRIME_TRAIN_INPUT_DRY_RUN"], given["PRIME_TRAIN_INPUT_AGAIN"]) == ("false", "true")


@pytest.mark.parametrize("payload", [{}, {"config": ""}, {"config": None}])
def test_an_event_that_names_no_config_does_not_launch_them_all(runs: Runs, payload: dict[str, Any]) -> None:
    ran = runs.run(
        "launch.yml", "repository_dispatch", {"action": "prime-train-launch", "client_payload": payload}
    )
    assert ran.jobs == {"validate": "failure"}
    assert "no config is named" in ran.reported


@pytest.mark.parametrize(
    ("payload", "variables", "launches"),
    [
        pytest.param(labelled(), BY_LABEL, True, id="the label"),
        pytest.param(labelled(), {}, False, id="the label, which the repository does not heed"),
        pytest.param(labelled(label={"name": "probe"}), BY_LABEL, True, id="the label of a probe"),
        pytest.param(labelled(label={"name": "docs"}), BY_LABEL, False, id="another label"),
        pytest.param(pull("opened"), BY_COMMITS, True, id="opened, which the repository measures"),
        pytest.param(pull("synchronize"), BY_COMMITS, True, id="new commits, which the repository measures"),
        pytest.param(
            pull("synchronize"), BY_LABEL, False, id="new commits, which the repository does not measure"
        ),
        pytest.param(
            pull("synchronize", head={"ref": "x", "repo": FORK}),
            BY_COMMITS,
            False,
            id="new commits, a fork's",
        ),
        pytest.param(
            pull("synchronize", sender={"login": "bot", "type": "Bot"}),
            BY_COMMITS,
            False,
            id="new commits, by a bot",
        ),
        pytest.param(
            labelled(sender={"login": "bot", "type": "Bot"}), BY_LABEL, False, id="the label, by a bot"
        ),
        pytest.param(labelled(head={"ref": "x", "repo": FORK}), BY_LABEL, False, id="the label, on a fork's"),
        pytest.param(pull("closed", merged=True), BY_MERGE, True, id="merged"),
        pytest.param(
            pull("closed", merged=True), BY_LABEL, False, id="merged, which the repository does not heed"
        ),
        pytest.param(pull("closed", merged=False), BY_MERGE, False, id="closed"),
        pytest.param(
            pull("closed", merged=True, head={"ref": "x", "repo": FORK}),
            BY_MERGE,
            False,
            id="merged, a fork's",
        ),
        pytest.param(
            pull("closed", merged=True, head={"ref": "x", "repo": None}),
            BY_MERGE,
            False,
            id="merged, a fork's that is gone",
        ),
    ],
)
def test_a_pull_request_launches_only_as_the_repository_says(
    runs: Runs, payload: dict[str, Any], variables: dict[str, str], launches: bool
) -> None:
    ran = runs.run("launch.yml", "pull_request", payload, variables=variables)
    assert set(ran.jobs) == ({"validate", "launch configs/changed.yaml"} if launches else set())


@pytest.mark.parametrize(
    ("payload", "variables", "probe"),
    [
        (labelled(), BY_LABEL, ("false", "2")),
        (labelled(label={"name": "probe"}), BY_LABEL, ("true", "2")),
        (pull("synchronize"), BY_COMMITS | {"PRIME_TRAIN_PROBE_USD": "0.5"}, ("true", "0.5")),
        (pull("closed", merged=True), BY_MERGE | BY_COMMITS, ("false", "2")),
    ],
)
def test_what_is_proposed_is_measured_and_what_is_labelled_or_merged_is_launched(
    runs: Runs, payload: dict[str, Any], variables: dict[str, str], probe: tuple[str, str]
) -> None:
    ran = runs.run("launch.yml", "pull_request", payload, variables=variables)
    assert reported(ran, "validate", "validate")["PRIME_TRAIN_INPUT_LAUNCHES"] == "true"
    given = reported(ran, "launch configs/changed.yaml", "launch")
    assert (given["PRIME_TRAIN_INPUT_PROBE"], given["PRIME_TRAIN_INPUT_PROBE_USD"]) == probe


@pytest.mark.parametrize(
    ("more", "received"),
    [
        pytest.param({}, True, id="a member's command"),
        pytest.param({"body": "what about /prime-train stop?"}, False, id="a command spoken of"),
        pytest.param({"author_association": "COLLABORATOR"}, True, id="a collaborator's"),
        # Whoever had one pull request merged is one, and no such person's words start a job that holds keys.
        pytest.param({"author_association": "CONTRIBUTOR"}, False, id="a contributor's"),
        pytest.param({"user": {"login": "b", "type": "Bot"}}, False, id="a bot's"),
    ],
)
def test_only_commands_of_people_take_a_machine(runs: Runs, more: dict[str, Any], received: bool) -> None:
    ran = runs.run("stop.yml", "issue_comment", {**COMMENT, "comment": {**COMMENT["comment"], **more}})
    assert set(ran.jobs) == ({"stop"} if received else set())


def test_a_command_on_an_issue_takes_none(runs: Runs) -> None:
    assert runs.run("stop.yml", "issue_comment", {**COMMENT, "issue": {"number": 7}}).jobs == {}


def test_a_comment_reaches_the_verb_by_the_events_file_alone(runs: Runs) -> None:
    body = "/prime-train stop $(touch pwned) `touch pwned`\n::set-output name=did::stop"
    ran = runs.run("stop.yml", "issue_comment", {**COMMENT, "comment": {**COMMENT["comment"], "body": body}})
    given = reported(ran, "stop", "stop")
    assert (given["PRIME_TRAIN_INPUT_RUN"], given["PRIME_TRAIN_INPUT_NOW"]) == ("", "false")
    assert not [name for name, value in given.items() if "pwned" in value]


@pytest.mark.parametrize(("payload", "run"), [({"run": "mnist-7"}, "mnist-7"), ({}, ""), ({"run": None}, "")])
def test_an_event_sent_to_the_repository_stops_what_it_names(
    runs: Runs, payload: dict[str, Any], run: str
) -> None:
    ran = runs.run(
        "stop.yml", "repository_dispatch", {"action": "prime-train-stop", "client_payload": payload}
    )
    assert reported(ran, "stop", "stop")["PRIME_TRAIN_INPUT_RUN"] == run


def test_the_schedule_sweeps_where_a_control_plane_is_named(runs: Runs) -> None:
    assert runs.run("watch.yml", "schedule", {}).jobs == {}
    ran = runs.run("watch.yml", "schedule", {}, variables={"PRIME_TRAIN_URL": "https://plane.example.com"})
    assert reported(ran, "watch", "watch")["PRIME_TRAIN_INPUT_STALE_MINUTES"] == "90"


def test_the_schedule_hands_the_key_of_wandb_to_the_step_that_asks_it_and_to_no_other(runs: Runs) -> None:
    variables = {"PRIME_TRAIN_URL": "https://plane.example.com", "PRIME_TRAIN_WANDB": "acme/sums"}
    given = reported(
        runs.run("watch.yml", "schedule", {}, variables=variables, secrets={"WANDB_API_KEY": "k" * 40}),
        "watch",
        "watch",
    )
    assert (given["PRIME_TRAIN_INPUT_WANDB"], given["WANDB_API_KEY"]) == ("acme/sums", "***")
    assert "WANDB_API_KEY" not in str(
        parsed(ROOT / ".github" / "workflows" / "watch.yml")["jobs"]["watch"]["env"]
    )


def test_the_credentials_of_all_providers_reach_one_step_alone(runs: Runs) -> None:
    secrets = {
        "PRIME_TRAIN_CREDENTIALS": json.dumps(
            {"PRIME_TRAIN_KUBERNETES": "kubeconfig:\n  token: of-the-cluster\n"}
        )
    }
    ran = runs.run(
        "watch.yml",
        "schedule",
        {},
        variables={"PRIME_TRAIN_URL": "https://plane.example.com"},
        secrets=secrets,
    )
    given = reported(ran, "watch", "watch")
    assert set(secrets) <= set(given)
    for path in ("watch.yml", "launch.yml", "stop.yml"):
        (job,) = (
            job
            for job in parsed(ROOT / ".github" / "workflows" / path)["jobs"].values()
            if "environment" in job
        )
        assert not set(secrets) & set(job.get("env", {})), path


def test_slack_discord_the_alert_url_and_the_policy_reach_the_watcher(runs: Runs) -> None:
    secrets = {
        "PRIME_TRAIN_SLACK_TOKEN": "xoxb-1",
        "PRIME_TRAIN_SLACK_WEBHOOK": "https://hooks.slack.example/1",
    }
    secrets |= {
        "PRIME_TRAIN_ALERT_URL": "https://alerts.example.com/1",
        "DISCORD_WEBHOOK_URL": "https://discord.example.com/1",
    }
    variables = {"PRIME_TRAIN_URL": "https://plane.example.com", "PRIME_TRAIN_SLACK_CHANNEL": "C0123ABCD"}
    variables |= {"PRIME_TRAIN_SLACK_MENTION": "here", "PRIME_TRAIN_POLICY": "providers: [prime]"}
    given = reported(
        runs.run("watch.yml", "schedule", {}, variables=variables, secrets=secrets), "watch", "watch"
    )
    assert {name: given[name] for name in secrets} == dict.fromkeys(secrets, "***"), (
        "secrets, which the log does not show"
    )
    assert {name: given[name] for name in variables} == variables


def test_a_pull_request_is_validated_without_any_secret(runs: Runs) -> None:
    given = reported(runs.run("validate.yml", "pull_request", pull("opened")), "validate", "validate")
    assert given["PRIME_TRAIN_INPUT_PATHS"] == ""
    assert (given["PRIME_TRAIN_INPUT_CONFIGS"], given["PRIME_TRAIN_INPUT_FAIL_ON"]) == ("configs", "error")
    assert not {"PRIME_TRAIN_MASTER_KEY", "AWS_SECRET_ACCESS_KEY"} & set(given)
    assert (given["PRIME_TRAIN_STORE"], given["PRIME_TRAIN_MARKET_KEY"]) == ("", "")


def test_a_pull_request_is_given_the_key_that_can_only_read_and_no_other(runs: Runs) -> None:
    variables = {"PRIME_TRAIN_URL": "https://plane.example.com"}
    secrets = {
        "PRIME_TRAIN_MARKET_KEY": "pt_market_x",
        "PRIME_TRAIN_MASTER_KEY": "ab" * 32,
        "PRIME_TRAIN_CREDENTIALS": "rents",
    }
    ran = runs.run("validate.yml", "pull_request", pull("opened"), variables=variables, secrets=secrets)
    given = reported(ran, "validate", "validate")
    assert given["PRIME_TRAIN_STORE"] == "https://plane.example.com"
    # A secret, which the log does not show.
    assert (given["PRIME_TRAIN_MARKET_KEY"], given["PRIME_TRAIN_CREDENTIALS"]) == ("***", "")
    assert "PRIME_TRAIN_MASTER_KEY" not in given


CONSUMED = {
    "validate.yml": ("pull_request", pull("opened"), "validate", "validate"),
    "launch.yml": (
        "workflow_dispatch",
        {"inputs": {"config": "configs/mnist.yaml"}},
        "launch configs/mnist.yaml",
        "launch",
    ),
    "watch.yml": ("schedule", {}, "watch", "watch"),
    "stop.yml": ("workflow_dispatch", {"inputs": {"run": "mnist-7", "now": "true"}}, "stop", "stop"),
}


@pytest.mark.parametrize("path", consumer_workflows(), ids=lambda path: path.name)
def test_another_repository_uses_the_workflows_as_the_example_does(
    act: Act, recorder: Path, tmp_path: Path, path: Path
) -> None:
    repository = scratch.repository(tmp_path / "models", {f".github/workflows/{path.name}": path.read_text()})
    event, payload, job, verb = CONSUMED[path.name]
    variables = {"PRIME_TRAIN_URL": "https://plane.example.com"}
    ran = Runs(act, repository, recorder).run(path.name, event, payload, variables=variables)
    (found,) = (name for name in ran.jobs if name.endswith(job))
    reported(ran, found, verb)
