"""Errors of checkpoints and of numbers, ends before the last step, and trainers that start over."""

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.known_errors.table import CONSEQUENCE, HINT, known
from prime_train.trainers.log_rules import LogRule


def _started_over(source: str, *rows: tuple[str, str]) -> tuple[LogRule, ...]:
    """Return rules that stop the trainer at once, because a trainer that starts over would overwrite good
    checkpoints with its first steps.
    """
    return tuple(
        LogRule(pattern, Cause.RESUME_IGNORED, stop=True, resumed_only=True, source=source, example=example)
        for pattern, example in rows
    )


STARTED_OVER = _started_over(
    "torchtitan, Lightning, AReaL and prime-rl, when they do not find the checkpoint to resume from",
    (
        r"this is a fresh start",
        "[titan] 2026-08-21 10:00:00,123 - root - INFO - no checkpoint to load, this is a fresh start.",
    ),
    (r"Training from scratch", "Training from scratch"),
    (
        r"No checkpoint found at .*skipping checkpoint loading",
        "WARNING: No checkpoint found at /ckpt/last, skipping checkpoint loading",
    ),
    (
        r"there is no last checkpoint available",
        "`.fit(ckpt_path='last')` is set, but there is no last checkpoint available. No checkpoint will be "
        "loaded.",
    ),
    (
        r"Resume info not found at .*This should not be a resumed experiment",
        "Resume info not found at /root/recover_info. This should not be a resumed experiment!",
    ),
    (
        r"Optimizer state not found .*freshly initialized",
        "Optimizer state not found in /ckpt, it will be freshly initialized",
    ),
    (
        r"No dataloader state found at",
        "Warning: No dataloader state found at /ckpt/data.pt, starting from scratch",
    ),
)

