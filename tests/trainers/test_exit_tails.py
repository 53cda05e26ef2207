"""Ends of trainers in the style of real logs: each is followed by the right action, and its cause is the
right one.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from prime_train.outputs.logs.log_ending import ending_in
from prime_train.spec.causes import Action, Cause

TAILS = json.loads((Path(__file__).parents[1] / "data" / "exit_tails.json").read_text(encoding="utf-8"))
RIGHT_SHARE, NAMED_SHARE, WRONG_SHARE = 0.92, 0.8, 0.02
SPECIFIC_SHARE = 0.9


def judged(row: dict[str, Any]) -> tuple[bool, bool, bool]:
    """Return whether the action is right, whether the cause is, and whether a wrong cause is named."""
    found = ending_in(row["tail"], code=row["exit_code"], kind=row["kind"])
    named = found.found.cause.value in row["causes"]
    return (
        found.next.action in (row["action"], *row["also_right"]),
        named,
        not named and found.found.cause is not Cause.TRAINER_ERROR,
    )


def test_most_ends_are_followed_by_the_right_action_and_hardly_one_is_put_down_to_a_wrong_cause() -> None:
    right, named, wrong = (sum(column) / len(TAILS) for column in zip(*map(judged, TAILS), strict=True))
    assert right >= RIGHT_SHARE
    assert named >= NAMED_SHARE
    assert wrong <= WRONG_SHARE


def test_an_end_of_a_known_kind_is_seldom_called_an_error_of_the_trainer_in_general() -> None:
    of_a_kind = [row for row in TAILS if row["causes"][0] != Cause.TRAINER_ERROR]
    causes = [
        ending_in(row["tail"], code=row["exit_code"], kind=row["kind"]).found.cause for row in of_a_kind
    ]
    specific = sum(
        cause is not Cause.TRAINER_ERROR and cause.value in row["causes"]
        for row, cause in zip(of_a_kind, causes, strict=True)
    )
    assert specific / len(of_a_kind) >= SPECIFIC_SHARE


def test_an_exception_that_python_ignored_at_the_end_is_not_why_the_trainer_ended() -> None:
    ignored = [
        "Exception ignored in: <function LLM.__del__ at 0x7f01>",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.11/site-packages/vllm/llm.py", line 3, in __del__',
        "    self.llm_engine.shutdown()",
        "AttributeError: 'LLM' object has no attribute 'llm_engine'",
    ]
    real = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "ValueError: the reward must be one of three",
    ]
    for lines in ([*ignored, *real], [*real, *ignored]):
        found = ending_in(lines, code=1, kind="command").found
        assert (found.cause, found.line) == (Cause.BAD_CONFIG, real[-1])


@pytest.mark.parametrize(
    "where", ["DataLoader worker process 0", "replica 1 on device 1", "pin memory thread for device 0"]
)
def test_an_error_that_was_handed_on_from_a_worker_is_named_by_its_own_words(where: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 61, in <module>',
        f"ValueError: Caught ValueError in {where}.",
        "Original Traceback (most recent call last):",
        '  File "/usr/lib/python3.11/site-packages/webdataset/utils.py", line 77, in getfirst',
        "ValueError: didn't find ['y.txt'] in ['__key__', 'x.pyd']",
    ]
    found = ending_in(lines, code=1, kind="command").found
    assert (found.cause, found.line) == (Cause.BAD_CONFIG, lines[-1])


@pytest.mark.parametrize(
    "said",
    [
        "  Total optimization steps = 1,218",
        "  Gradient Accumulation steps = 4",
        "Total training steps: 435",
        "warmup steps: 100",
    ],
)
def test_steps_that_are_planned_are_not_taken_for_steps_that_were_made(said: str) -> None:
    error = "ValueError: the reward must be one of three"
    assert ending_in([said, error], code=1, kind="hf").step == 0
    assert ending_in([said, "step 40 loss 2.1", error], code=1, kind="hf").step == 40


def test_memory_that_tensorflow_asks_for_below_the_name_of_a_layer_is_out_of_memory() -> None:
    lines = [
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Exception encountered when calling "
        'layer "conv" (type Conv2D).',
        "",
        "{{function_node __wrapped__Conv2D}} OOM when allocating tensor with shape[64,128] on "
        "/job:localhost/device:GPU:0 by allocator a",
    ]
    assert ending_in(lines, code=1, kind="command").found.cause is Cause.GPU_OOM


def test_an_internal_error_of_nccl_speaks_against_the_machine_unless_a_rank_says_more() -> None:
    lines = [
        "RuntimeError: NCCL error in: c10d/ProcessGroupNCCL.cpp:1269, internal error, NCCL version 2.14.3",
        "ncclInternalError: Internal check failed. This is either a bug in NCCL or due to memory corruption",
    ]
    assert ending_in(lines, code=1, kind="command").next.action is Action.ANOTHER_MACHINE
    assert ending_in(["KeyError: 'lr'", *lines], code=1, kind="command").next.action is Action.STOP


TORCHRUN_ENDS = (
    "W0526 16:36:23.858000 1404176 torch/distributed/elastic/multiprocessing/api.py:851] Sending process "
    "78971 closing signal SIGTERM"
)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("RuntimeError: tensor does not have a device", Cause.TRAINER_ERROR),
        ("NameError: name 'rewards' is not defined", Cause.TRAINER_ERROR),
        (
            "[rank1]:[E424 01:11:21.1 c.cpp:629] [Rank 1] Watchdog caught collective operation timeout: "
            "WorkNCCL()",
            Cause.COLLECTIVE_TIMEOUT,
        ),
    ],
)
def test_the_signal_with_which_a_launcher_ends_the_other_workers_is_not_why_the_trainer_ended(
    line: str, cause: Cause
) -> None:
    alone = ending_in([line], code=1, kind="torchrun").found
    assert ending_in([line, TORCHRUN_ENDS], code=1, kind="torchrun").found == alone
    assert alone.cause is cause


AROUND = {
    "torchrun": (
        [],
        [
            TORCHRUN_ENDS,
            "E0526 16:36:24.8 1404176 torch/distributed/elastic/multiprocessing/api.py:826] failed "
            "(exitcode: 1) local_rank: 0 (pid: 7)",
            "Traceback (most recent call last):",
            '  File "/opt/conda/bin/torchrun", line 8, in <module>',
            "    sys.exit(main())",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            "train.py FAILED",
            "Root Cause (first observed failure):",
            "  rank      : 0 (local_rank: 0)",
            "  exitcode  : 1 (pid: 78970)",
            "  error_file: <N/A>",
            "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
        ],
    ),
    "DeepSpeed": (
        [],
        [
            "[2024-03-22 09:14:43,120] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 41231",
            "[2024-03-22 09:14:45,554] [ERROR] [launch.py:322:sigkill_handler] ['python3', 'train.py'] exits "
            "with return code = 1",
        ],
    ),
    "accelerate": (
        [],
        ["subprocess.CalledProcessError: Command '['python3', 'train.py']' returned non-zero exit status 1."],
    ),
    "Hydra": (
        ["Error executing job with overrides: []"],
        ["", "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace."],
    ),
    "the hub": (
        [
            "Warning: You are sending unauthenticated requests to the HF Hub. Please set a HF_TOKEN to "
            "enable higher rate limits"
        ],
        [],
    ),
    "W&B again": (["wandb: Network error (ConnectionError), entering retry loop."], []),
    "W&B": (
        [
            "wandb: W&B API key is configured. Use `wandb login --relogin` to force relogin",
            "wandb: Syncing run plain-sky-7",
        ],
        [],
    ),
}
_BY_A_LAUNCHER = ("ChildFailed", "CalledProcess", "return code", "HYDRA", "is dead", "RayTaskError(Comp")
RAISED = [
    row
    for row in TAILS
    if row["exit_code"] == 1 and "Traceback" in "".join(row["tail"]) and "Killed" not in row["tail"]
]


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_what_launchers_and_loggers_print_around_an_error_does_not_change_what_follows(
    around: tuple[list[str], list[str]],
) -> None:
    before, after = around
    for row in RAISED:
        if any(words in line for words in _BY_A_LAUNCHER for line in row["tail"]):
            continue
        alone = ending_in(row["tail"], code=1, kind=row["kind"])
        within = ending_in([*before, *row["tail"], *after], code=1, kind=row["kind"])
        assert (within.found.cause, within.next.action) == (alone.found.cause, alone.next.action), row[
            "source"
        ]


def test_a_signal_that_the_trainer_itself_got_is_why_it_ended() -> None:
    for line in (
        "Received SIGTERM, saving a checkpoint",
        "got signal SIGTERM",
        "the job was terminated by SIGTERM",
        "SIGTERM received",
    ):
        assert ending_in([line], code=1, kind="command").found.cause is Cause.KILLED


def test_what_hydra_says_after_every_exception_is_not_why_the_trainer_ended() -> None:
    hint = "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace."
    for line, cause in (
        (
            "torch.distributed.DistNetworkError: port: 38393, name: EADDRINUSE, message: address already in "
            "use",
            Cause.PORT_IN_USE,
        ),
        (
            "requests.exceptions.ConnectionError: Couldn't reach 'a/b' on the Hub (ConnectTimeout)",
            Cause.NETWORK_ERROR,
        ),
        ("RuntimeError: The size of tensor a (4) must match the size of tensor b (8)", Cause.TRAINER_ERROR),
    ):
        assert ending_in([line, "", hint], code=1, kind="verl").found.cause is cause
    assert ending_in([hint], code=1, kind="verl").found.cause is Cause.TRAINER_ERROR


def test_a_key_of_wandb_that_is_configured_is_not_one_that_is_refused() -> None:
    told = "wandb: W&B API key is configured. Use `wandb login --relogin` to force relogin"
    lost = "wandb.errors.CommError: Run initialization has timed out after 600 sec."
    assert ending_in([told, lost], code=1, kind="command").found.cause is Cause.NETWORK_ERROR


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: ckpt/a.tempstate; No space left "
            "on device",
            Cause.DISK_FULL,
        ),
        (
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:",
            Cause.GPU_OOM,
        ),
        (
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{node x}} failed to allocate "
            "memory [Op:Mul]",
            Cause.GPU_OOM,
        ),
        (
            "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[8,4096]",
            Cause.GPU_OOM,
        ),
    ],
)
def test_what_tensorflow_has_exhausted_is_told_apart(message: str, cause: Cause) -> None:
    assert (
        ending_in(["Traceback (most recent call last):", message], code=1, kind="command").found.cause
        is cause
    )


@pytest.mark.parametrize(
    ("lines", "code", "line"),
    [
        (["step 3", '  File "/usr/lib/python3.11/threading.py", line 331 in wait'], -11, "killed by SIGSEGV"),
        (
            [
                "Fatal Python error: Segmentation fault",
                "",
                "Thread 0x00007f1 (most recent call first):",
                "Segmentation fault",
            ],
            139,
            "killed by SIGSEGV",
        ),
        ([" 45%|####5     | 450/1000 [10:00<12:13,  1.33s/it]"], -6, "killed by SIGABRT"),
        (
            ["InvalidArgumentError (see above for traceback): indices[3] = 9 is not in [0, 5)"],
            1,
            "InvalidArgumentError (see above for traceback): indices[3] = 9 is not in [0, 5)",
        ),
        (
            ["(WorkerDict pid=7) KeyError: 'labels'", "ray.exceptions.RayTaskError(KeyError): ray::f()"],
            1,
            "KeyError: 'labels'",
        ),
        (
            ["[rank1]: ZeroDivisionError: x", "[rank0]: ConnectionResetError: Connection reset by peer"],
            1,
            "ZeroDivisionError: x",
        ),
        (
            [
                "Root Cause (first observed failure):",
                "  rank      : 2 (local_rank: 2)",
                "  exitcode  : -11 (pid: 5)",
                "  error_file: <N/A>",
            ],
            1,
            "rank 2 was killed by SIGSEGV",
        ),
        (
            [
                "Root Cause (first observed failure):",
                "  rank      : 0 (local_rank: 0)",
                "  exitcode  : 7 (pid: 5)",
                "  error_file: <N/A>",
            ],
            1,
            "rank 0 ended by exit code 7",
        ),
    ],
)
def test_the_detail_says_the_thing_itself(lines: list[str], code: int, line: str) -> None:
    assert ending_in(lines, code=code, kind="command").found.line == line


@pytest.mark.parametrize(
    "line",
    [
        "[1,3]<stderr>:ModuleNotFoundError: No module named 'trl'",
        "[1,mpirank:7,algo-1]<stderr>:ModuleNotFoundError: No module named 'trl'",
        "(WorkerDict pid=90122) ModuleNotFoundError: No module named 'trl'",
        "(TaskRunner pid=77, ip=10.0.0.1) ModuleNotFoundError: No module named 'trl'",
        "(train, pid=4242) ModuleNotFoundError: No module named 'trl'",
        "(head, rank=0, pid=4242) ModuleNotFoundError: No module named 'trl'",
        "3: ModuleNotFoundError: No module named 'trl'",
        "worker-1: ModuleNotFoundError: No module named 'trl'",
        "[default0]:[rank0]: ModuleNotFoundError: No module named 'trl'",
        "2026-11-26T10:00:00.123456Z stderr F ModuleNotFoundError: No module named 'trl'",
        "2026-11-26 10:00:00,123 - __main__ - ERROR - ModuleNotFoundError: No module named 'trl'",
        "(EngineCore_DP0 pid=73) ERROR 11-26 10:00:00 [core.py:866] ModuleNotFoundError: No module named "
        "'trl'",
        "E1126 10:00:00.123000 713 site-packages/torch/run.py:533] ModuleNotFoundError: No module named "
        "'trl'",
        "26-11-2026 10:00:00 CRITICAL ModuleNotFoundError: No module named 'trl'",
        "    ModuleNotFoundError: No module named 'trl'",
        "10.0.0.7: [rank0]: ModuleNotFoundError: No module named 'trl'",
        "2026-11-26 10:00:00,123 - Tuner - INFO - [rank7]: ModuleNotFoundError: No module named 'trl'",
        "Epoch 0:  16%|#6      | 7395/45743 [13:13:43<68:36:00, loss: 0.08][rank3]: ModuleNotFoundError: No "
        "module named 'trl'",
        "[err, 11:48, 929s, g3118] ModuleNotFoundError: No module named 'trl'",
        "stderr: ModuleNotFoundError: No module named 'trl'",
        "2026-11-26 10:00:00.977 [177/train/578 (pid 28936)] ModuleNotFoundError: No module named 'trl'",
        "10:00:00  ModuleNotFoundError: No module named 'trl'",
    ],
)
def test_a_launchers_label_does_not_hide_the_error(line: str) -> None:
    found = ending_in([line], code=1, kind="command").found
    assert (found.cause, found.line) == (Cause.IMPORT_ERROR, "ModuleNotFoundError: No module named 'trl'")


@pytest.mark.parametrize(
    "line",
    [
        "h:1:2 [0] NCCL INFO NET/Plugin : libnccl-net.so: cannot open shared object file: No such file or "
        "directory",
        "2026-11-26 10:00:00.1: W tensorflow/dso_loader.cc:64] Could not load dynamic library "
        "'libnvinfer.so.7'",
        "[2026-11-26 10:00:00,973] [WARNING] cannot open shared object file: libaio.so",
        "2026-11-26 10:00:00 WARNING hub: 403 Client Error: Forbidden for url: https://hub/telemetry",
        "INFO:root:Connection reset by peer",
        "UserWarning: undefined symbol: _ZN3c105ErrorC2E, the slow path is taken",
    ],
)
def test_what_a_logger_calls_information_or_a_warning_does_not_hide_the_exception(line: str) -> None:
    raised = "ValueError: Expected input batch_size (32) to match target batch_size (31)."
    found = ending_in([line, raised], code=1, kind="command").found
    assert (found.cause, found.line) == (Cause.TRAINER_ERROR, raised)


@pytest.mark.parametrize(
    "code",
    [
        '    raise InstantiationException("CUDA out of memory") from error',
        "    return fetch('https://hub', on_error='403 Client Error: Forbidden')",
    ],
)
def test_what_a_line_of_code_names_is_not_what_was_raised(code: str) -> None:
    frames = ["Traceback (most recent call last):", '  File "/w/train.py", line 12, in main', code]
    assert (
        ending_in([*frames, "ZeroDivisionError: division by zero"], code=1, kind="command").found.cause
        is Cause.TRAINER_ERROR
    )


@pytest.mark.parametrize(
    ("wrapped", "cause"),
    [
        (
            "ConnectionError(ProtocolError('Connection aborted.', ConnectionResetError(104, 'Connection "
            "reset by peer')))",
            Cause.NETWORK_ERROR,
        ),
        ("ModuleNotFoundError(\"No module named 'trl'\")", Cause.IMPORT_ERROR),
        ("TypeError('a reason that nobody knows')", Cause.BAD_CONFIG),
    ],
)
def test_what_a_call_of_hydra_raised_is_the_cause(wrapped: str, cause: Cause) -> None:
    lines = [
        "hydra.errors.InstantiationException: Error in call to target 'data.Module':",
        wrapped,
        "full_key: data",
    ]
    assert ending_in(lines, code=1, kind="command").found.cause is cause


def test_an_exception_whose_message_goes_on_in_the_next_line_is_shown_with_it() -> None:
    lines = [
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
        "NameError: name 's4' is not defined",
    ]
    shown = (
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: NameError: name 's4' is not "
        "defined"
    )
    assert ending_in(lines, code=1, kind="command").found.line == shown


def test_a_warning_is_what_is_left_to_go_by_where_nothing_was_raised() -> None:
    line = "2026-11-26 10:00:00 WARNING hub: 403 Client Error: Forbidden for url: https://hub/a"
    assert ending_in([line], code=1, kind="command").found.cause is Cause.ACCESS_DENIED


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "subprocess.CalledProcessError: Command '['python3', 'train.py']' died with <Signals.SIGKILL: "
            "9>.",
            Cause.KILLED,
        ),
        (
            "mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 9 (Killed).",
            Cause.KILLED,
        ),
        ("ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.", Cause.SHARED_MEMORY),
    ],
)
def test_the_signal_that_a_launcher_saw_is_the_cause(line: str, cause: Cause) -> None:
    assert ending_in([line], code=1, kind="command").found.cause is cause


def test_an_error_of_any_kind_that_no_rule_knows_is_final_at_the_first_start_and_may_be_passing_later() -> (
    None
):
    line = "RuntimeError: an error that nobody has seen"
    assert ending_in([line], code=1, kind="command").next.action == "stop at once"
    assert ending_in(["step 40 loss 2.1", line], code=1, kind="command").next.action == "same machine"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["\r" * 5000],
        ["\x00\xff" * 3000],
        ["(" * 16_000],
        ["a." * 8_000],
        ["[" * 9_000 + "]" * 9_000],
    ],
)
@pytest.mark.parametrize("code", [1, 0, -9, 137, 255, -200])
def test_hostile_logs_have_an_end_all_the_same(lines: list[str], code: int) -> None:
    assert len(ending_in(lines, code=code, kind="command").found.line) <= 500


def test_a_leak_that_shows_after_many_steps_is_resumed_and_a_batch_that_never_fitted_is_not() -> None:
    line = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
    assert ending_in([line], code=1, kind="verl").next.action == "stop at once"
    assert ending_in(["training/global_step: 412", line], code=1, kind="verl").next.action == "same machine"
