"""A config of Prime Intellect's hosted training (`prime train`): a run of prime-rl whose machines the service chose.

Its LoRA runs had a form of their own, which is carried over to prime-rl's settings of the commit that new configs
are written for. Its full runs had prime-rl's own form, with a few keys for the service beside it.
"""

import math
from dataclasses import dataclass, field

from prime_train.errors import UsageError
from prime_train.estimate.models.hardware_presets import PRESETS, Preset
from prime_train.interop.imports.draft import ONE_MACHINE, Draft, Section, name_of
from prime_train.interop.imports.gpus import kind_of
from prime_train.interop.imports.hosted_sources import Hub, hubs_of, source_of
from prime_train.interop.imports.toml_text import Table, toml_text
from prime_train.planning.new_configs.new_config import PRIME_RL, Answers, prime_rl_settings
from prime_train.planning.new_configs.plan import GPUS, KEPT, InitChoices
from prime_train.planning.new_configs.text import KNOWN_REF, SAVE_EVERY
from prime_train.spec.tree import Listing, Mapping, Plain, Scalar, TreeEntry, find, plain
from prime_train.trainers.prime_rl.install import install_hub_environment, install_own_environment
from prime_train.trainers.prime_rl.rules.renderers import renderers

FILE = "rl.toml"
LEARNING_RATE = 1e-4
LORA_ALPHA = 16.0
BATCH, GROUP, STEPS = 128, 8, 100
"""What the service takes for a key that is not there. (docs.primeintellect.ai/hosted-training/advanced-configs and
the models of the command line `prime`, read November 2026.)
"""
LORA_RANK = 16
"""prime-rl's own default: the service's form has no key for it."""
PROMPT_TOKENS_MIN = 512
KEEP_ALL = 10_000
_IGNORED = "hosted training ignores it, too"
_WHY = {
    **dict.fromkeys(("trajectory_strategy", "trajectoryStrategy", "buffer"), _IGNORED),
    "adapters": "the adapter is in each checkpoint, and the bucket keeps those",
    "infrastructure": "it is about the service's machines",
    "cluster_name": "it is about the service's machines",
    "max_async_level": "prime-rl bounds how old a policy may be by orchestrator.max_off_policy_steps",
    "oversampling_factor": "prime-rl finds the number of rollouts at a time by itself",
}
_FILTERS = "write what it filters as orchestrator.train.source.curriculum.gates of rl.toml"
_REFUSED = {
    "checkpoint_id": "it is a checkpoint at the service: download it, and start from it with trainer.prime_rl",
    "teacher": "write it as orchestrator.algo of rl.toml, with a server that the machine reaches",
    "val": "prime-rl has no validation of this kind: write its environments as eval",
    "pre_batch_filters": _FILTERS,
    "post_batch_filters": _FILTERS,
    "tailscale": "a machine joins no network of yours: let the environments reach what they need otherwise",
    "run_config": "write its keys into rl.toml, as far as prime-rl has them",
    "env_files": "no file of secrets goes along: add the names of its variables to secrets",
    "env_file": "no file of secrets goes along: add the names of its variables to secrets",
}


@dataclass
class _Run:
    """What of the file is needed in several places."""

    model: str
    sampling: Table = field(default_factory=dict)
    renderer: Table = field(default_factory=dict)
    hubs: list[Hub] = field(default_factory=list)


def is_hosted(root: Mapping) -> bool:
    """Return whether this is a config of hosted training, for LoRA or for all weights."""
    model, env = root.entry("model"), root.entry("env")
    is_lora = (
        model is not None
        and isinstance(model.value, Scalar)
        and (
            (env is not None and isinstance(env.value, Listing))
            or root.entry("rollouts_per_example") is not None
            or (root.entry("max_steps") is not None and root.entry("batch_size") is not None)
        )
        and root.entry("inference") is None
    )
    return is_lora or _is_of_prime_rl(root)


def _is_of_prime_rl(root: Mapping) -> bool:
    orchestrator = root.entry("orchestrator")
    return orchestrator is not None and isinstance(orchestrator.value, Mapping)


def read_hosted(draft: Draft, root: Mapping) -> None:
    """Fill the draft with a run of prime-rl."""
    if _is_of_prime_rl(root):
        _read_full(draft, root)
    else:
        _read_lora(draft, root)


# ------------------------------------------------------------------------------------------------------------
# LoRA


