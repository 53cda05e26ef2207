"""The environments of hosted training, as prime-rl's sources of rollouts."""

import re
from dataclasses import dataclass

from prime_train.interop.imports.draft import Draft, Section
from prime_train.interop.imports.toml_text import Table
from prime_train.spec.tree import Listing, Mapping, Node, Plain, Scalar, find, plain

INCLUDED = {"alphabet-sort": "agent", "gsm8k": "agent", "reverse-text": "agent", "wordle": "player"}
"""Tasksets that are part of prime-rl 559b4477 and need no key, with the name of the role that the model has in
each. (pyproject.toml of that commit, and its examples.)
"""
_HUB = re.compile(r"(?P<owner>[A-Za-z0-9][A-Za-z0-9_-]{0,63})/(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,63})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+!_-]{0,40}")
_BUILT_IN = ("harbor", "lean", "nemo_gym", "openenv", "textarena")
"""Tasksets that are part of verifiers itself."""
_OWN = {"max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens"}
_SERVED = "it is about how the service runs environments"
_LEGACY = (
    "prime-rl loads only tasksets of verifiers v1, and the file does not say that this package has one: check it, and "
    "install it under setup if it is not on Prime's hub; then write its settings as env.taskset of rl.toml"
)


@dataclass(frozen=True)
class Hub:
    """A package of Prime's hub of environments. `owner`: empty: it is part of prime-rl; `version`: empty: the
    newest.
    """

    owner: str
    name: str
    version: str = ""


def source_of(draft: Draft, found: Section, item: Node) -> tuple[Table | None, list[Hub]]:
    """Return prime-rl's source, and the packages that have to be installed for it; no source if the file names none."""
    hubs: list[Hub] = []
    version, given = found.text("version"), found.text("name")
    taskset, harness = found.take("taskset"), found.take("harness")
    legacy = found.text("id")
    env: Table = {}
    if taskset is not None and isinstance(taskset.value, Mapping):
        parts = _table(taskset.value)
        ident = _plugin(
            draft, taskset.value, found.name("taskset.id"), str(parts.get("id", "")), version, hubs
        )
        env["taskset"] = {**parts, "id": ident}
    else:
        ident = _plugin(draft, item, found.name("id"), legacy, version, hubs)
        env["taskset"] = {"id": ident}
        if ident and ident not in INCLUDED:
            draft.refuse(item, found.name("id"), f"{legacy[:60]}: {_LEGACY}")
    if not ident:
        return None, hubs
    role = INCLUDED.get(ident, "agent")
    agent: Table = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
    if harness is not None and isinstance(harness.value, Mapping):
        agent = _agent(draft, harness.value, found.name("harness"), hubs)
    for key in sorted(_OWN):
        entry = found.take(key)
        if entry is not None:
            agent[key] = plain(entry.value)
    retries = found.take("max_retries")
    if retries is not None:
        agent["retries"] = {"max_retries": plain(retries.value)}
    env[role] = agent
    source: Table = {"name": given or ident}
    for key, name in (("ratio", "ratio"), ("group_size", "group_size"), ("num_examples", "num_examples")):
        entry = found.take(key)
        if entry is not None:
            source[name] = plain(entry.value)
    group = found.take("rollouts_per_example")
    if group is not None:
        source["group_size"] = plain(group.value)
    sampling = found.take("sampling")
    if sampling is not None:
        source["sampling"] = {
            "max_completion_tokens" if key == "max_tokens" else key: value
            for key, value in _table(sampling.value).items()
        }
    args = found.take("args")
    if args is not None and args.value.size > 1:
        why = "these are arguments of a package's load_environment: write the same as settings of env.taskset in rl.toml"
        draft.refuse(args, found.name("args"), why)
    other = "write what it says as settings of this source in rl.toml"
    found.close({"pool": _SERVED, "multiplex": _SERVED}, {"timeout": other, "retries": other})
    return {**source, "env": env}, hubs


def hubs_of(draft: Draft, sources: Node) -> list[Hub]:
    """Return the packages that have to be installed for sources in prime-rl's own form."""
    hubs: list[Hub] = []
    for item in sources.items if isinstance(sources, Listing) else ():
        found = find(item, ("env", "taskset", "id"))
        if isinstance(found, Scalar) and found.text not in _BUILT_IN:
            _plugin(draft, found, "env.taskset.id", found.text, "", hubs)
    return hubs


def _plugin(draft: Draft, place: Node, what: str, text: str, version: str, hubs: list[Hub]) -> str:
    """Return the id by which prime-rl loads a taskset or a harness, and note its package."""
    ident, _, own = text.strip().partition("@")
    version = own or version
    if version in ("latest", "@latest"):
        version = ""
    found = _HUB.fullmatch(ident)
    if version and not _VERSION.fullmatch(version):
        draft.refuse(place, what, f"{version[:40]!r} is no version: write its number, or none for the newest")
        version = ""
    name = (found["name"] if found else ident).replace("_", "-").lower()
    if not _NAME.fullmatch(name):
        draft.refuse(place, what, f"{text[:60]!r} is not the id of an environment: write owner/name")
        return ""
    if name in INCLUDED:
        own_one = "the taskset of this name that is part of prime-rl is used"
        draft.leave(place, what, f"{own_one}, whatever version the hub has")
        hubs.append(Hub("", name))
    elif found is not None:
        hubs.append(Hub(found["owner"], found["name"], version))
    elif what.endswith("taskset.id"):
        why = "the file does not say where this package comes from: add what installs it beside prime-rl to setup"
        draft.refuse(place, what, f"{name[:60]}: {why}")
    return name


def _agent(draft: Draft, tree: Mapping, what: str, hubs: list[Hub]) -> Table:
    """Return the role of the model: the harness, and the runtime in which it works."""
    parts = _table(tree)
    runtime = parts.pop("runtime", None)
    ident = str(parts.get("id", "null"))
    if "/" in ident:
        ident = _plugin(draft, tree, f"{what}.id", ident, "", hubs)
    # The harness was renamed in verifiers.
    parts["id"] = "bash" if ident == "default" else ident
    made: Table = {"harness": parts}
    if isinstance(runtime, dict):
        made["runtime"] = runtime
    return made


def _table(node: Node) -> dict[str, Plain]:
    value = plain(node)
    return value if isinstance(value, dict) else {}
