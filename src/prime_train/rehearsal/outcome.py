"""What comes of a rehearsal: a config that says what was found, and whether it may be launched."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Call, Operation
from prime_train.rehearsal.dress import Dressed, dressed
from prime_train.rehearsal.rehearsal import Rehearsal, lowered_spec
from prime_train.rehearsal.written_config import config_values, differences
from prime_train.spec.overrides import config_text
from prime_train.spec.reader import Config, read_text
from prime_train.spec.rehearsed import rehearsal_digest
from prime_train.spec.spec import RunSpec
from prime_train.spec.tree import Plain, plain
from prime_train.text.invocations import command
from prime_train.trainers.registry import TRAINERS

LABEL = "the config that was written"
_KEY = re.compile(r"^rehearsed:.*$", re.MULTILINE)


@dataclass
class Outcome:
    """A rehearsal and its config. `given`: the user's own config, None if there was a command alone.
    `differences`: where it says otherwise than what was found, a sentence each.
    """

    found: Rehearsal
    given: Config | None
    values: dict[str, Plain]
    differences: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.values["name"])

    @property
    def text(self) -> str:
        """The config, which names the rehearsal if it has passed."""
        values = dict(self.values)
        values.pop("rehearsed", None)
        if self.found.is_proven and (spec := self.spec) is not None:
            values["rehearsed"] = rehearsal_digest(spec)
        return config_text(values)

    @property
    def spec(self) -> RunSpec | None:
        """The run that the config describes; None if it is no valid config."""
        return read_text(config_text(self.values), LABEL).spec

    @property
    def is_as_given(self) -> bool:
        """Whether the user's own config says all that was found."""
        return self.given is not None and not self.differences

    def dress(self, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        """Run the config by prime-train itself, and remember how that went."""
        found, read = self.found, read_text(config_text(self.values), LABEL)
        if read.spec is None or not read.is_fit:
            found.dressed = Dressed(why="; ".join(finding.message for finding in read.findings))
            return
        say(
            "dress rehearsal: the config is run by prime-train itself, and its machine is taken away in a save"
        )
        trainer = read.spec.trainer
        code = trainer.code.model_copy(update={"folder": str(found.request.folder.absolute()), "repo": None})
        command = lowered_spec(found).trainer.command
        setup = found.request.spec.setup
        spec = read.spec.model_copy(
            update={"setup": setup, "trainer": trainer.model_copy(update={"code": code, "command": command})}
        )
        found.dressed = dressed(spec, found.saves, environment, seconds=found.until_second_save_s, say=say)

    def written_to(self, config: Path | None, save: Path | None) -> Path | None:
        """Write the config to the new file `save`; else, if the user's own config was proven as it is, note
        that in it. Return the file that was written, if one was.
        """
        if save is not None and self.found.saves.saves:
            save.parent.mkdir(parents=True, exist_ok=True)
            save.write_text(self.text, encoding="utf-8")
            return save
        if config is None or not self.is_as_given or not self.found.is_proven:
            return None
        digest = rehearsal_digest(self.found.request.spec)
        text = config.read_text(encoding="utf-8")
        line = f"rehearsed: {digest}  # by {command(Call(Operation.TRY))}"
        changed = _KEY.sub(line, text) if _KEY.search(text) else f"{text.rstrip()}\n{line}\n"
        after = read_text(changed, str(config)).spec
        if after is None or after.rehearsed != digest:
            return None
        config.write_text(changed, encoding="utf-8")
        return config


def outcome_of(found: Rehearsal, given: Config | None, *, usd: float, name: str) -> Outcome:
    """Return the config of a rehearsal: of a command alone a new one, else the user's own with what was found
    beside it. A kind of trainer that is known by name needs nothing that was found.
    """
    values = config_values(found, usd=usd, name=name)
    if given is None or given.root is None:
        return Outcome(found, None, values)
    own = plain(given.root)
    assert isinstance(own, dict)
    if TRAINERS[found.request.spec.trainer.kind].layout is not None or not found.saves.saves:
        return Outcome(found, given, own)
    said = differences(values, own, found.request.spec)
    if not said:
        return Outcome(found, given, own)
    merged = dict(own)
    for section in ("trainer", "checkpoints"):
        kept, new = own.get(section), values.get(section)
        if isinstance(new, Mapping):
            merged[section] = {**(kept if isinstance(kept, Mapping) else {}), **new}
    return Outcome(found, given, merged, tuple(said))
