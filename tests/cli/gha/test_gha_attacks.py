"""What any GitHub user may send: names, texts and events that try to be more than text."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.checks.report.github import github
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.github.changed_configs import inside, named, of_pull, read_named
from prime_train.github.commands.job import SUMMARY_BYTES_MAX, Job, hide
from prime_train.github.commands.printer import printer
from prime_train.github.events import Event
from prime_train.spec.finding import Finding, Severity
from tests.adapters.github.speaking_github import as_job, spoken_to
from tests.cli.gha.job import GOOD, Did
from tests.cli.gha.job import Job as Step
from tests.fakes.http import ALWAYS, Response

BAD = GOOD + "budgets: 3\n"
SECRET = "hf_" + "a1B2c3D4" * 4
SECRETS = """
    PRIME_TRAIN_MASTER_KEY PRIME_TRAIN_MARKET_KEY PRIME_TRAIN_ALERT_URL PRIME_TRAIN_SLACK_TOKEN PRIME_TRAIN_SLACK_WEBHOOK SLACK_WEBHOOK_URL
    PRIME_TRAIN_GITHUB_TOKEN PRIME_TRAIN_GITHUB_APP_KEY PRIME_API_KEY WANDB_API_KEY HF_TOKEN NEPTUNE_API_TOKEN JUDGE_KEY
    AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN R2_SECRET_ACCESS_KEY B2_APPLICATION_KEY PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY
"""
KUBECONFIG = """\
{
kubeconfig:
  users:
  -
    name: me
    user:
      token: TOKEN
      client-key-data: "KEYKEYKEY="
"""
COMMAND = re.compile(r"::(error|warning|notice|add-mask)( [^:]*)?::")
OUTPUTS = {"valid", "findings", "errors", "warnings", "configs", "sarif", "comment-url"}
NAMES = (
    "configs/$(touch pwned).yaml",
    "configs/;touch pwned;.yaml",
    "configs/-rf.yaml",
    "configs/::error::a.yaml",
    "configs/b%0A::add-mask::e.yaml",
    "configs/c\n::add-mask::e\nrun<<x.yaml",
    "configs/d,line=1,title=x.yaml",
    "configs/e`|<img src=x> @ann #1.yaml",
    "configs/<!-- prime-train:validate -->.yaml",
)


def a_job(folder: Path, event_name: str = "workflow_dispatch", event: bytes | None = None) -> Job:
    """Return a job that runs in this process."""
    if event is not None:
        (folder / "event.json").write_bytes(event)
    environment = {
        "GITHUB_REPOSITORY": "acme/models",
        "GITHUB_EVENT_NAME": event_name,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }
    return Job.of(environment)


def commands(log: str) -> list[str]:
    """Return what GitHub would take for a command, however it is indented."""
    return [line for line in re.split(r"[\r\n]+", log) if line.lstrip().startswith(("::", "##["))]


# ------------------------------------------------------------------------------------------------------------
# names of files


def test_names_of_files_and_branches_are_only_names(job: Step) -> None:
    good = [name.replace("configs/", "configs/good/") for name in NAMES]
    branch = "x;$(touch${IFS}pwned)`'\""
    job.commit(dict.fromkeys(NAMES, BAD) | dict.fromkeys(good, GOOD), branch)
    number = job.fake.add_pull(job.repo, branch, author="ann")
    planted = "<!-- prime-train:validate -->\nall is well"
    job.fake.comment(job.repo, number, author="mallory", body=planted)
    did = job.run("validate", "pull_request", job.event("pull_request"))
    assert did.code == 1, did.log
    assert not list(job.folder.rglob("pwned"))
    assert [
        line
        for line in commands(did.log)
        if not re.match(r"::error file=[^:,\n]+,line=\d+,col=\d+,title=PT\d+::[^:]", line)
    ] == []
    assert len(did.annotations) == len(NAMES)
    assert (set(did.outputs), sorted(json.loads(did.outputs["configs"]))) == (OUTPUTS, sorted(good))
    theirs, ours = (comment["body"] for comment in job.fake.comments(job.repo, number))
    assert theirs == planted
    for text in (ours.removeprefix("<!-- prime-train:validate -->"), did.summary):
        bare = re.sub(r"`[^`\n]*`|<code>[^<\n]*</code>|\\.", "", text)
        assert not re.search(r"<[^ ]|[@#]\w", bare), bare
        assert text.count("touch pwned") >= 2


def test_a_name_that_is_no_text_is_no_bug_of_ours(job: Step) -> None:
    folder = os.fsencode(job.folder / "configs")
    Path(os.fsdecode(folder + b"/bad\xff\xfe.yaml")).write_text(BAD)
    did = job.run("validate", "push", {}, PRIME_TRAIN_INPUT_PATHS="configs")
    assert (did.code, did.outputs["errors"]) == (1, "1"), did.log


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a working folder with links that lead out of it."""
    folder = tmp_path / "here"
    (folder / "configs").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text(GOOD)
    (folder / "configs" / "out.yaml").symlink_to(tmp_path / "outside.yaml")
    (folder / "configs" / "up").symlink_to(tmp_path)
    (folder / "configs" / "loop").symlink_to(folder / "configs" / "loop")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "path",
    [
        "../outside.yaml",
        "configs/../../outside.yaml",
        "/etc/passwd",
        "configs/out.yaml",
        "configs/up/outside.yaml",
        "-",
        "--help",
        "-rf configs",
        "configs/a\nb.yaml",
        "configs/a\r::error::b.yaml",
        "configs/a\x00b",
        "configs/\x1b[31m",
        "configs/\u2028b",
        "configs/\udcff.yaml",
        "~root/../../..",
        "configs/../..",
    ],
)  # fmt: skip
def test_a_path_that_leads_out_or_is_none_is_refused_in_one_line(here: Path, path: str) -> None:
    with pytest.raises(UsageError, match="is not a path within the repository") as error:
        inside(path)
    assert error.value.code is Exit.USAGE
    assert str(error.value).isprintable()