RULES = (
    *known(
        Cause.BAD_CONFIG,
        "PyTorch 2.6, torch/serialization.py: weights_only is the default",
        (
            r"Weights only load failed|WeightsUnpickler error|Unsupported (global|operand)",
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you "
            "have two options",
        ),
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "PyTorch, Module.load_state_dict: of another model",
        (
            r"size mismatch for \S+: copying a param|(Missing|Unexpected) key\(s\) in state_dict|Error\(s\) "
            r"in loading state_dict",
            "size mismatch for lm_head.weight: copying a param with shape torch.Size([1]) from checkpoint",
        ),
        action=Action.STOP,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "PyTorch, torch/distributed/checkpoint",
        (
            r"read failed: \[Errno 2\].*\.metadata|No such file or directory: '[^']*\.metadata'|\.distcp'",
            "read failed: [Errno 2] No such file or directory: '/ckpt/step_10/.metadata'",
        ),
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "PyTorch, torch/distributed/checkpoint/default_planner.py: of another model",
        (
            r"Global shape mismatch for loaded|Missing key in checkpoint state_dict|not found in checkpoint|"
            r"Size mismatch between saved"
            r"|Failed to validate global plan",
            "RuntimeError: Missing key in checkpoint state_dict: layers.0.weight.",
        ),
        (
            r"_OptimStateKey\(.* is empty",
            "RuntimeError: The state of _OptimStateKey(unflat_param_names=('a',), is_fsdp_managed=True) is "
            "empty.",
        ),
        action=Action.STOP,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "PyTorch, torch/distributed/checkpoint/default_planner.py: the look-up of a parameter that the "
        "checkpoint does not have",
        (r"state_dict_metadata\[", "    md = metadata.state_dict_metadata[fqn]"),
        action=Action.STOP,
        in_code=True,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "Orbax and TensorStore: the checkpoint is of another model",
        (
            r"tree structures do not match|is not compatible with the stored shape|Requested shape: .* "
            r"stored shape"
            r"|User-provided restore item",
            "ValueError: User-provided restore item and on-disk value metadata tree structures do not match",
        ),
        action=Action.STOP,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "Orbax and TensorStore: torn or incomplete",
        (
            r"(Error (opening|reading|decoding)|driver) \"(zarr3?|ocdbt|n5|file)\"|(NOT_FOUND|DATA_LOSS|"
            r"FAILED_PRECONDITION): .*(tensorst"
            r"ore|zarr|ocdbt)|\.zarray\b|manifest\.ocdbt|No structure could be identified for the checkpoint|"
            r"[Ii]ncomplete checkpoint",
            'ValueError: NOT_FOUND: Error opening "zarr" driver: Metadata at local file '
            '"/ckpt/100/a/.zarray" does not exist',
        ),
        raised_only=True,
    ),
    *known(
        Cause.NOT_FINITE,
        "prime-rl, its trainer's check of each step; DETR, MAE and what was made of them, engine.py, which "
        "print it and exit",
        (r"^Loss is (nan|inf), stopping training", "Loss is nan, stopping training"),
        (
            r"Loss or gradient norm is not finite on at least one rank at step \d+",
            "Loss or gradient norm is not finite on at least one rank at step 120. Stopping training before "
            "the optimizer update.",
        ),
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "PyTorch, torch/nn/modules/module.py, torch/optim/optimizer.py and torch/random.py: of another model "
        "or version",
        (
            r"loaded state dict (has a different number of|contains a) parameter group",
            "ValueError: loaded state dict has a different number of parameter groups",
        ),
        (
            r"RNG state must be a torch\.ByteTensor|RNG state is wrong size",
            "RuntimeError: RNG state must be a torch.ByteTensor",
        ),
        (
            r"ignore_mismatched_sizes|some weights .* shapes did not match|checkpoint .*(was (saved|trained|"
            r"created) with|has a different"
            r"|\bworld size|\bparallel size|\bused a )",
            "RuntimeError: You set `ignore_mismatched_sizes` to `False`",
        ),
        action=Action.STOP,
        raised_only=True,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "transformers, Trainer.train: no checkpoint is where it looks",
        (
            r"No valid checkpoint found in output directory",
            "ValueError: No valid checkpoint found in output directory (out)",
        ),
        action=Action.STOP,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "PyTorch's optimizers, and scripts that save several states in one file: a state that the checkpoint "
        "does not have",
        (
            r"KeyError: '(exp_avg(_sq)?|momentum_buffer|param_groups|(model_|optimizer_)?state_dict|"
            r"(optimizer|model)_states?)'$",
            "KeyError: 'param_groups'",
        ),
        (
            r"(?i)optimizer state .*(is missing|not found)",
            "RuntimeError: the optimizer state of step 300 is missing",
        ),
        action=Action.STOP,
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "NeMo, utils/exp_manager.py: there is no checkpoint to resume from",
        (
            r"(?i)\bno checkpoints? (folder|file|directory|(was |were )?found)\b|\bcannot resume\b",
            "nemo.utils.exp_manager.NotFoundError: There was no checkpoint folder at checkpoint_dir "
            ":exp/checkpoints. Cannot resume.",
        ),
        action=Action.STOP,
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "PyTorch's serialization, pickle, zipfile, safetensors, DCP, DeepSpeed, Megatron and transformers: "
        "torn or incomplete",
        (
            r"PytorchStreamReader failed|failed finding central directory|unexpected EOF, expected \d+ more "
            r"bytes|The file "
            r"might be corrupted",
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        ),
        (
            r"UnpicklingError: |pickle data was truncated|could not find MARK|invalid load key",
            "_pickle.UnpicklingError: invalid load key, '\\x00'.",
        ),
        (
            r"Error while deserializing( header)?|(MetadataIncompleteBuffer|HeaderTooLarge|HeaderTooSmall|"
            r"InvalidHeader\w*"
            r"|InvalidOffset)\b",
            "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        ),
        (
            r"Can't find a valid checkpoint at|Unable to (find|load) .*checkpoint|[Cc]heckpoint .*(does not "
            r"exist|not found|is "
            r"missing|corrupt)",
            "ValueError: Can't find a valid checkpoint at out/checkpoint-500",
        ),
        (
            r"No such file or directory: ['\"][^'\"]*(trainer_state\.json|optimizer\.pt|scheduler\.pt|"
            r"rng_state\w*\.pth"
            r"|optim_states\.pt|model_states\.pt|pytorch_model\S*\.bin|latest_checkpointed_iteration\.txt|"
            r"\.safetensors|\.ckpt"
            r"|checkpoint-\d+[^'\"]*)['\"]",
            "FileNotFoundError: [Errno 2] No such file or directory: 'out/checkpoint-500/trainer_state.json'",
        ),
        (
            r"(?i)^\w*(error|exception): (the )?checkpoint .*(is incomplete|can ?not be read|is corrupt)|"
            r"^error: no checkpoint at ",
            "error: checkpoint /disk/checkpoints/step_30 is incomplete: it has no COMPLETE file",
        ),
        (
            r"BadZipFile: ",
            "zipfile.BadZipFile: File is not a zip file",
        ),
        (
            r"(^|[\s(])(json\.decoder\.)?JSONDecodeError: (Expecting value: line 1 column 1|Unterminated "
            r"string|Extra data)",
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        ),
        (
            r"CRC(-| check)|checksum (mismatch|does not match|failed)",
            "RuntimeError: PytorchStreamReader: Bad CRC-32 for file 'archive/data/0'",
        ),
        (
            r"Length of .* does not match|cannot reshape array of size \d+ into",
            "ValueError: cannot reshape array of size 12 into shape (4,4)",
        ),
        raised_only=True,
    ),
    *known(
        Cause.NOT_FINITE,
        "PyTorch, DeepSpeed, apex, fairseq, Megatron-LM and prime-rl; scripts of one's own",
        (
            r"(?i)\b(loss|gradients?|grad norm|grad_norm|weights?|logits?|outputs?) (is|became|was|are|"
            r"contains?|has|have|=+) "
            r"?:?(a )?(nan|infs?|nans?|not finite|non[- ]finite|infinite|infinity)\b",
            "ValueError: loss is nan at step 7",
        ),
        (
            r"(?i)^\S*(error|exception): .*\b(nan|inf|non-?finite|not finite)\b.{0,40}\b(loss|grad\w*|norm|"
            r"detected|encountered"
            r"|found|values?)\b|(?i)(nan|inf|non-?finite) (loss|gradients?|values?) (detected|encountered|"
            r"found)",
            "FloatingPointError: NaN loss encountered at iteration 1200",
        ),
        (
            r"(?i)found (nan|inf) in (the )?(local )?(forward|backward|grad|loss|gradient|\w+ )|Unexpected "
            r"result (nan|inf)",
            "RuntimeError: found NaN in local forward loss calculation. Device: 0, node: x",
        ),
        (
            r"Function '\w+' returned nan values in its \d+th output",
            "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
        ),
        (
            r"(?i)(loss|grad) ?scale (is )?(already )?(at|below|reached) (its )?min\w*|Minimum loss scale "
            r"reached|loss scaler? "
            r".*(underflow|minimum)|Gradient overflow.*minimum",
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        ),
        (
            r"probability tensor contains either|Expected parameter .* to satisfy the constraint.*nan|"
            r"all_groups_norm > 0|Loss "
            r"(has )?(exploded|diverged)|is probably exploding|jax_debug_nans|invalid value \(nan\)"
            r"|Input( \w)? contains (NaN|infinity)",
            "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
        ),
        raised_only=True,
    ),
    *known(
        Cause.STOPPED_EARLY,
        "torchtitan, train.py",
        (r"Ran out of data; last step was canceled", "Ran out of data; last step was canceled."),
    ),
    # The summary that torchrun prints last, with what its own exit code hides. It comes after everything that
    # the workers logged.
    *known(
        Cause.KILLED,
        "PyTorch, torch/distributed/elastic/multiprocessing/errors",
        (r"exitcode\s*: -9 .*\(SIGKILL\)", "  exitcode  : -9 (pid: 4242)  (SIGKILL)"),
        (
            r"Signal (9 \(SIGKILL\)|15 \(SIGTERM\)|2 \(SIGINT\)|1 \(SIGHUP\)) received by PID \d+",
            "  traceback : Signal 9 (SIGKILL) received by PID 4242",
        ),
        strength=HINT,
    ),
    *known(
        Cause.SHARED_MEMORY,
        "PyTorch, torch/distributed/elastic/multiprocessing/errors",
        (r"exitcode\s*: -7 |Signal 7 \(SIGBUS\) received by PID", "  exitcode  : -7 (pid: 77)  (SIGBUS)"),
    ),
    *known(
        Cause.KILLED,
        "PyTorch's elastic agent, Slurm, Kubernetes and CPython: somebody ended the process",
        (
            r"got signal: (15|1|2)\b|Received (15|1|2) death signal|^KeyboardInterrupt$|CANCELLED AT .* DUE "
            r"TO (PREEMPTION|TIME "
            r"LIMIT|NODE FAILURE)|Evicted",
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 55 got signal: 15",
        ),
        # A launcher that ends the other workers after a failure also names the signal: "Sending process 55
        # closing signal SIGTERM".
        (
            r"(?i:\b(received?|got|caught|handling|(killed|terminated|stopped|ended|interrupted) by|exited "
            r"(on|with)|due to)\b\W{0,3}"
            r"((a|the|signals?|\d+)\W{1,3}){0,3})SIGTERM\b|\(SIGTERM\)|<Signals\.SIGTERM|^SIGTERM\b"
            r"|\bSIGTERM\b[^\n]{0,20}\b(received|caught)",
            "Received SIGTERM, saving a checkpoint before the end",
        ),
        action=Action.ANOTHER_MACHINE,
        strength=HINT,
    ),
    *known(
        Cause.KILLED,
        "PyTorch, torch/utils/data/_utils/signal_handling.py, and Paddle: somebody ended a process that "
        "loads data",
        (
            r"DataLoader (worker|process) \(pid(\(s\))? .* is killed by signal: (Terminated|Interrupt|"
            r"Hangup)",
            "RuntimeError: DataLoader worker (pid 8102) is killed by signal: Terminated. ",
        ),
        strength=HINT,
    ),
    *known(
        Cause.TRAINER_ERROR,
        "PyTorch, torch/utils/data/_utils/signal_handling.py, and Paddle: a process that loads data crashed",
        (
            r"DataLoader (worker|process) \(pid(\(s\))? .* is killed by signal: "
            r"(Segmentation fault|Aborted|Illegal instruction|Floating point)",
            "RuntimeError: DataLoader worker (pid 25902) is killed by signal: Segmentation fault. ",
        ),
        action=Action.SAME_MACHINE,
        strength=HINT,
    ),
    *known(
        Cause.KILLED,
        "submitit, Slurm and providers: the machine or the time was taken away",
        (
            r"UncompletedJobError|(?i:\b(job|instance|node|vm|machine|pod) (is|was|has been|will be|got) "
            r"(being )?(pre-?empted|evicted"
            r"|reclaimed|interrupted|timed[- ]out)\b|spot (instance )?(interruption|termination|"
            r"pre-?emption) notice)",
            "submitit WARNING - Caught signal SIGUSR2 on gpu-12: this job is preempted.",
        ),
        action=Action.ANOTHER_MACHINE,
        strength=HINT,
    ),
    *known(
        Cause.BAD_CHECKPOINT,
        "PyTorch, torch/distributed/checkpoint/api.py",
        # Also what a worker prints whose parent could not hand over its work, so that any other error says
        # more.
        (
            r"^EOFError: (Ran out of input|No data left in file)|RayTaskError\(EOFError\)",
            "EOFError: Ran out of input",
        ),
        (
            r"CheckpointException",
            "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0])",
        ),
        strength=HINT,
    ),
    *known(
        Cause.TRAINER_ERROR,
        "CPython's tarfile, gzip and zlib: a torn archive, mostly a shard of the data that arrived cut off",
        (
            r"tarfile\.ReadError|EOFError: Compressed file ended|zlib\.error|BadGzipFile",
            "tarfile.ReadError: unexpected end of data",
        ),
        action=Action.SAME_MACHINE,
        strength=HINT,
    ),
    # The other end of a pipe is gone: a process of the training ended for a reason of its own. A torn file
    # says "Ran out of input".
    *known(
        Cause.TRAINER_ERROR,
        "CPython, multiprocessing/connection.py",
        (r"^EOFError$", "EOFError"),
        action=Action.SAME_MACHINE,
        strength=CONSEQUENCE,
    ),
)