def _read_lora(draft: Draft, root: Mapping) -> None:
    top = Section(draft, root)
    run = _Run(top.text("model"))
    draft.name = name_of(top.text("name"))
    loss = top.take("loss")
    if loss is not None and plain(loss.value) != "rl":
        why = "only the loss rl is carried over: write orchestrator.algo of rl.toml for the other"
        draft.refuse(loss, "loss", why)
    steps = _whole(draft, top, "max_steps", STEPS)
    rate, alpha = _number(draft, top, "learning_rate"), _number(draft, top, "lora_alpha")
    values: Table = {
        "model": {"name": run.model},
        "trainer": {
            "optim": {"type": "adamw", "lr": rate or LEARNING_RATE},
            "model": {"lora": {"rank": LORA_RANK, "alpha": alpha or LORA_ALPHA}},
        },
        "orchestrator": _orchestrator(draft, top, root, run),
        "ckpt": {"keep_last": KEPT},
    }
    draft.chosen.append(
        f"trainer.model.lora.rank of {FILE}: {LORA_RANK}, prime-rl's own, as the service's files have no key for it"
    )
    _checkpoints(draft, top.section("checkpoints"))
    monitors = _wandb(draft, top.section("wandb"))
    if monitors:
        values["monitors"] = {"wandb": monitors}
    settings = _fitting(draft, root, run)
    if settings is not None:
        _set_hardware(draft, values, settings, run)
    draft.setup += map(_install, run.hubs)
    _write(draft, values, steps)
    top.close(_WHY, _REFUSED)


def _orchestrator(draft: Draft, top: Section, root: Mapping, run: _Run) -> Table:
    """Return prime-rl's settings of rollouts."""
    batch, group = _whole(draft, top, "batch_size", BATCH), _whole(draft, top, "rollouts_per_example", GROUP)
    if batch % group:
        why = f"batch_size {batch} is no multiple of rollouts_per_example {group}, which prime-rl rejects: change one"
        draft.refuse(root, "batch_size", why)
    run.sampling = _sampling(draft, top.section("sampling"), run)
    made: Table = {"batch_size": batch, "group_size": group}
    inflight = top.take("max_inflight_rollouts")
    if inflight is not None:
        made["concurrency"] = {"max_inflight": plain(inflight.value)}
    sources = _sources(draft, top.take("env"), "env", run)
    if not sources:
        draft.refuse(root, "env", "the file names no environment: write [[env]] with its id")
    made["train"] = {"sampling": run.sampling, "source": sources}
    evaluation = _evaluation(draft, top.section("eval"), run)
    if evaluation:
        made["eval"] = evaluation
    if run.renderer or run.model not in renderers():
        made["renderer"] = run.renderer or {"name": "default"}
    return made


def _install(hub: Hub) -> str:
    """Return the command that installs an environment beside prime-rl."""
    if not hub.owner:
        return install_own_environment(hub.name)
    return install_hub_environment(hub.owner, hub.name, hub.version)


def _sampling(draft: Draft, found: Section, run: _Run, *, evaluates: bool = False) -> Table:
    """Return the settings of sampling, and set the renderer that writes prompts as the file asks."""
    made: Table = {}
    for key, name in (
        ("max_tokens", "max_completion_tokens"),
        ("temperature", "temperature"),
        ("extra_body",) * 2,
    ):
        entry = found.take(key)
        if entry is not None:
            made[name] = plain(entry.value)
    for key in ("enable_thinking", "reasoning_effort"):
        entry = found.take(key)
        if entry is None:
            continue
        value, renderer = plain(entry.value), renderers().get(run.model)
        if evaluates and key == "reasoning_effort":
            made[key] = value
        elif evaluates and run.renderer.get(key) != value:
            why = "prime-rl writes the prompts of training and of evaluation alike: give both the same"
            draft.refuse(entry, found.name(key), why)
        elif renderer is None:
            why = "prime-rl knows no renderer of this model: write orchestrator.renderer of rl.toml, with this key"
            draft.refuse(entry, found.name(key), why)
        elif not evaluates:
            run.renderer = {"name": renderer, **run.renderer, key: value}
    why = "prime-rl has no such schedule: write one temperature"
    found.close({}, {"temp_scheduler": why})
    return made


def _sources(draft: Draft, entry: TreeEntry | None, what: str, run: _Run) -> list[Plain]:
    items = entry.value.items if entry is not None and isinstance(entry.value, Listing) else ()
    if entry is not None and not isinstance(entry.value, Listing):
        draft.refuse(entry, what, "a list is expected here: write [[env]]")
    made: list[Plain] = []
    names = set[str]()
    for item in items:
        source, hubs = source_of(draft, Section(draft, item, what), item)
        run.hubs += [hub for hub in hubs if hub not in run.hubs]
        if source is not None:
            name = first = str(source["name"])
            for number in range(2, len(items) + 2):
                if name not in names:
                    break
                name = f"{first}-{number}"
            names.add(name)
            made.append({**source, "name": name})
    return made