TRAINS = """\
name: rl
trainer: {kind: prime_rl, steps: 5, code: {folder: t}, prime_rl: {config: rl.toml, ref: 559b4477}}
checkpoints: {every_steps: 5}
hardware: {gpus: [H100_80GB], count: 2}
budget: {usd: 5}
"""


@pytest.mark.parametrize(
    ("link", "target"), [("configs/a.yaml", "outside.yaml"), ("t/rl.toml", "secrets.toml")]
)
def test_a_config_that_leads_out_by_a_link_is_not_read_out(here: Path, link: str, target: str) -> None:
    (here.parent / "secrets.toml").write_text('password = "hunter2"\n')
    (here / "configs" / "out.yaml").unlink()
    (here / "t").mkdir()
    (here / "configs" / "rl.yaml").write_text(TRAINS)
    (here / link).symlink_to(here.parent / target)
    with pytest.raises(UsageError, match="links to a file outside the repository") as error:
        read_named([Path("configs")], {})
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "way", ["requirements", "a trainer's file", "a trainer's file by a link", "a config by a link"]
)
def test_a_pull_request_reads_out_nothing_of_what_git_keeps_of_the_job(job: Step, way: str) -> None:
    token = "eC1hY2Nlc3MtdG9rZW46Z2hz"
    (job.folder / ".git").mkdir(exist_ok=True)
    (job.folder / ".git" / "config").write_text(
        f'[http "https://github.com/"]\nextraheader = AUTHORIZATION: basic {token}\n'
    )
    (job.folder / "t").mkdir()
    (job.folder / "t" / "rl.toml").symlink_to("../.git/config")
    config = job.folder / "configs" / "rl.yaml"
    match way:
        case "requirements":
            config.write_text(GOOD + "image: {requirements: [.git/config]}\n")
        case "a trainer's file":
            config.write_text(TRAINS.replace("code: {folder: t}, ", "").replace("rl.toml", ".git/config"))
        case "a trainer's file by a link":
            config.write_text(TRAINS)
        case _:
            config.symlink_to("../.git/config")
    did = job.run(
        "validate",
        "push",
        {},
        PRIME_TRAIN_INPUT_PATHS="configs/rl.yaml",
        PRIME_TRAIN_INPUT_SARIF="found.sarif",
    )
    assert "of git itself" in did.log, did.log
    for told in (did.log, did.summary, (job.folder / "found.sarif").read_text()):
        assert "AUTHORIZATION" not in told
        assert token not in told


def test_a_pull_request_of_more_files_than_github_tells_hides_no_config(here: Path) -> None:
    (here / "configs" / "out.yaml").unlink()
    (here / "configs" / "bad.yaml").write_text(BAD)
    with spoken_to() as fake:
        page = json.dumps([{"filename": "docs/x.md", "status": "added"}] * 100)
        fake.fail(Response(200, page.encode()), path="/files", times=ALWAYS)
        assert "configs/bad.yaml" in [loaded.file for loaded in of_pull(as_job(fake), 1, "configs", {})]


