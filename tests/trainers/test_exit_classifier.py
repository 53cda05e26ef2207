"""Last lines of real trainers, and the expected cause of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.spec.causes import Cause
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.of_spec import classify, fired, trainer_for
from tests.builders import spec

SAMPLES: dict[Cause, list[str]] = {
    Cause.RESUME_IGNORED: [
        "[titan] 2026-08-21 10:00:00,123 - root - INFO - no checkpoint to load, this is a fresh start.",
        "Training from scratch",
        "WARNING: No checkpoint found at /ckpt/last, skipping checkpoint loading",
        "`.fit(ckpt_path='last')` is set, but there is no last checkpoint available. No checkpoint will be "
        "loaded.",
        "Resume info not found at /root/recover_info. This should not be a resumed experiment!",
        "Optimizer state not found in /ckpt, it will be freshly initialized",
        "Warning: No dataloader state found at /ckpt/data.pt, starting from scratch",
    ],
    Cause.GPU_OOM: [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
        "of 23.69 GiB",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 79.15 GiB "
        "total capacity)",
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB",
        "RuntimeError: CUDA error: out of memory",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB",
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ],
    Cause.HOST_OOM: [
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate "
        "memory",
        "[12345.678] Out of memory: Killed process 4242 (python) total-vm:123kB, anon-rss:99kB",
        "kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker",
        "MemoryError",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 149. GiB for an array with shape "
        "(200000, 100000)",
        "OSError: [Errno 12] Cannot allocate memory",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "RuntimeError: DataLoader worker (pid 4321) is killed by signal: Killed.",
    ],
    Cause.OPEN_FILES: [
        "OSError: [Errno 24] Too many open files: '/dev/shm/torch_2174_1840553912_1019'",
        "RuntimeError: Too many open files. Communication with the workers is no longer possible. Please "
        "increase the limit",
        "RuntimeError: received 0 items of ancdata",
        "Error: Too many open files (os error 24)",
        "accept4: too many open files",
    ],
    Cause.DISK_FULL: [
        "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534",
        "OSError: [Errno 28] No space left on device: 'weights.npz'",
        "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device (os "
        "error 28)",
        "OSError: [Errno 122] Disk quota exceeded",
        "cp: error writing '/disk/a': No space left on device",
        "ray.exceptions.OutOfDiskError: Local disk is full",
    ],
    Cause.SHARED_MEMORY: [
        "RuntimeError: unable to open shared memory object </torch_1_2_3> in read-write mode: No such file "
        "or directory (2)",
        "RuntimeError: unable to allocate shared memory(shm) for file </torch_4_5>: Success (0)",
        "RuntimeError: unable to write to file </torch_99_1>: out of space",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
        "memory (shm).",
        "RuntimeError: DataLoader worker (pid 88) is killed by signal: Bus error.",
        "Bus error (core dumped)",
        "Fatal Python error: Bus error",
        "RuntimeError: DataLoader worker (pid(s) 4321) exited unexpectedly",
    ],
    Cause.GPU_HARDWARE: [
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "CUDA error: uncorrectable NVLink error detected during the execution",
        "[ 99.1] NVRM: Xid (PCI:0000:4d:00): 79, pid=1234, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:4d:00): 63, pid='<unknown>', Row Remapper: New row",
        "RuntimeError: No CUDA GPUs are available",
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
        "Error 804: forward compatibility was attempted on non supported HW",
        "Unable to determine the device handle for GPU0000:4D:00.0: Unknown Error",
        "RuntimeError: CUDA error: hardware stack error",
        "RuntimeError: NCCL error: ncclUnhandledCudaError: Call to CUDA function failed.",
    ],
    Cause.CUDA_ERROR: [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: device-side assert triggered",
        "RuntimeError: CUDA error: unspecified launch failure",
        "RuntimeError: CUDA error: invalid configuration argument",
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
    ],
    Cause.IMPORT_ERROR: [
        "ModuleNotFoundError: No module named 'flash_attn'",
        "ImportError: cannot import name 'x' from 'y' (/a/y.py)",
        "/usr/bin/python3: No module named torch.distributed.run",
        "ImportError: /a/flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2E",
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "python: error while loading shared libraries: libcudart.so.12: cannot open shared object file",
    ],
    Cause.BAD_CHECKPOINT: [
        'RuntimeError: Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "a"',
        "size mismatch for lm_head.weight: copying a param with shape torch.Size([1]) from checkpoint",
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0])",
        "read failed: [Errno 2] No such file or directory: '/ckpt/step_10/.metadata'",
        "ValueError: Can't find a valid checkpoint at out/checkpoint-500",
        "ValueError: No valid checkpoint found in output directory (out)",
        "FileNotFoundError: [Errno 2] No such file or directory: 'out/checkpoint-500/trainer_state.json'",
        "error: checkpoint /disk/checkpoints/step_30 is incomplete: it has no COMPLETE file",
        "error: no checkpoint at /disk/checkpoints/step_30",
        "zipfile.BadZipFile: File is not a zip file",
        "EOFError: Ran out of input",
    ],
    Cause.BAD_CONFIG: [
        "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
        "train.py: error: unrecognized arguments: --resume-step 30",
        "train.py: error: argument --steps: invalid int value: 'ten'",
        "train.py: error: the following arguments are required: --out",
        "ValueError: Invalid recover mode 'fault'. Valid options: {'on', 'off'}.",
        "omegaconf.errors.ConfigAttributeError: Key 'lrr' is not in struct",
        "Could not override 'actor.lrr'.",
        "pydantic_core._pydantic_core.ValidationError: 2 validation errors for TrainerConfig",
        "AssertionError: dataloader state does not match the world size",
        "Requested 8 GPUs but only 4 available",
        "python3: can't open file '/disk/tree/trian.py': [Errno 2] No such file or directory",
        "/bin/sh: 1: pyhton: not found",
        "sh: 1: ./train.sh: Permission denied",
    ],
    Cause.NOT_FINITE: [
        "Loss or gradient norm is not finite on at least one rank at step 120. Stopping training before the "
        "optimizer update.",
        "ValueError: loss is nan at step 7",
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.",
    ],
    Cause.ACCESS_DENIED: [
        "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1)",
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: "
        "https://huggingface.co/api/whoami-v2",
        "huggingface_hub.errors.RepositoryNotFoundError: Repository Not Found for url: "
        "https://huggingface.co/api/models/a/b.",
        "wandb.errors.errors.AuthenticationError: API key verification failed",
    ],
    Cause.STOPPED_EARLY: ["Ran out of data; last step was canceled."],
    Cause.PORT_IN_USE: [
        "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, "
        "error: EADDRINUSE",
        "OSError: [Errno 98] Address already in use",
        "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
    ],
    Cause.NETWORK_ERROR: [
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: "
        "https://huggingface.co/a",
        "huggingface_hub.errors.HfHubHTTPError: 503 Server Error: Service Unavailable",
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed "
        "out. (read timeout=10)",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
        "prematurely.",
        "NCCL WARN Net : Connection closed by remote peer, remote process exited or there was a network "
        "error",
        "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms",
        "RuntimeError: Connection reset by peer",
    ],
    Cause.COLLECTIVE_TIMEOUT: [
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE, "
        "NumelIn=1, Timeout(ms)=600000)",
        "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels",
        "[PG 0 Rank 1] NCCL watchdog thread terminated with exception: CUDA error",
        "ProcessGroupNCCL's monitoring thread detects no heartbeat and will finally kill the process",
        "Terminating the process after attempting to dump debug info, due to collective timeout or "
        "exception.",
        "RuntimeError: [/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000ms for recv "
        "operation to complete",
    ],
    Cause.INFERENCE_OOM: [
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine."
    ],
    Cause.INFERENCE_FAILED: [
        "RuntimeError: Timeout waiting for rollout servers to be ready.",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace above "
        "for the root cause.",
        "ConnectionError: The vLLM server can't be reached at http://localhost:8000 after 240.0 seconds.",
    ],
    Cause.TRAINER_ERROR: [
        "EOFError",
        "SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
        "Worker 'rollout/0' failed with exit code 1",
    ],
    Cause.KILLED: [
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "WARNING worker.py:1404 -- A worker died or was killed while executing a task by an unexpected "
        "system error.",
    ],
}
PAIRS = [(cause, line) for cause, lines in SAMPLES.items() for line in lines]
HARMLESS = [
    "step 10/300 loss 2.1034 lr 0.00100",
    "Saving checkpoint to /disk/checkpoints/step_10",
    "INFO: Started server process [123], listening on port 8000",
    "epoch 3: grad_norm 1.2 memory 0.51GiB(0.54%)",
    "loaded 2 dataset.json files",
    "{'loss': '2.105', 'grad_norm': '2.135', 'learning_rate': '4.994e-05', 'epoch': '0.01'}",
    "Using import errors=ignore, finite loss expected, nan checks on",
    "GPU memory: no OOM so far; open files limit 65536; disk 40 GiB free",
    "UserWarning: the training loss is nandina-weighted",
]


@pytest.mark.parametrize(
    ("cause", "line"), PAIRS, ids=[f"{cause}-{number}" for number, (cause, _) in enumerate(PAIRS)]
)
def test_a_line_alone_names_its_cause(cause: Cause, line: str) -> None:
    assert classify(["step 10 loss 2.5", line, ""], BUILT_IN, code=1, resumed=True) == (cause, line)


@pytest.mark.parametrize(
    "rule", BUILT_IN, ids=[f"{rule.cause}-{number}" for number, rule in enumerate(BUILT_IN)]
)
def test_every_row_of_the_table_has_a_source_and_an_example_of_its_cause(rule: LogRule) -> None:
    assert rule.source
    assert rule.fits(rule.example)
    found = fired(rule.example, BUILT_IN, resumed=True)
    assert found is not None
    assert found.cause is rule.cause


@pytest.mark.parametrize("line", HARMLESS)
def test_what_healthy_trainers_print_fires_nothing(line: str) -> None:
    assert fired(line, BUILT_IN, resumed=True) is None


def test_colours_and_ranks_in_front_do_not_hide_a_cause() -> None:
    line = "\x1b[31m[default3]:[rank3]: ModuleNotFoundError: No module named 'flash_attn'\x1b[0m"
    assert classify([line], BUILT_IN, code=1) == (
        Cause.IMPORT_ERROR,
        "ModuleNotFoundError: No module named 'flash_attn'",
    )


TORCHRUN_BLOCK = """\
E1121 10:00:09.000 411 torch/distributed/elastic/api.py] failed (exitcode: {code}) local_rank: 1 (pid: 4242) of binary: python
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_10:00:09
  host      : pod
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 4242)  {name}
  error_file: <N/A>
  traceback : {traceback}
