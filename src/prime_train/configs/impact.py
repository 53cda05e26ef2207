"""What a change of a trainer's setting does to the training, in words: a table by the names that trainers
give their settings.

Factors are those of the change itself. What they do to memory and time follows from the formulas of the
estimates; what they do to learning is common experience, and said as such ("tends to").
"""

from collections.abc import Callable
from dataclasses import dataclass

from prime_train.text.finite import number_of


@dataclass(frozen=True)
class Effect:
    """The effect of a number on a training. `names`: the last parts of the settings' names; `more` and
    `less`: what a larger and a smaller value do, with the factor (of at least 1) by which it changed.
    """

    names: frozenset[str]
    more: Callable[[str], str]
    less: Callable[[str], str]


def _effect(names: str, more: str, less: str) -> Effect:
    return Effect(
        frozenset(names.split()), lambda factor: more.format(by=factor), lambda factor: less.format(by=factor)
    )


EFFECTS = (
    _effect(
        "lr learning_rate max_lr",
        "Each step changes the weights {by} times as much: it tends to learn faster, and to diverge (loss "
        "nan, grad_norm rising) from some value on. A schedule of a resumed run goes on with the new value.",
        "Each step changes the weights {by} times less: it tends to be stabler, and to need more steps for "
        "the same loss.",
    ),
    _effect(
        "seq_len max_length cutoff_len sequence_len max_seq_length max_seq_len context_length max_model_len",
        "Sequences may be {by} times as long: activations and the cache of each take up to {by} times the "
        "memory, and attention more than {by} times the time; less is cut off. The estimate of memory says "
        "whether it still fits.",
        "Sequences are cut {by} times shorter: less memory and time, and what is beyond is not trained on or "
        "not generated.",
    ),
    _effect(
        "max_completion_tokens max_tokens max_new_tokens max_completion_length max_response_length",
        "Answers may be {by} times as long: fewer are cut off, and generating them takes up to {by} times "
        "the time and the cache.",
        "Answers are cut {by} times shorter: steps are faster, and an answer that is cut off usually gets no "
        "reward.",
    ),
    _effect(
        "batch_size train_batch_size token_batch_size",
        "A step trains on {by} times as much: gradients are less noisy, a step takes up to {by} times as "
        "long and costs that much more. The memory of a pass does not change where batches are accumulated.",
        "A step trains on {by} times less: faster and cheaper steps with noisier gradients; a smaller "
        "learning rate tends to go with it.",
    ),
    _effect(
        "micro_batch_size per_device_train_batch_size micro_batch max_tokens_per_mb "
        "ppo_micro_batch_size_per_gpu",
        "A pass holds {by} times as much: up to {by} times the memory for activations and logits, and fewer "
        "passes a step.",
        "A pass holds {by} times less: less memory for activations and logits, and more passes a step.",
    ),
    _effect(
        "gradient_accumulation_steps",
        "{by} times as many passes a step: the batch grows with it, and the memory does not.",
        "{by} times fewer passes a step: the batch shrinks with it, and the memory does not.",
    ),
    _effect(
        "group_size num_generations n_samples rollouts_per_example",
        "{by} times as many answers to a prompt are compared with one another: more prompts give a signal, "
        "and with the same batch there are {by} times fewer prompts a step.",
        "{by} times fewer answers to a prompt are compared with one another: more groups are all right or "
        "all wrong, and teach nothing.",
    ),
    _effect(
        "temperature",
        "Answers vary more: more is explored, and less of it is right.",
        "Answers vary less: groups of equal answers, which teach nothing, become more frequent.",
    ),
    _effect(
        "rank lora_rank lora_r r",
        "Adapters of {by} times the size: they can learn more, and their checkpoints are {by} times as "
        "large; on the GPU it is little. A checkpoint of the other rank does not load.",
        "Adapters of {by} times less: smaller checkpoints. A checkpoint of the other rank does not load.",
    ),
    _effect(
        "gpu_memory_utilization mem_fraction_static vllm_gpu_memory_utilization",
        "The server takes {by} times as much of each of its GPUs: a larger cache, more answers at once; a "
        "trainer on the same GPU has less.",
        "The server takes {by} times less of each of its GPUs: a smaller cache, fewer answers at once.",
    ),
    _effect(
        "kl_ctl beta kl_coef",
        "The model is held {by} times as strongly to the one that it began as.",
        "The model may move away {by} times as easily from the one that it began as; at 0 no copy of that is "
        "needed in memory.",
    ),
    _effect(
        "weight_decay",
        "Weights are pulled {by} times as strongly to zero.",
        "Weights are pulled {by} times less to zero.",
    ),
    _effect(
        "max_steps total_train_steps num_train_epochs total_train_epochs num_epochs",
        "The run is {by} times as long, and costs that much more. A schedule by the number of steps falls "
        "{by} times as slowly.",
        "The run is {by} times shorter. A schedule by the number of steps falls {by} times as fast.",
    ),
    _effect(
        "interval save_steps every_steps freq_steps save_freq eval_steps",
        "It happens {by} times as rarely: less time is spent on it; of saves, a lost machine loses up to "
        "{by} times as many steps.",
        "It happens {by} times as often: more time is spent on it; of saves, a lost machine loses fewer "
        "steps.",
    ),
    _effect(
        "max_off_policy_steps max_head_offpolicyness max_async_level",
        "Rollouts may be made by weights that are older by {by} times: fewer waits, and less exact "
        "gradients.",
        "Rollouts are made by fresher weights: more exact gradients, and more waits.",
    ),
    _effect(
        "seed",
        "Other random numbers: compare it with other seeds only.",
        "Other random numbers: compare it with other seeds only.",
    ),
)
"""The first row with a setting's name counts."""
_BY_NAME = {name: effect for effect in reversed(EFFECTS) for name in effect.names}


def impact(name: str, before: object, after: object) -> str:
    """Return what the change of the setting does, in words; empty if the table does not have it, or a value
    is no number.
    """
    effect, old, new = (
        _BY_NAME.get(name.rpartition(".")[2].replace("-", "_").lower()),
        number_of(before),
        number_of(after),
    )
    if effect is None or old is None or new is None or old == new:
        return ""
    if old > 0 and new > 0:
        factor = max(old, new) / min(old, new)
        return (effect.more if new > old else effect.less)(_rounded(factor))
    return "This switches it on." if old == 0 else "This switches it off." if new == 0 else ""


def _rounded(factor: float) -> str:
    return f"{factor:.0f}" if factor >= 9.5 or abs(factor - round(factor)) < 0.05 else f"{factor:.1f}"