def _evaluation(draft: Draft, found: Section, run: _Run) -> Table:
    made: Table = {}
    keys = ("interval", "num_examples", "skip_first_step")
    for key, name in (*((key, key) for key in keys), ("rollouts_per_example", "group_size")):
        entry = found.take(key)
        if entry is not None:
            made[name] = plain(entry.value)
    base = found.take("eval_base_model")
    if base is not None and "skip_first_step" not in made:
        made["skip_first_step"] = plain(base.value) is False
    sampling = _sampling(draft, found.section("sampling"), run, evaluates=True)
    sources = _sources(draft, found.take("env"), "eval.env", run)
    found.close({})
    # Without an environment, the service evaluates nothing.
    return {**made, **({"sampling": sampling} if sampling else {}), "source": sources} if sources else {}


def _checkpoints(draft: Draft, found: Section) -> None:
    interval, keep = found.take("interval"), found.take("keep_cloud")
    every = plain(interval.value) if interval is not None else None
    kept = plain(keep.value) if keep is not None else None
    draft.sections["checkpoints"] = {
        "every_steps": every if isinstance(every, int) and every > 0 else SAVE_EVERY,
        "keep": KEEP_ALL if kept == -1 else kept if isinstance(kept, int) and kept > 0 else 3,
    }
    found.close({})


def _wandb(draft: Draft, found: Section) -> Table:
    made: Table = {key: text for key in ("project", "entity", "name") if (text := found.text(key))}
    found.close({})
    _watch_wandb(draft, made)
    return made


def _watch_wandb(draft: Draft, made: Table) -> None:
    if isinstance(made.get("project"), str):
        entity = {"entity": made["entity"]} if made.get("entity") else {}
        draft.sections["wandb"] = {"project": made["project"], **entity}
        draft.secrets += [name for name in ("WANDB_API_KEY",) if name not in draft.secrets]


def _whole(draft: Draft, top: Section, key: str, default: int) -> int:
    entry = top.take(key)
    value = plain(entry.value) if entry is not None else default
    if entry is None or (isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9):
        return value if isinstance(value, int) else default
    draft.refuse(entry, key, "a whole number above 0 is expected here")
    return default


def _number(draft: Draft, top: Section, key: str) -> float | None:
    entry = top.take(key)
    value = plain(entry.value) if entry is not None else None
    if entry is None:
        return None
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 < value < 1e6
        and math.isfinite(value)
    ):
        return float(value)
    draft.refuse(entry, key, "a number above 0 is expected here")
    return None


# ------------------------------------------------------------------------------------------------------------
# the machine


def _fitting(draft: Draft, root: Mapping, run: _Run) -> InitChoices | None:
    """Return the settings for the smallest machine of a usual kind that the model fits, as `init` finds them."""
    why = ""
    for preset in (PRESETS[0], PRESETS[1]):
        for gpus in GPUS:
            try:
                return _settings(run.model, preset, gpus)
            except UsageError as error:
                why = why or str(error)
    place = root.entry("model")
    fix = "choose a machine with hardware.gpus and hardware.count, and write [deployment] of rl.toml for it"
    draft.refuse(place if place is not None else root, "model", f"{why[:300]}: {fix}")
    return None


def _settings(model: str, preset: Preset, gpus: int) -> InitChoices:
    return prime_rl_settings(Answers(model, preset.name, gpus, "", 1), lora=True, steps=1, ref="", name="run")


def _set_hardware(draft: Draft, values: Table, settings: InitChoices, run: _Run) -> None:
    gpus, length = settings.wanted.gpus, settings.seq_len
    draft.gpus = [settings.wanted.preset.kind]
    for other in PRESETS:
        try:
            made = _settings(run.model, other, gpus)
        except UsageError:
            continue
        same = (made.seq_len, made.tensor_parallel) == (length, settings.tensor_parallel)
        if same and other.gb >= settings.wanted.preset.gb and other.kind not in draft.gpus:
            draft.gpus.append(other.kind)
    draft.count, draft.disk_gib, draft.spot = gpus, settings.disk_gib, "prefer"
    draft.secrets += ["HF_TOKEN"] if settings.wanted.gated and "HF_TOKEN" not in draft.secrets else []
    draft.chosen.append(
        f"hardware and {FILE}: the smallest machine that the model fits, and seq_len {length}, as the service chose both"
    )
    values["seq_len"] = length
    values["deployment"] = {
        "gpus_per_node": gpus,
        "num_train_gpus": settings.train_gpus,
        "num_infer_gpus": settings.infer_gpus,
    }
    parallel = {"tensor_parallel_size": settings.tensor_parallel} if settings.tensor_parallel > 1 else {}
    values["inference"] = {"vllm": {"max_model_len": length, **parallel, "gpu_memory_utilization": 0.9}}
    tokens = run.sampling.get("max_completion_tokens")
    if isinstance(tokens, int) and tokens > length - PROMPT_TOKENS_MIN:
        draft.refuse_line(
            1,
            "sampling.max_tokens",
            f"{tokens} tokens and a prompt do not fit the {length} of seq_len, the most that is written by itself: "
            "choose a machine with more memory, and raise seq_len and max_model_len of rl.toml",
        )


