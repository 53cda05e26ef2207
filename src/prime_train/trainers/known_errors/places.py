"""What an exception of few words means by the place where it was raised: the calls that its traceback shows.

`KeyError: 'optimizer'` says nothing alone. Raised while a checkpoint is loaded, it says that the checkpoint
is of another model or version; raised while a sample is read, that the data have no such column. Only
exceptions that would be raised again count, and only the calls nearest to them: a training loop that was
entered by a function called `resume` is not the loading of a checkpoint.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.log_rules import EvidenceStrength, LogRule
from prime_train.trainers.patterns import found_in

LINES_MAX = 8
"""Lines of a traceback, nearest to the exception, that are looked at: files and code."""
SAID_BY_ANYTHING = (
    r"^(\w+\.)*(KeyError|IndexError|AttributeError|TypeError|AssertionError|"
    r"ValueError|"
    r"RuntimeError|UnboundLocalError)(:|$)"
)


@dataclass(frozen=True)
class RaisedAt:
    """The exceptions of a kind, by the place where they were raised. `frames` is searched in the lines of the
    traceback, each by itself; `unless` speaks against it. `example`: the end of a traceback.
    """

    exceptions: str
    frames: str
    cause: Cause
    action: Action
    source: str
    example: tuple[str, ...]
    unless: str = ""
    but: str = ""
    """Searched in the exception: words that say something else, wherever it was raised."""
    lines: int = LINES_MAX
    """Lines of the traceback, nearest to the exception, in which it is looked for."""

    def fits(self, exception: str, frames: Sequence[str]) -> bool:
        """Return whether the exception was raised here. `frames`: the lines of its traceback, the nearest to
        it last.
        """
        near = frames[-self.lines :]
        if not found_in(self.exceptions, exception) or (self.but and found_in(self.but, exception)):
            return False
        if not any(found_in(self.frames, line) for line in near):
            return False
        return not self.unless or not any(found_in(self.unless, line) for line in near)

    @property
    def rule(self) -> LogRule:
        """What follows, as a rule of the table."""
        return LogRule(
            self.exceptions,
            self.cause,
            strength=EvidenceStrength.HINT,
            action=self.action,
            source=self.source,
        )


PLACES = (
    RaisedAt(
        r"^KeyError: ",
        r"/torch/optim/\w+\.py",
        Cause.BAD_CHECKPOINT,
        Action.STOP,
        "PyTorch, torch/optim: the state that was loaded is of another optimizer or of other parameters",
        (
            '  File "/usr/lib/python3.11/site-packages/torch/optim/adam.py", line 82, in step',
            "KeyError: 'exp_avg'",
        ),
    ),
    RaisedAt(
        r"^RuntimeError: Size mismatch$",
        r"/(deepspeed/ops|apex)/\S*(fused_adam|fused_lamb|multi_tensor_apply)\.py",
        Cause.BAD_CHECKPOINT,
        Action.STOP,
        "DeepSpeed and apex: the state of the optimizer that was loaded is of other parameters",
        (
            '  File "/usr/lib/python3.11/site-packages/deepspeed/ops/adam/multi_tensor_apply.py", line 17, '
            "in __call__",
            "    return op(self.chunk_size, noop_flag_buffer, tensor_lists, *args)",
            "RuntimeError: Size mismatch",
        ),
    ),
    RaisedAt(
        r"^ZeroDivisionError: ",
        r"/apex/amp/|loss_?scaler\w*\.py",
        Cause.NOT_FINITE,
        Action.STOP,
        "apex, apex/amp/scaler.py: the scale of the loss was halved down to nothing, because no step was "
        "finite",
        (
            '  File "/usr/lib/python3.11/site-packages/apex/amp/scaler.py", line 110, in unscale_python',
            "    1./scale)",
            "ZeroDivisionError: float division by zero",
        ),
    ),
    RaisedAt(
        r"^NameError: name '",
        r"/(site|dist)-packages/",
        Cause.IMPORT_ERROR,
        Action.STOP,
        "transformers, TRL and others: a name that an installed package binds only if another package, of a "
        "certain version, is there",
        (
            '  File "/usr/lib/python3.11/site-packages/trl/trainer/sft_trainer.py", line 143, in __init__',
            "    parallelism: ParallelismConfig | None = None",
            "NameError: name 'ParallelismConfig' is not defined",
        ),
        lines=3,
    ),
    RaisedAt(
        r"^TypeError: .*(got an unexpected keyword argument|missing \d+ required (positional|keyword-only) "
        r"arguments?: )",
        r"^\s*File \"[^\"]*/(site|dist)-packages/",
        Cause.IMPORT_ERROR,
        Action.STOP,
        "vLLM, TRL, transformers and others: an installed package calls another that was written for another "
        "version",
        (
            '  File "/usr/lib/python3.11/site-packages/vllm/entrypoints/llm.py", line 212, in __init__',
            "    engine_args = EngineArgs(",
            "TypeError: EngineArgs.__init__() got an unexpected keyword argument 'worker_extension_cls'",
        ),
        # There a script, or a setting of the user, names the values.
        unless=r"\*\*\w+|/(hydra|omegaconf|jsonargparse|pydantic|draccus|tyro|simple_parsing|fire)/"
        r"|, in (from_\w+|_?parse\w*|_?instantiate\w*)$",
        lines=3,
    ),
    RaisedAt(
        r"^KeyError: '[\w.-]+\.(weight|bias|scale|qweight|weight_scale\w*|lora_[AB])'$",
        r", in (load_weights|load_model|_load_weights|weight_loader)$",
        Cause.IMPORT_ERROR,
        Action.STOP,
        "vLLM and SGLang, models: the weights of a model have other names in this version",
        (
            '  File "/usr/lib/python3.11/site-packages/vllm/model_executor/models/qwen2_5_vl.py", line 801, '
            "in load_weights",
            "    param = params_dict[name]",
            "KeyError: 'visual.patch_embed.proj.weight'",
        ),
        lines=3,
    ),
    RaisedAt(
        r"^(IndexError|StopIteration|KeyError|TypeError|AttributeError)(: |$)",
        r"/datasets/(load|builder|data_files|packaged_modules/\S+)\.py",
        Cause.BAD_CONFIG,
        Action.STOP,
        "datasets, datasets/builder.py: the building of a data set from files that are not there, or of "
        "another form",
        (
            '  File "/usr/lib/python3.11/site-packages/datasets/packaged_modules/webdataset/webdataset.py", '
            "line 79, in _split_generators",
            "    pipeline = self._get_pipeline_from_tar(tar_paths[0], tar_iterators[0])",
            "IndexError: list index out of range",
        ),
        lines=3,
    ),
    RaisedAt(
        SAID_BY_ANYTHING,
        r", in (_?load_(checkpoint|ckpt|state|state_dict|optimizer\w*|scheduler\w*|model_checkpoint|"
        r"rng_state|training_state)\w*"
        r"|_load_(from_checkpoint|optimizer_and_scheduler|rng_state|zero_checkpoint|checkpoint\w*)|"
        r"restore_checkpoint|set_state_dict)$"
        r"|(optim\w*|sched\w*|scaler|model|net|ema)\w*\.load_state_dict\(|/torch/distributed/checkpoint/|"
        r"/torch/distributed/_shard/checkpoint/",
        Cause.BAD_CHECKPOINT,
        Action.STOP,
        "PyTorch, DeepSpeed, Megatron-LM, Lightning, transformers and scripts: the loading of a checkpoint",
        (
            '  File "/usr/lib/python3.11/site-packages/deepspeed/runtime/engine.py", line 2974, in '
            "_load_checkpoint",
            "    assert len(self.ckpt_list) > 0",
            "AssertionError",
        ),
        but=r"\b(only|not|n't) (yet )?supported\b",
        unless=r"from_pretrained|, in (_?save\w*|async_save\w*|save_state_dict|train|fit|training_step|"
        r"forward|backward)$",
    ),
    RaisedAt(
        r"^KeyError: '[\w .-]+'$",
        r"/(transformers/data/data_collator|datasets/(arrow_dataset|iterable_dataset|formatting/\w+))\.py"
        r"|, in (__getitem__|\w*collate\w*|\w*collator\w*|torch_call|tokenize\w*|preprocess\w*|"
        r"\w*formatting\w*|apply_function\w*)$"
        r"|\b(feature|example|sample|batch|row|item|ex)\[[\"']|\bfor \w+ in (features|examples|batch|"
        r"samples)\b",
        Cause.BAD_CONFIG,
        Action.STOP,
        "transformers, TRL, datasets and scripts: a sample of the data, which have no such column",
        ('    "input_ids": [example["input_ids"] for example in examples],', "KeyError: 'input_ids'"),
    ),
    RaisedAt(
        SAID_BY_ANYTHING,
        r", in (_?from_pretrained|get_tokenizer|load_tokenizer\w*)$|\.from_pretrained\(|"
        r"/tokenization_\w+\.py",
        Cause.BAD_CONFIG,
        Action.STOP,
        "transformers: the loading of a model or tokenizer, whose files lack something or are of another "
        "kind",
        (
            '  File "/usr/lib/python3.11/site-packages/transformers/models/gpt2/tokenization_gpt2.py", line '
            "179, in __init__",
            "TypeError: expected str, bytes or os.PathLike object, not NoneType",
        ),
    ),
)


def placed(exception: str, frames: Sequence[str]) -> LogRule | None:
    """Return what an exception means by the place where it was raised, None if the place says nothing."""
    return next((place.rule for place in PLACES if place.fits(exception, frames)), None)
