"""What an agent that was started over SSH adopts of the environment of its machine's image, and what it never
adopts.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_agent.machine_environment import (
    ENVIRONMENT_BYTES_MAX,
    VARIABLES_MAX,
    MachineEnvironment,
    adopted,
    joined_path,
    machine_environment,
    parsed_copy,
    parsed_environ,
)

SESSION = {
    "SSH_CONNECTION": "192.0.2.1 5000 192.0.2.2 22",
    "PATH": "/usr/bin:/bin",
    "HOME": "/root",
    "LANG": "C",
}
IMAGE = {
    "PATH": "/opt/conda/bin:/usr/bin",
    "HF_HOME": "/workspace/hf",
    "LANG": "C.UTF-8",
    "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
}


def process(folder: Path, environment: dict[str, str], *, name: str = "start.sh") -> Path:
    """Return the folder with which the kernel describes a first process."""
    folder.mkdir(exist_ok=True)
    (folder / "environ").write_bytes(
        b"".join(f"{key}={value}".encode() + b"\0" for key, value in environment.items())
    )
    (folder / "comm").write_text(f"{name}\n")
    return folder


def seen(own: dict[str, str], first: Path, *copies: Path, marks: tuple[Path, ...] = ()) -> MachineEnvironment:
    return machine_environment(own, first_process=first, copies=copies, marks=marks)


def test_commands_of_a_session_over_ssh_see_what_the_image_sets(tmp_path: Path) -> None:
    found = seen(SESSION, process(tmp_path / "1", IMAGE))
    assert found.variables == {**SESSION, **IMAGE, "PATH": "/opt/conda/bin:/usr/bin:/bin"}
    assert found.adopted == ("HF_HOME", "LANG", "LD_LIBRARY_PATH", "PATH")


def test_an_agent_that_is_a_containers_first_process_has_its_environment_already(tmp_path: Path) -> None:
    own = {"PATH": "/app/bin", "HOME": "/app"}
    assert seen(own, process(tmp_path / "1", IMAGE)) == MachineEnvironment(own)


@pytest.mark.parametrize(
    ("name", "more", "is_marked", "is_container"),
    [
        ("systemd", {}, False, False),
        ("init", {}, False, False),
        ("systemd", {"container": "docker"}, False, True),
        ("systemd", {}, True, True),
        ("docker-init", {}, False, True),
        ("sh", {}, False, True),
    ],
)
def test_the_first_process_of_a_whole_machine_sets_nothing(
    name: str, more: dict[str, str], is_marked: bool, is_container: bool, tmp_path: Path
) -> None:
    (tmp_path / "mark").touch()
    found = seen(
        SESSION,
        process(tmp_path / "1", IMAGE | more, name=name),
        marks=(tmp_path / "mark",) if is_marked else (),
    )
    assert ("HF_HOME" in found.variables) == is_container


def test_a_copy_that_the_provider_left_counts_where_the_first_process_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "rp_environment").write_text(
        'export HF_HOME="/workspace/hf"\nexport RUNPOD_API_KEY="rpa_1"\n'
    )
    found = seen(SESSION, tmp_path / "none", tmp_path / "missing", tmp_path / "rp_environment")
    assert (found.variables["HF_HOME"], found.source) == ("/workspace/hf", str(tmp_path / "rp_environment"))
    assert "RUNPOD_API_KEY" not in found.variables
    assert seen(SESSION, tmp_path / "none", tmp_path / "missing") == MachineEnvironment(SESSION)


OF_SESSIONS = "HOME USER SHELL PWD TERM HOSTNAME SSH_AUTH_SOCK XDG_RUNTIME_DIR _ NOTIFY_SOCKET"
OURS = "PRIME_TRAIN_HOME PRIME_API_KEY PT_CRASH VAST_API_KEY"
SECRETS = (
    "RUNPOD_API_KEY CONTAINER_API_KEY JUPYTER_PASSWORD OPEN_BUTTON_TOKEN HF_TOKEN AWS_SECRET_ACCESS_KEY "
    "PUBLIC_KEY"
)


@pytest.mark.parametrize("name", f"{OF_SESSIONS} {OURS} {SECRETS}".split())
def test_what_belongs_to_a_process_or_to_prime_train_or_is_a_secret_is_never_adopted(name: str) -> None:
    found = adopted({"PATH": "/bin"}, {name: "theirs", "HF_HOME": "/hf"}, "an image")
    assert found.variables == {"PATH": "/bin", "HF_HOME": "/hf"}
    assert list(found.left_out) == [name]


def test_the_description_for_people_has_names_and_reasons_and_no_value() -> None:
    found = adopted(
        SESSION,
        IMAGE | {"RUNPOD_API_KEY": "rpa_of_the_pod", "HOSTNAME": "pod-7"},
        "the container's first process",
    )
    assert list(found.lines()) == [
        "adopted from the container's first process, values not shown: HF_HOME, LANG, LD_LIBRARY_PATH, PATH",
        "not adopted, because it belongs to one session or process: HOSTNAME",
        "not adopted, because its name is that of a secret, and a run gets only those that its config names: "
        "RUNPOD_API_KEY",
    ]
    assert "rpa_of_the_pod" not in repr(found)
    assert "/workspace" not in repr(found)


def test_folders_that_depend_on_where_a_command_runs_are_not_searched_for_programs() -> None:
    assert joined_path("/opt/bin::.:bin:/usr/bin", "/usr/bin:/bin:") == "/opt/bin:/usr/bin:/bin"
    assert joined_path("", ":.") != ""


@pytest.mark.parametrize(
    ("data", "variables"),
    [
        (b"A=1\0B=x=y\0", {"A": "1", "B": "x=y"}),
        (b"A=1\0A=2\0", {"A": "1"}),
        (b"A=with\nlines\0", {"A": "with\nlines"}),
        (b"BASH_FUNC_x%%=() { :; }\0A-B=1\0=1\0nothing\0 C=1\0\xc3\xa9=1\0", {}),
        (b"A=", {"A": ""}),
        (b"", {}),
        (b"A=\xff\0", {"A": "\udcff"}),
    ],
)
def test_an_environment_is_read_as_the_kernel_writes_it(data: bytes, variables: dict[str, str]) -> None:
    assert parsed_environ(data) == variables


def test_an_environment_without_end_is_cut_between_two_variables(tmp_path: Path) -> None:
    folder = process(tmp_path / "1", {})
    (folder / "environ").write_bytes(b"A=1\0B=" + b"x" * ENVIRONMENT_BYTES_MAX)
    assert seen(SESSION, folder).adopted == ("A",)
    assert (
        len(parsed_environ(b"".join(b"V%d=1\0" % number for number in range(2 * VARIABLES_MAX))))
        == VARIABLES_MAX
    )


def test_a_copy_is_read_without_a_shell() -> None:
    text = """
# a comment
export A="one two"
B='three'
C=four # and a comment
D=$(touch /tmp/never)
E=`id`
export F=$HOME/x
G="unclosed
H=a b
not a line
"""
    assert parsed_copy(text) == {"A": "one two", "B": "three", "C": "four"}


@given(st.binary(max_size=300), st.text(max_size=300))
def test_whatever_a_machine_wrote_its_names_are_names(data: bytes, text: str) -> None:
    for name in {**parsed_environ(data), **parsed_copy(text)}:
        assert name.isidentifier()
        assert name.isascii()
