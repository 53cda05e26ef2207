"""Help by groups, with -h as with --help, and completion in the user's shell."""

from itertools import chain

import pytest

from prime_train.cli.help.groups import GROUPS
from prime_train.cli.verbs import VERBS, app
from tests.cli.shell import Shell


def test_every_verb_is_in_one_group_and_is_shown_there(shell: Shell) -> None:
    verbs = {verb.__name__.replace("_", "-") for verb in VERBS}
    verbs |= {str(group.typer_instance.info.name) for group in app.registered_groups if group.typer_instance}
    assert sorted(chain(*GROUPS.values())) == sorted(verbs)
    said = shell.ok("-h")
    assert said == shell.ok("--help")
    places = [said.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    for name in chain(*GROUPS.values()):
        assert f"\n  {name} " in said


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_verbs_are_completed_in_every_shell(shell: Shell, name: str) -> None:
    typed = {"COMP_WORDS": "prime-train sta", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "prime-train sta"}
    done = shell.run(_PRIME_TRAIN_COMPLETE=f"complete_{name}", _TYPER_COMPLETE_FISH_ACTION="get-args", **typed)
    assert "status" in done.stdout
    assert "validate" not in done.stdout
