"""Errors for want of GPU memory or host memory."""

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.known_errors.table import HINT, known

RULES = (
    *known(
        Cause.INFERENCE_OOM,
        "vLLM, vllm/v1/engine/core.py: its engine's process runs out of memory",
        (
            r"\(EngineCore\S* pid=\d+\).*(OutOfMemoryError|CUDA out of memory)",
            "(EngineCore_DP0 pid=88) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.9 GiB.",
        ),
    ),
    *known(
        Cause.INFERENCE_OOM,
        "vLLM, vllm/v1/core/kv_cache_utils.py, v1/worker/gpu_worker.py and gpu_model_runner.py",
        (
            r"No available memory for the cache blocks",
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` "
            "when initializing the engine.",
        ),
        (
            r"KV cache is needed, which is larger than the available KV cache memory",
            "ValueError: 16.00 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(7.41 GiB).",
        ),
        (
            r"larger than the maximum number of tokens that can be stored in KV cache",
            "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that "
            "can be stored in KV cache (16048).",
        ),
        (
            r"Free memory on device .*on startup is less than desired GPU memory utilization",
            "ValueError: Free memory on device (12.3/79.1 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 71.19 GiB).",
        ),
        (
            r"CUDA out of memory occurred when warming up sampler",
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests.",
        ),
        (
            r"Error in memory profiling\. Initial free memory",
            "AssertionError: Error in memory profiling. Initial free memory 10 GiB, current free memory 12 "
            "GiB.",
        ),
    ),
    *known(
        Cause.INFERENCE_OOM,
        "SGLang, python/sglang/srt/model_executor/model_runner.py and cuda_graph_runner.py",
        (
            r"Not enough memory\. Please try (to increase|increasing) --mem-fraction-static",
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        ),
        (
            r"Capture cuda graph failed: .*(out of memory|CUBLAS_STATUS_ALLOC)",
            "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.2 GiB",
        ),
        (
            r"The memory capacity is unbalanced",
            "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
        ),
        (
            r"KV cache pool is full|Prefill out of memory|Decode out of memory",
            "RuntimeError: Prefill out of memory. Try to lower your batch size.",
        ),
    ),
    *known(
        Cause.GPU_OOM,
        "NCCL, src/misc/utils: a CUDA call inside NCCL that found no memory, which may be passing",
        (r"Cuda failure (2 )?'out of memory'", "Cuda failure 2 'out of memory'"),
        action=Action.SAME_MACHINE,
    ),
    *known(
        Cause.GPU_OOM,
        "Triton, triton/runtime/errors.py: the kernel needs more than this kind of GPU has",
        (
            r"OutOfResources: out of resource: |out of resource: shared memory",
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, "
            "Hardware limit: 101376.",
        ),
        action=Action.ANOTHER_MACHINE,
    ),
    *known(
        Cause.GPU_OOM,
        "PyTorch, c10/cuda/CUDACachingAllocator.cpp and aten/src/ATen/cuda",
        (
            r"OutOfMemoryError: CUDA out of memory",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
            "capacity of 23.69 GiB",
        ),
        (r"CUDA error: out of memory", "RuntimeError: CUDA error: out of memory"),
        (
            r"^\S*(Error|Exception): .*CUDA out of memory|Train OOM",
            "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB",
        ),
        (
            r"OutOfMemoryError: (HIP|XPU|MPS|NPU) ?(backend )?out of memory",
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB",
        ),
        (
            r"torch\.OutOfMemoryError: Allocation on device",
            "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory.",
        ),
        (
            r"(CUBLAS|CUSOLVER|CUSPARSE|CUDNN|CUFFT)_(STATUS_)?ALLOC_FAILED",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ),
        (
            r"Unable to find a valid cuDNN algorithm to run convolution",
            "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",
        ),
        (
            r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
            "CUDA driver error: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        ),
        (
            r"RayTaskError\(OutOfMemoryError\): ",
            "ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.update_actor() (pid=90122)",
        ),
    ),
    *known(
        Cause.GPU_OOM,
        "XLA, xla/tsl/framework/bfc_allocator.cc, as JAX and TensorFlow print it",
        (
            r"RESOURCE_EXHAUSTED: .*(Out of memory|[Oo]ut of memory|allocate|OOM|memory)",
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
            "allocate 17179869184 bytes.",
        ),
        (
            r"ResourceExhaustedError\b.{0,40}: .*([Ff]ailed to allocate memory|OOM when allocating)"
            r"|ResourceExhaustedError: (Graph execution error|\d+ root error)",
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
            "shape[8,4096]",
        ),
    ),
    *known(
        Cause.GPU_OOM,
        "TensorFlow, core/framework/op_kernel.cc: what follows the name of the layer that asked for the "
        "memory",
        (
            r"\bOOM when allocating tensor with shape\b.*\b(GPU|gpu)\b",
            "{{function_node __wrapped__Conv2D}} OOM when allocating tensor with shape[8,64] on "
            "/job:localhost/device:GPU:0 by allocator a",
        ),
        strength=HINT,
    ),
    *known(
        Cause.HOST_OOM,
        "PyTorch, c10/core/impl/alloc_cpu.cpp",
        (
            r"DefaultCPUAllocator: (can't allocate|not enough) memory",
            "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate "
            "memory",
        ),
        (
            r"CUDA error: cudaHostAlloc|cudaErrorHostMemory|Pin memory thread exited unexpectedly",
            "RuntimeError: Pin memory thread exited unexpectedly",
        ),
    ),
    *known(
        Cause.HOST_OOM,
        "Linux, mm/oom_kill.c and memory cgroups",
        (
            r"[Oo]ut of memory: Kill(ed)? process \d+",
            "[12345.678] Out of memory: Killed process 4242 (python) total-vm:123kB, anon-rss:99kB",
        ),
        (
            r"oom-kill:|oom_reaper:|Memory cgroup out of memory",
            "kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker",
        ),
        (r"\bOOMKilled\b", "Last State: Terminated, Reason: OOMKilled, Exit Code: 137"),
    ),
    *known(
        Cause.HOST_OOM,
        "Slurm, slurmstepd",
        (
            r"Detected \d+ oom[_-]kill event|OOM Killed",
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7123.batch.",
        ),
        (r"srun: error: .*: Out Of Memory", "srun: error: gpu-07: task 0: Out Of Memory"),
        (r"Exceeded (job|step) memory limit", "slurmstepd: error: Exceeded job memory limit at some point."),
    ),
    *known(
        Cause.HOST_OOM,
        "CPython, NumPy, Arrow and the C++ library",
        (r"^(numpy\.\S*)?_?(Array)?MemoryError(: |$)", "MemoryError"),
        (
            r"_ArrayMemoryError: Unable to allocate",
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 149. GiB for an array with shape "
            "(200000, 100000)",
        ),
        (
            r"ArrowMemoryError|(malloc|realloc) of size \d+ failed",
            "pyarrow.lib.ArrowMemoryError: malloc of size 4294967296 failed",
        ),
        (
            r"\[Errno 12\] Cannot allocate memory|: Cannot allocate memory( \(12\))?$",
            "OSError: [Errno 12] Cannot allocate memory",
        ),
        (r"std::bad_alloc", "terminate called after throwing an instance of 'std::bad_alloc'"),
    ),
    *known(
        Cause.HOST_OOM,
        "Ray, python/ray/exceptions.py and the memory monitor of the raylet",
        (
            r"ray\.exceptions\.OutOfMemoryError",
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        ),
        (
            r"Workers? \(tasks / actors\) killed due to memory pressure",
            "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM)",
        ),
        (
            r"killed due to the node running low on memory|RAY_memory_usage_threshold",
            "Task was killed due to the node running low on memory.",
        ),
    ),
    *known(
        Cause.HOST_OOM,
        "PyTorch, torch/utils/data/_utils/signal_handling.py, and Paddle",
        (
            r"DataLoader (worker|process) \(pid(\(s\))? .* is killed by signal: Killed",
            "RuntimeError: DataLoader worker (pid 4321) is killed by signal: Killed.",
        ),
        strength=HINT,
    ),
    *known(
        Cause.HOST_OOM,
        "datasets, datasets/utils/py_utils.py: a process of `map` is gone without a word, mostly because "
        "memory ran out",
        (
            r"One of the subprocesses has abruptly died during map operation",
            "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the "
            "error, disable multiprocessing.",
        ),
        strength=HINT,
    ),
)