============================================================
"""
KILLED_BLOCK = TORCHRUN_BLOCK.format(
    code=-9, name="(SIGKILL)", traceback="Signal 9 (SIGKILL) received by PID 4242"
).splitlines()
FAILED_BLOCK = TORCHRUN_BLOCK.format(
    code=1, name="", traceback="To enable traceback see: https://pytorch.org/docs"
).splitlines()
PEERS = [
    "[rank0]: torch.distributed.DistBackendError: NCCL error, ncclRemoteError: remote process exited or "
    "there was a network error",
    "[rank2]:[E1121] [PG 0 Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, "
    "OpType=ALLGATHER",
    "RuntimeError: Connection reset by peer",
]


def test_torchrun_exit_1_hides_a_killed_worker() -> None:
    cause, line = classify([*PEERS, *KILLED_BLOCK], BUILT_IN, code=1)
    assert cause is Cause.KILLED
    assert line == "rank 1 was killed by SIGKILL"


def test_out_of_memory_on_one_rank_outranks_the_complaints_of_the_others() -> None:
    oom = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert classify([*PEERS, oom, *PEERS, *KILLED_BLOCK], BUILT_IN, code=1)[0] is Cause.GPU_OOM
    assert (
        classify([oom, *FAILED_BLOCK], BUILT_IN, code=1)[1]
        == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )


def test_a_full_disk_outranks_the_checkpoint_that_could_not_be_written() -> None:
    lines = [
        "OSError: [Errno 28] No space left on device",
        "During handling of the above exception, another exception occurred:",
        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0])",
    ]
    assert classify(lines, BUILT_IN, code=1)[0] is Cause.DISK_FULL


def test_only_consequences_name_the_consequence() -> None:
    assert classify(PEERS[1:2], BUILT_IN, code=-6)[0] is Cause.COLLECTIVE_TIMEOUT


LOST = (
    "[rank1]: RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:23456"
)


@pytest.mark.parametrize(
    "lines", [["[rank0]: KeyError: 'labels'", LOST], [LOST, "[rank0]: KeyError: 'labels'"]]
)
def test_a_mistake_on_one_rank_outranks_the_lost_connections_of_the_others(lines: list[str]) -> None:
    assert classify([*lines, *FAILED_BLOCK], BUILT_IN, code=1) == (Cause.TRAINER_ERROR, "KeyError: 'labels'")


@pytest.mark.parametrize(
    "line",
    [
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443)",
        "torch.distributed.DistBackendError: watchdog",
        "TimeoutError",
        "ValueError: no batch; retrying",
    ],
)
def test_what_follows_from_a_lost_connection_does_not_hide_it(line: str) -> None:
    assert (
        classify([line, LOST, "RuntimeError: the engine has stopped"], BUILT_IN, code=1)[0]
        is Cause.NETWORK_ERROR
    )


def test_an_unknown_failure_shows_the_last_meaningful_line() -> None:
    lines = ["RuntimeError: training loop stopped unexpectedly", *FAILED_BLOCK]
    assert classify(lines, BUILT_IN, code=1) == (
        Cause.TRAINER_ERROR,
        "RuntimeError: training loop stopped unexpectedly",
    )
    assert classify(["step 3", "giving up", "", "-----"], BUILT_IN, code=7) == (
        Cause.TRAINER_ERROR,
        "giving up",
    )
    assert classify([], BUILT_IN, code=3) == (Cause.TRAINER_ERROR, "ended by exit code 3")


@pytest.mark.parametrize(
    ("code", "cause", "shown"),
    [
        (-9, Cause.KILLED, "SIGKILL"),
        (137, Cause.KILLED, "SIGKILL"),
        (-15, Cause.KILLED, "SIGTERM"),
        (143, Cause.KILLED, "SIGTERM"),
        (-7, Cause.SHARED_MEMORY, "SIGBUS"),
        (-11, Cause.TRAINER_ERROR, "SIGSEGV"),
        (127, Cause.BAD_CONFIG, "127"),
        (-200, Cause.TRAINER_ERROR, "-200"),
    ],
)
def test_without_words_the_exit_code_speaks(code: int, cause: Cause, shown: str) -> None:
    found, text = classify([], BUILT_IN, code=code)
    assert found is cause
    assert shown in text


def test_a_signal_outranks_what_was_survived_but_not_a_root_cause() -> None:
    survived = ["OSError: [Errno 98] Address already in use", *PEERS]
    assert classify(survived, BUILT_IN, code=-9)[0] is Cause.KILLED
    assert (
        classify([*survived, "[1.0] Out of memory: Killed process 7 (python)"], BUILT_IN, code=-9)[0]
        is Cause.HOST_OOM
    )


def test_a_failure_that_was_retried_is_not_the_cause() -> None:
    lines = ["torch.OutOfMemoryError: CUDA out of memory. retrying with batch size 4", "ValueError: boom"]
    assert classify(lines, BUILT_IN, code=1) == (Cause.TRAINER_ERROR, "ValueError: boom")


def test_a_save_that_died_without_a_word_on_a_full_disk_is_a_full_disk() -> None:
    assert classify(["ValueError: boom"], BUILT_IN, code=1, disk_full=True) == (
        Cause.DISK_FULL,
        "ValueError: boom",
    )
    assert classify(["MemoryError"], BUILT_IN, code=1, disk_full=True)[0] is Cause.HOST_OOM


def test_starting_over_is_wrong_only_where_a_checkpoint_was_to_be_resumed() -> None:
    line = "this is a fresh start."
    assert fired(line, BUILT_IN, resumed=False) is None
    rule = fired(line, BUILT_IN, resumed=True)
    assert rule is not None
    assert rule.stop
    assert rule.cause is Cause.RESUME_IGNORED


def test_exit_code_0_is_an_end_whatever_was_logged_but_for_giving_up() -> None:
    assert classify([*PEERS, "MemoryError"], BUILT_IN, code=0)[0] is Cause.FINISHED
    assert classify(["Ran out of data; last step was canceled."], BUILT_IN, code=0)[0] is Cause.STOPPED_EARLY
    assert classify(["this is a fresh start"], BUILT_IN, code=0)[0] is Cause.FINISHED
    assert classify(["this is a fresh start"], BUILT_IN, code=0, resumed=True)[0] is Cause.RESUME_IGNORED


def test_the_users_rules_come_first() -> None:
    made = spec(
        health={
            "log_rules": [
                {"pattern": "reward model collapsed"},
                {"pattern": "loss \\d+ > limit", "cause": "not_finite", "stop": False},
            ]
        }
    )
    table = trainer_for(made).log_rules(made)
    own = fired("E: reward model collapsed at 7", table, resumed=False)
    assert own is not None
    assert (own.cause, own.stop) == (Cause.LOG_RULE, True)
    lines = ["torch.OutOfMemoryError: CUDA out of memory.", "loss 12 > limit"]
    assert classify(lines, table, code=1) == (Cause.NOT_FINITE, "loss 12 > limit")


def test_no_rule_but_starting_over_stops_a_trainer() -> None:
    assert {rule.cause for rule in BUILT_IN if rule.stop} == {Cause.RESUME_IGNORED}


@given(st.lists(st.text(max_size=80), max_size=6), st.integers(-70, 300))
def test_any_output_has_a_cause(lines: list[str], code: int) -> None:
    cause, text = classify(lines, BUILT_IN, code=code)
    assert isinstance(cause, Cause)
    assert len(text) <= 500


def test_a_megabyte_without_a_line_end_is_judged_by_its_end() -> None:
    assert (
        classify(["x" * 2**20 + " [Errno 28] No space left on device"], BUILT_IN, code=1)[0]
        is Cause.DISK_FULL
    )