@pytest.mark.parametrize(
    "path",
    ["configs/a.yaml", "./configs/a.yaml", "configs/../b.yaml", "configs/$(x);`y`'\"&|.yaml", "ä ö.yaml"],
)
def test_a_path_within_is_taken_as_it_is_written(here: Path, path: str) -> None:
    assert inside(path) == Path(path)
    assert str(inside(path).resolve()).startswith(str(here))


def test_too_many_paths_are_refused(here: Path) -> None:
    with pytest.raises(UsageError, match="at most 1000"):
        named("a " * 1001)


def test_nothing_outside_the_repository_is_launched(job: Step) -> None:
    (job.folder.parent / "outside.yaml").write_text(GOOD)
    (job.folder / "configs" / "link.yaml").symlink_to("../../outside.yaml")
    job.commit({"README": "more\n"})
    did = job.run(
        "launch",
        "workflow_dispatch",
        {},
        PRIME_TRAIN_INPUT_CONFIG="configs/link.yaml",
        PRIME_TRAIN_INPUT_DRY_RUN="true",
    )
    assert did.code == 2
    assert "is not a path within the repository" in did.log


# -------------------------------------------------------------------------------------------- outputs,
# annotations and summary


def parsed(text: str) -> dict[str, str]:
    """Return a file of outputs as the runner parses it."""
    found, lines = {}, iter(text.splitlines(keepends=True))
    for line in lines:
        name, is_block, mark = line.rstrip("\n").partition("<<")
        if not is_block:
            name, _, value = line.rstrip("\n").partition("=")
            found[name] = value
            continue
        value = ""
        for inner in lines:
            if inner.rstrip("\n") == mark:
                break
            value += inner
        found[name] = value.removesuffix("\n")
    return found


def test_an_output_is_one_output_whatever_is_in_it(tmp_path: Path) -> None:
    values = {
        "a": "x\nrun=evil\nrun<<y\nevil\ny",
        "b": "end-" + "0" * 32,
        "c": "",
        "d": "<<\n<<end\n",
        "e": True,
        "f_g": 3,
    }
    a_job(tmp_path).output(**values)
    a_job(tmp_path).output(last="end")
    found = parsed((tmp_path / "output").read_text())
    assert found == {
        "a": values["a"],
        "b": values["b"],
        "c": "",
        "d": "<<\n<<end\n",
        "e": "true",
        "f-g": "3",
        "last": "end",
    }


