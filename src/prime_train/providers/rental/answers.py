"""The tables of known answers: `answers.toml` in the package of a provider's adapter."""

import tomllib
from importlib.resources import files

from prime_train.providers.answers.known import BELIEF, KnownAnswer
from prime_train.providers.kinds import PROVIDERS

FILE = "answers.toml"


def known_answers(provider: str) -> tuple[KnownAnswer, ...]:
    """Return the answers that the provider's adapter relies on, in the order in which an answer is looked up
    among them; empty if it has no table, as for Kubernetes, whose API has one description for all clusters.
    """
    package = PROVIDERS[provider].implementation.partition(":")[0].rpartition(".")[0]
    file = files(package) / FILE
    return read_answers(file.read_text(encoding="utf-8")) if file.is_file() else ()


def read_answers(text: str) -> tuple[KnownAnswer, ...]:
    """Return the answers of a table's text. Raises ValueError for a source that the table does not
    explain.
    """
    content = tomllib.loads(text)
    return tuple(_answer(row, content["sources"]) for row in content["answer"])


def _answer(row: dict[str, object], sources: dict[str, str]) -> KnownAnswer:
    method, _, path = str(row["call"]).partition(" ")
    named = str(row["source"])
    if named != BELIEF and named not in sources:
        raise ValueError(f"{row['call']}: its source {named!r} is not among the sources")
    more = {name: row[name] for name in ("asks", "fields") if name in row}
    return KnownAnswer(
        method,
        path,
        tuple(row["status"]),  # type: ignore[arg-type]  # the table is a part of this package
        str(row["says"]),
        sources.get(named, BELIEF),
        values={path: tuple(values) for path, values in row.get("values", {}).items()},  # type: ignore[attr-defined]  # likewise
        maps=tuple(row.get("maps", ())),  # type: ignore[arg-type]  # likewise
        **more,  # type: ignore[arg-type]  # likewise
    )
