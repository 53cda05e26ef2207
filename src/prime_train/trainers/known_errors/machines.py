"""Errors of one machine: its GPUs, driver, disk, shared memory and limits."""

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.known_errors.table import HINT, known

RULES = (
    *known(
        Cause.OPEN_FILES,
        "Linux errno 24, as CPython, PyTorch, Rust and Go print it",
        (
            r"\[Errno 24\] Too many open files",
            "OSError: [Errno 24] Too many open files: '/dev/shm/torch_2174_1840553912_1019'",
        ),
        (
            r"Too many open files\. Communication with the workers is no longer possible",
            "RuntimeError: Too many open files. Communication with the workers is no longer possible. Please "
            "increase the limit",
        ),
        (r"received 0 items of ancdata", "RuntimeError: received 0 items of ancdata"),
        (
            r"(?i)too many open files \(os error 24\)|accept4?\(?\)?.*: too many open files",
            "Error: Too many open files (os error 24)",
        ),
        (r"Too many open files$", "error creating pipe: Too many open files"),
        (
            r"inotify (instances|watches|watch) .*limit|\[Errno 28\] inotify",
            "OSError: [Errno 28] inotify watch limit reached",
        ),
    ),
    *known(
        Cause.OPEN_FILES,
        "Linux EAGAIN of clone(2): the limit of processes and threads of this machine's container",
        (
            r"pthread_create failed|can't start new thread|Resource temporarily unavailable.*fork|fork: "
            r"(retry: )?Resource "
            r"temporarily unavailable",
            "RuntimeError: can't start new thread",
        ),
        (
            r"BlockingIOError: \[Errno 11\] Resource temporarily unavailable",
            "BlockingIOError: [Errno 11] Resource temporarily unavailable",
        ),
        action=Action.ANOTHER_MACHINE,
    ),
    *known(
        Cause.SHARED_MEMORY,
        "NCCL, src/misc/shmutils.cc: /dev/shm is too small, which is no fault of the network",
        (
            r"shmutils\.cc.*WARN|/dev/shm/nccl|creating shared memory segment",
            "node1:55:99 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-abc to "
            "33030532 bytes, error: No space left on device (28)",
        ),
    ),
    *known(
        Cause.SHARED_MEMORY,
        "PyTorch, aten/src/ATen/MapAllocator.cpp and torch/utils/data; Python's multiprocessing",
        (
            r"unable to (open|allocate|mmap|write to|resize) (a )?(shared memory|(\d+ bytes from )?file "
            r"</torch_)",
            "RuntimeError: unable to open shared memory object </torch_1_2_3> in read-write mode: No such "
            "file or directory (2)",
        ),
        (
            r"(?i)insufficient shared memory \(shm\)",
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
            "memory (shm).",
        ),
        (
            r"^Bus error|[Kk]illed by signal: Bus error|Fatal Python error: Bus error",
            "Bus error (core dumped)",
        ),
        (
            r"No space left on device.*'/(dev/shm|psm_)",
            "OSError: [Errno 28] No space left on device: '/dev/shm/torch_1'",
        ),
        (
            r"The object store is using /tmp instead of /dev/shm.*error|size of /dev/shm .* too small",
            "ValueError: The configured object store size exceeds /dev/shm size: size of /dev/shm is too "
            "small",
        ),
    ),
    *known(
        Cause.DISK_FULL,
        "Linux errno 28 and 122, as CPython, Rust, coreutils, PyTorch, Ray and datasets print it",
        (
            r"\[Errno 28\] No space left on device|^OSError: ?No space left on device$",
            "OSError: [Errno 28] No space left on device: 'weights.npz'",
        ),
        (
            r"No space left on device \((os error )?28\)",
            "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device "
            "(os error 28)",
        ),
        # The error that torch.save raises on a full disk.
        (
            r"\[enforce fail at inline_container\.cc:\d+\] ?\. ?unexpected pos \d+ vs \d+",
            "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534",
        ),
        (
            r"PytorchStreamWriter failed writing file",
            "RuntimeError: PytorchStreamWriter failed writing file data/12: file write failed",
        ),
        (
            r"kind: StorageFull|\bcode: 28, kind|\berrno = 28\b",
            "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: "
            'StorageFull, message: "No space" })',
        ),
        (r"Disk quota exceeded", "OSError: [Errno 122] Disk quota exceeded"),
        (r"[:;] No space left on device$", "cp: error writing '/disk/a': No space left on device"),
        (r"ray\.exceptions\.OutOfDiskError", "ray.exceptions.OutOfDiskError: Local disk is full"),
        (
            r"Not enough (free )?disk space",
            "OSError: Not enough disk space. Needed: 1.20 TiB (download: 400 GiB, generated: 800 GiB)",
        ),
        (r"database or disk is full|ENOSPC", "sqlite3.OperationalError: database or disk is full"),
    ),
    # A folder that is not there has words of its own: "Parent directory out does not exist."
    *known(
        Cause.DISK_FULL,
        "PyTorch, caffe2/serialize/inline_container.cc: a file that torch.save cannot create, mostly on a "
        "full disk",
        (
            r"^RuntimeError: File \S+ cannot be opened\.?$",
            "RuntimeError: File out/checkpoint_0.pt cannot be opened.",
        ),
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.TRAINER_ERROR,
        "Linux errno 5, 22 of a write, 30, 107 and 116: the disk of this machine has errors or can no longer "
        "be written to",
        (
            r"\[Errno 5\] Input/output error|Input/output error \(os error 5\)|: Input/output error$"
            r"|I/O error: Invalid argument \(os error 22\)",
            "OSError: [Errno 5] Input/output error: '/data/shard-0001.bin'",
        ),
        (
            r"Read-only file system",
            "OSError: [Errno 30] Read-only file system: '/workspace/out/checkpoint-100'",
        ),
        (
            r"Stale (NFS )?file handle|\[Errno 107\] Transport endpoint is not connected",
            "OSError: [Errno 116] Stale file handle: '/mnt/data/a'",
        ),
        action=Action.ANOTHER_MACHINE,
    ),
    *known(
        Cause.GPU_HARDWARE,
        "NVIDIA's driver: https://docs.nvidia.com/deploy/xid-errors, and CUDA's own messages of lost or "
        "faulty GPUs",
        (
            r"(?i)uncorrectable (NVLink|ECC) error|uncorrectable ECC|double[- ]bit ECC",
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        ),
        (
            r"NVRM: Xid.*: (48|62|63|64|74|79|92|94|95|119|120|121|140|143)\b",
            "NVRM: Xid (PCI:0000:4d:00): 63, pid='<unknown>', Row Remapper: New row",
        ),
        (
            r"(?i)fallen off the bus|GPU[ _]is[ _]lost",
            "[ 99.1] NVRM: Xid (PCI:0000:4d:00): 79, pid=1234, GPU has fallen off the bus.",
        ),
        (
            r"NVRM: .*(probe routine failed|RmInitAdapter failed|API mismatch|rm_init_adapter failed)",
            "[ 1843.4] NVRM: The NVIDIA probe routine failed for 1 device(s).",
        ),
        (
            r"CUDA error: (hardware stack error|NVLink|GPU is lost|Invalid access of peer GPU memory)|or a "
            r"hardware error|vendor err \d+",
            "RuntimeError: CUDA error: hardware stack error",
        ),
        (
            r"(?i)fabric ?manager.*(not|error|fail)|system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY",
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        ),
        (
            r"CUDA_ERROR_ECC_UNCORRECTABLE|CUDA_ERROR_NVLINK|CUDA_ERROR_HARDWARE_STACK",
            "XlaRuntimeError: INTERNAL: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error",
        ),
    ),
    *known(
        Cause.GPU_HARDWARE,
        "PyTorch, torch/csrc/cuda/Module.cpp and c10/cuda/CUDAFunctions.cpp: no GPU, or a driver that does "
        "not fit",
        (
            r"No (CUDA|HIP|XPU|NPU) GPUs are available|No supported gpu backend found|CUDA-capable "
            r"device\(s\) is/are busy or unavailable",
            "RuntimeError: No CUDA GPUs are available",
        ),
        (
            r"no CUDA-capable device is detected",
            "RuntimeError: CUDA error: no CUDA-capable device is detected",
        ),
        (
            r"CUDA driver version is insufficient|forward compatibility was attempted|driver on your system "
            r"is too old",
            "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
        ),
        (r"Found no NVIDIA driver on your system", "RuntimeError: Found no NVIDIA driver on your system."),
        (
            r"CUDA driver initialization failed",
            "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
        ),
        (
            r"Unexpected error from cudaGetDeviceCount",
            "RuntimeError: Unexpected error from cudaGetDeviceCount().",
        ),
        (
            r"(?i:nvml error|failed to initialize NVML|driver/library version mismatch|could not select "
            r"device driver)|NVMLError",
            "Failed to initialize NVML: Driver/library version mismatch",
        ),
        (
            r"nvidia-container-cli: |Failed to create NVIDIA device|error running nvidia-container-runtime",
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1",
        ),
        (
            r"Unable to determine the device handle for GPU",
            "Unable to determine the device handle for GPU0000:4D:00.0: Unknown Error",
        ),
        (
            r"CUDA error: (unknown error|initialization error|device not ready|invalid device "
            r"ordinal.*fabric)"
            r"|cuda runtime error \((6|30)\)",
            "RuntimeError: CUDA error: unknown error",
        ),
        (
            r"couldn't communicate with the NVIDIA driver",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
        (
            r"the provided PTX was compiled with an unsupported toolchain|CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        ),
    ),
    *known(
        Cause.GPU_HARDWARE,
        "JAX and XLA, jax/_src/xla_bridge.py and xla/stream_executor/cuda",
        (
            r"Unable to initialize backend '(cuda|gpu|rocm)'",
            "RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices.",
        ),
        (
            r"No visible GPU devices|CUDA_ERROR_NO_DEVICE|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|"
            r"CUDA_ERROR_COMPAT_NOT_SUPPORTED\w*"
            r"|CUDA_ERROR_NOT_INITIALIZED|CUDA_ERROR_DEVICE_UNAVAILABLE|failed call to cuInit|Failed call to "
            r"cuInit",
            "INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is "
            "detected",
        ),
    ),
    *known(
        Cause.GPU_HARDWARE,
        "vLLM and DeepSpeed: the machine shows no accelerator",
        (
            r"Failed to infer device type|No accelerator is available|Device string must not be empty",
            "RuntimeError: Failed to infer device type, please set the environment variable "
            "`VLLM_LOGGING_LEVEL=DEBUG`",
        ),
    ),
    # A script that goes on without one says so, too.
    *known(
        Cause.GPU_HARDWARE,
        "Levanter, JAX and scripts: the machine shows no accelerator",
        (
            r"(?i:\bno (accelerators?|gpus?|tpus?|cuda devices?) (was |were |is |are )?(found|detected)\b)|"
            r"TPU initialization failed",
            "RuntimeError: No accelerator found. Please run on a TPU or GPU.",
        ),
        raised_only=True,
    ),
    *known(
        Cause.CUDA_ERROR,
        "PyTorch, IndexKernel.cu and Loss.cu: an index lies outside of the vocabulary or the classes",
        (
            r"device-side assert triggered|CUDA_ERROR_ASSERT",
            "RuntimeError: CUDA error: device-side assert triggered",
        ),
        (
            r"Assertion `.*(srcIndex|index|t >= 0|target|ind >= 0).*` failed",
            "Indexing.cu:1237: indexSelectSmallIndex: block: [0,0,0], thread: [0,0,0] Assertion `srcIndex < "
            "srcSelectDimSize` failed.",
        ),
        (
            r"(CUDA ([Ee]|runtime e|driver e)rror:? (\(\d+\) ?: )?|Cuda failure (\d+ )?'|^Error )(invalid "
            r"configuration argument|invalid "
            r"argument|invalid device ordinal|invalid resource handle)",
            "RuntimeError: CUDA error: invalid configuration argument",
        ),
        action=Action.STOP,
    ),
    *known(
        Cause.CUDA_ERROR,
        "CUDA, cuBLAS and cuDNN as PyTorch prints them",
        (
            r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS",
            "RuntimeError: CUDA error: an illegal memory access was encountered",
        ),
        (
            r"CUDA error: (misaligned address|invalid device function|an illegal instruction was encountered|"
            r"invalid program counter)",
            "RuntimeError: CUDA error: misaligned address",
        ),
        (
            r"unspecified launch failure|CUDA_ERROR_LAUNCH_FAILED",
            "RuntimeError: CUDA error: unspecified launch failure",
        ),
        (
            r"CUDA error: the launch timed out and was terminated|CUDA_ERROR_LAUNCH_TIMEOUT",
            "RuntimeError: CUDA error: the launch timed out and was terminated",
        ),
        (
            r"CUDA_ERROR_(ILLEGAL_INSTRUCTION|MISALIGNED_ADDRESS|INVALID_PC|UNKNOWN)",
            "INTERNAL: CUDA error: Failed to end stream capture: CUDA_ERROR_ILLEGAL_INSTRUCTION: an illegal "
            "instruction was encountered",
        ),
    ),
    *known(
        Cause.CUDA_ERROR,
        "cuBLAS and cuDNN as PyTorch prints them: may be passing",
        (
            r"(?i:\bcu(blas|solver|sparse|fft|rand|dnn) (internal error|execution failed))"
            r"|CUBLAS_STATUS_(EXECUTION_FAILED|NOT_INITIALIZED|INTERNAL_ERROR|NOT_SUPPORTED|INVALID_VALUE|"
            r"ARCH_MISMATCH|MAPPING_ERROR)",
            "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
        ),
        (
            r"CUDNN_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR|NOT_INITIALIZED|NOT_SUPPORTED|"
            r"BAD_PARAM)\w*"
            r"|Check failed: status == CU(DNN|BLAS)_STATUS_SUCCESS",
            "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        ),
        (
            r"cu(SOLVER|FFT|SPARSE|RAND) error|CU(SOLVER|FFT|SPARSE|RAND)_(STATUS_)?(INTERNAL_ERROR|"
            r"EXECUTION_FAILED|EXEC_FAILED)",
            "RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR",
        ),
        action=Action.SAME_MACHINE,
    ),
    *known(
        Cause.CUDA_ERROR,
        "CUDA: any other error of its driver or runtime",
        (
            r"C(UDA|uda) ([Ee]|driver e|runtime e)rror(: | \()|Cuda failure |^Error .* at line \d+ in file "
            r"\S+\.cuh?$"
            r"|CUDA_ERROR_[A-Z_]+|cudaError\w+|HIP error: |hipError\w+",
            "RuntimeError: CUDA error: operation failed due to a previous error during capture",
        ),
        strength=HINT,
    ),
    *known(
        Cause.PORT_IN_USE,
        "Linux errno 98, as PyTorch's TCPStore, uvicorn and Ray print it",
        (r"EADDRINUSE|[Aa]ddress already in use|Errno 98", "OSError: [Errno 98] Address already in use"),
        (
            r"Cannot find (an )?(empty|available|free) port|[Pp]ort \d+ is (already )?(in use|not available|"
            r"unavailable)",
            "ValueError: Port 8000 is already in use",
        ),
        (
            r"The current node timed out during startup|some of the raylet failed to startup",
            "ValueError: The current node timed out during startup. This could happen because some of the "
            "raylet failed to startup or the GCS has become overloaded.",
        ),
        action=Action.SAME_MACHINE,
        strength=HINT,
    ),
    *known(
        Cause.GPU_HARDWARE,
        "NCCL, ncclUnhandledCudaError: a CUDA call failed inside NCCL, which may be passing",
        (
            r"ncclUnhandledCudaError|unhandled cuda error",
            "RuntimeError: NCCL error: ncclUnhandledCudaError: Call to CUDA function failed.",
        ),
        action=Action.SAME_MACHINE,
        strength=HINT,
    ),
    *known(
        Cause.SHARED_MEMORY,
        "PyTorch, torch/utils/data/dataloader.py",
        (
            r"DataLoader worker \(pid(\(s\))? .* exited unexpectedly",
            "RuntimeError: DataLoader worker (pid(s) 4321) exited unexpectedly",
        ),
        strength=HINT,
    ),
)