def _write(draft: Draft, values: Table, steps: int | None) -> None:
    """Set the trainer, and the file that holds the values."""
    draft.trainer = {"kind": PRIME_RL, **({"steps": steps} if steps else {})}
    draft.trainer["prime_rl"] = {"config": FILE, "ref": KNOWN_REF}
    draft.files[FILE] = toml_text(values)


# ------------------------------------------------------------------------------------------------------------
# all weights


_OF_SERVICE = ("name", "type", "image_tag", "gpu_type", "env_file", "env_files")
_OF_RUN = ("max_steps", "run", "resume", "slurm", "clean", "output_dir", "dry_run")
"""What prime-train says on prime-rl's command line."""
_REFUSED_FULL = {
    "image_tag": "it names a version of prime-rl's image: write the commit of that version as trainer.prime_rl.ref",
    "env_file": _REFUSED["env_file"],
    "env_files": _REFUSED["env_files"],
}
GPUS_MAX = 16


def _read_full(draft: Draft, root: Mapping) -> None:
    """Take over a config in prime-rl's own form: what prime-train says itself goes to the run's config."""
    top = Section(draft, root)
    values = plain(root)
    assert isinstance(values, dict)
    made: Table = {key: value for key, value in values.items() if key not in (*_OF_SERVICE, *_OF_RUN)}
    draft.name = name_of(top.text("name"))
    for key in _OF_SERVICE:
        entry = top.take(key)
        if entry is not None and key in _REFUSED_FULL:
            draft.refuse(entry, key, _REFUSED_FULL[key])
        elif key == "gpu_type":
            _take_kind(draft, entry, root)
    for key in ("run", "clean", "output_dir", "dry_run"):
        entry = top.take(key)
        if entry is not None:
            draft.leave(entry, key, "prime-train gives the run its name and folder")
    for key in ("resume", "slurm"):
        entry = top.take(key)
        if entry is not None:
            draft.refuse(entry, key, "prime-train starts and resumes the run itself: delete it")
    _take_deployment(draft, top.section("deployment"), has_server=top.peek("inference") is not None)
    steps = _whole(draft, top, "max_steps", 0)
    draft.setup += map(
        _install, dict.fromkeys(hub for side in ("train", "eval") for hub in _hubs(draft, root, side))
    )
    _take_checkpoints(draft, made)
    monitors = made.get("monitors")
    wandb = monitors.get("wandb") if isinstance(monitors, dict) else None
    if isinstance(wandb, dict):
        _watch_wandb(draft, wandb)
    _write(draft, made, steps or None)


def _take_kind(draft: Draft, entry: TreeEntry | None, root: Mapping) -> None:
    kind = kind_of(entry.value.text) if entry is not None and isinstance(entry.value, Scalar) else ""
    draft.spot = "prefer"
    if kind:
        draft.gpus = [kind]
    else:
        why = "the file names no kind of GPU that prime-train knows: write hardware.gpus"
        draft.refuse(entry if entry is not None else root, "gpu_type", why)


def _take_deployment(draft: Draft, found: Section, *, has_server: bool) -> None:
    for key in ("num_train_nodes", "num_infer_nodes", "num_nodes", "num_infer_replicas"):
        entry = found.take(key)
        if entry is not None and plain(entry.value) != 1:
            draft.refuse(entry, found.name(key), ONE_MACHINE)
    form = found.take("type")
    if form is not None and plain(form.value) != "single_node":
        draft.refuse(form, found.name("type"), ONE_MACHINE)
    train, infer = (_whole(draft, found, key, 1) for key in ("num_train_gpus", "num_infer_gpus"))
    total = train + infer if has_server else train
    draft.count = min(max(total, _whole(draft, found, "gpus_per_node", total)), GPUS_MAX)


def _hubs(draft: Draft, root: Mapping, side: str) -> list[Hub]:
    sources = find(root, ("orchestrator", side, "source"))
    return hubs_of(draft, sources) if sources is not None else []


def _take_checkpoints(draft: Draft, made: Table) -> None:
    ckpt = made.get("ckpt")
    every = ckpt.pop("interval", None) if isinstance(ckpt, dict) else None
    if isinstance(ckpt, dict):
        ckpt.pop("output_dir", None)
    draft.sections["checkpoints"] = {
        "every_steps": every if isinstance(every, int) and every > 0 else SAVE_EVERY
    }