def test_an_annotation_is_one_command_whatever_is_in_it(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hostile = "a%0A\r\n::add-mask::e\n##[error]x,line=9::y"
    print(github([Finding("PT001", hostile, hostile, 1, 1, Severity.ERROR, fix=hostile)]))
    a_job(tmp_path).notice(hostile)
    a_job(tmp_path).warning(hostile)
    lines = commands(capfd.readouterr().out)
    assert [COMMAND.match(line)[1] for line in lines if COMMAND.match(line)] == ["error", "notice", "warning"]  # type: ignore[index]
    assert len(lines) == 3
    assert lines[0].partition("::a")[0].count(",") == 3


def test_what_a_watcher_says_is_no_command(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    home = Home(tmp_path, {})
    home.write_serving("http://127.0.0.1:1")
    printer(home, "")("run-1", "CreateUnknown", "it said:\n::add-mask::e\r\n##[error]x\n  ::stop-commands::y")
    assert commands(capfd.readouterr().out) == []


@pytest.mark.parametrize("text", ["a line\n" * 300_000, "x" * 2_000_000, "🟢" * 600_000])
def test_a_summary_of_two_megabytes_is_cut_to_what_is_shown_at_all(tmp_path: Path, text: str) -> None:
    a_job(tmp_path).summary(text)
    left = (tmp_path / "summary").read_bytes()
    assert len(left) <= SUMMARY_BYTES_MAX + 1 < 2**20
    assert left.decode().rstrip().endswith("truncated: a summary cannot be longer.")


# ------------------------------------------------------------------------------------------------------------
# events

PULL = {
    "action": "opened",
    "sender": {"login": "ann", "type": "User"},
    "pull_request": {
        "number": 1,
        "head": {"sha": "a", "repo": {"full_name": "acme/models"}},
        "base": {"sha": "b"},
    },
}
SAID = {
    "issue": {"number": 1, "pull_request": {}},
    "comment": {"id": 1, "body": "/prime-train stop", "user": {"login": "ann", "type": "User"}},
}


def read(folder: Path, name: str, event: object) -> Event:
    return (
        a_job(folder, name, event if isinstance(event, bytes) else json.dumps(event).encode()).trigger().event
    )


def changed(event: Mapping[str, object], path: str, value: object) -> dict[str, object]:
    """Return the event with another value at that path; None: without it."""
    first, _, rest = path.partition(".")
    inner = event[first]
    if rest:
        assert isinstance(inner, dict)
        return {**event, first: changed(inner, rest, value)}
    return {key: one for key, one in event.items() if key != first} | (
        {first: value} if value is not None else {}
    )


FIELDS = [
    ("pull_request", PULL, path)
    for path in (
        "action",
        "pull_request",
        "pull_request.number",
        "pull_request.head.sha",
        "pull_request.base",
        "sender.login",
    )
] + [
    ("issue_comment", SAID, path)
    for path in ("issue", "issue.number", "comment.id", "comment.body", "comment.user", "comment.user.login")
]


@pytest.mark.parametrize(("name", "event", "path"), FIELDS)
@pytest.mark.parametrize("value", [None, [], True, {"x": 1}])
def test_a_field_that_is_missing_or_of_another_kind_is_named(
    tmp_path: Path, name: str, event: dict[str, object], path: str, value: object
) -> None:
    with pytest.raises(UsageError, match=rf"the event's {path}[a-z.]* is (missing|\w+, not \w+)") as error:
        read(tmp_path, name, changed(event, path, value))
    assert error.value.code is Exit.USAGE


@pytest.mark.parametrize(("name", "event"), [("pull_request", PULL), ("issue_comment", SAID)])
def test_the_event_they_are_made_of_is_read(tmp_path: Path, name: str, event: dict[str, object]) -> None:
    assert "ann" in repr(read(tmp_path, name, event))


@pytest.mark.parametrize("name", ["pull_request", "issue_comment"])
@pytest.mark.parametrize(
    ("event", "why"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe{", "is not JSON"),
        (b"[" * 200_000, "is not JSON"),
        (b'{"a":' * 200_000, "is not JSON"),
        (b"null", "is missing"),
        (b"[]", "is missing"),
        (b"3", "is missing"),
        (b'"x"', "is missing"),
    ],
)  # fmt: skip
def test_an_event_that_is_none_is_refused(tmp_path: Path, name: str, event: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read(tmp_path, name, event)


def test_an_event_of_forty_megabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "event.json").open("wb") as file:
        file.truncate(40 * 2**20)
    with pytest.raises(UsageError, match="has more than"):
        a_job(tmp_path, "issue_comment").trigger()


def test_an_event_that_is_not_there_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"event\.json: No such file"):
        a_job(tmp_path, "issue_comment").trigger()
    (tmp_path / "event.json").mkdir()
    with pytest.raises(UsageError, match=r"event\.json: Is a directory"):
        a_job(tmp_path, "issue_comment").trigger()
    with pytest.raises(UsageError, match="GITHUB_EVENT_PATH is not set"):
        replace(a_job(tmp_path, "issue_comment"), event_file=None).trigger()


@pytest.mark.parametrize("payload", [[], "x", 3, True])
def test_a_payload_that_is_none_is_refused(tmp_path: Path, payload: object) -> None:
    with pytest.raises(UsageError, match="client_payload is not an object"):
        read(tmp_path, "repository_dispatch", {"action": "prime-train-stop", "client_payload": payload})


def test_the_step_leaves_with_a_code_and_a_sentence(job: Step, plane: dict[str, str]) -> None:
    did = job.run("stop", "issue_comment", changed(SAID, "comment.body", None), **plane)
    assert did.code == 2
    assert "::error title=prime-train::the event's comment.body is missing" in did.log
    assert "Traceback" not in did.log


# ------------------------------------------------------------------------------------------------------------
# secrets


def seen(job: Step, did: Did) -> str:
    """Return everything of the step that other people could read."""
    output = (
        "".join(comment["body"] for comment in job.fake.comments(job.repo, 1)) if job.fake.events() else ""
    )
    log = "\n".join(line for line in did.log.splitlines() if not line.startswith("::add-mask::"))
    return log + did.summary + json.dumps(did.outputs) + output


def test_a_secret_in_a_config_is_repeated_nowhere(job: Step) -> None:
    echoing = (
        f"setup: ['echo {SECRET}', 'curl -H \"Authorization: Bearer {SECRET}\" "
        "x']\nenvironment: "
        f"{{HF_TOKEN: {SECRET}}}\n"
    )
    job.commit({"configs/old.yaml": GOOD + echoing})
    job.commit({"configs/new.yaml": GOOD + echoing, "configs/old.yaml": GOOD}, "change")
    job.fake.add_pull(job.repo, "change", author="ann")
    did = job.run(
        "validate", "pull_request", job.event("pull_request"), PRIME_TRAIN_INPUT_SARIF="found.sarif"
    )
    assert did.code in (0, 1), did.log
    assert "setup" in did.summary
    assert SECRET not in seen(job, did) + (job.folder / "found.sarif").read_text()


def test_the_keys_of_the_control_plane_are_reported_to_github_alone_to_be_hidden(
    job: Step, plane: dict[str, str]
) -> None:
    key, secret = plane["PRIME_TRAIN_MASTER_KEY"], "AbCdEf/" * 5
    did = job.run(
        "status", "schedule", {}, **plane, PRIME_API_KEY="pit_secret_of_the_job", AWS_SECRET_ACCESS_KEY=secret
    )
    assert did.code == 0, did.log
    assert {f"::add-mask::{one}" for one in (key, "pit_secret_of_the_job", secret)} <= set(
        did.log.splitlines()
    )
    assert not [one for one in (key, "pit_secret_of_the_job", secret) if one in seen(job, did)]


def test_a_key_that_is_wrong_is_not_repeated_in_what_is_reported_of_it(
    job: Step, plane: dict[str, str]
) -> None:
    wrong = "ab" * 32
    did = job.run("status", "schedule", {}, **(plane | {"PRIME_TRAIN_MASTER_KEY": wrong}))
    assert did.code == 4, did.log
    assert "Traceback" not in did.log
    assert wrong not in seen(job, did)


def test_every_line_of_a_secret_is_hidden_and_none_is_a_command(capfd: pytest.CaptureFixture[str]) -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nc2Vj\n%0A::error::\n\n-----END PRIVATE KEY-----\n"
    hide({"GITHUB_ACTIONS": "true", "PRIME_TRAIN_GITHUB_APP_KEY": pem})
    assert capfd.readouterr().out.splitlines() == [
        "::add-mask::-----BEGIN PRIVATE KEY-----",
        "::add-mask::c2Vj",
        "::add-mask::%250A::error::",
        "::add-mask::-----END PRIVATE KEY-----",
    ]
    hide({"PRIME_TRAIN_GITHUB_APP_KEY": pem})
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    "text", ['{"users":[{"user":{"token":"TOKEN","client-key-data":"KEYKEYKEY="}}]}', KUBECONFIG]
)
def test_a_credential_inside_of_settings_is_hidden_too(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"
    hide({"GITHUB_ACTIONS": "true", "PRIME_TRAIN_KUBERNETES": text.replace("TOKEN", token)})
    hidden = capfd.readouterr().out.splitlines()
    assert {f"::add-mask::{token}", "::add-mask::KEYKEYKEY="} <= set(hidden)
    assert not {"::add-mask::{", "::add-mask::-"} & set(hidden), "half of the log would be hidden"


def test_every_secret_that_a_step_may_be_given_is_redacted_and_nothing_else(
    capfd: pytest.CaptureFixture[str],
) -> None:
    public = {
        "CI": "true",
        "PATH": "/bin",
        "PRIME_TRAIN_SLACK_CHANNEL": "C0123ABCD",
        "AWS_REGION": "eu-west-1",
    }
    hide(
        {"GITHUB_ACTIONS": "true", "PRIME_TRAIN_RUN_SECRETS": "JUDGE_*,*", **public}
        | {name: f"value of {name}" for name in SECRETS.split()}
    )
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(
        f"::add-mask::value of {name}" for name in SECRETS.split()
    )


# ------------------------------------------------------------------------------------------------------------
# comments


def test_a_command_with_a_run_that_is_none_does_nothing(job: Step, plane: dict[str, str]) -> None:
    did = job.run(
        "stop",
        "issue_comment",
        changed(SAID, "comment.body", "/prime-train stop \ud800/../::error::"),
        **plane,
    )
    assert did.code == 2, did.log
    assert (did.outputs, "Traceback" in did.log) == ({}, False)
    mask, ours = commands(did.log)
    assert mask == f"::add-mask::{plane['PRIME_TRAIN_MASTER_KEY']}"
    assert ours.startswith("::error title=prime-train::there is no run ?/../::error::%0A")
