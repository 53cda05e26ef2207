"""Errors of the installed software: missing or unfitting libraries, and compilers."""

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.known_errors.table import HINT, known

RULES = (
    *known(
        Cause.IMPORT_ERROR,
        "CPython's import system and the dynamic linker",
        (r"^(ModuleNotFoundError|ImportError): ", "ModuleNotFoundError: No module named 'flash_attn'"),
        (
            r"RayTaskError\((ModuleNotFoundError|ImportError)\): ",
            "ray.exceptions.RayTaskError(ModuleNotFoundError): ray::WorkerDict.init_model() (pid=771, "
            "ip=10.0.0.1)",
        ),
        (r"No module named '?[\w.]+'?$", "/usr/bin/python3: No module named torch.distributed.run"),
        (r"cannot import name '[\w.]+' from", "cannot import name 'LossKwargs' from 'transformers.utils'"),
        (
            r"undefined symbol: |symbol lookup error",
            "ImportError: /a/flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2E",
        ),
        (
            r"version `(GLIBC|GLIBCXX|CXXABI|OPENSSL|GOMP)_[\w.]+' not found",
            "OSError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by a.so)",
        ),
        (
            r"error while loading shared libraries: |cannot open shared object file",
            "python: error while loading shared libraries: libcudart.so.12: cannot open shared object file",
        ),
        (
            r"(?i:(could not|unable to|failed to|can ?not) load (any of |(dynamic |shared |the )?(library|"
            r"symbol) ?)).*\blib\w+\S*\.so"
            r"|CUDNN_STATUS_(SUBLIBRARY_|VERSION_MISMATCH)\w*|[Ll]ibdevice not found",
            "Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot open shared object "
            "file",
        ),
        (
            r"PackageNotFoundError: ",
            "importlib.metadata.PackageNotFoundError: No package metadata was found for bitsandbytes",
        ),
        (
            r"pkg_resources\.(DistributionNotFound|VersionConflict|ContextualVersionConflict)",
            "pkg_resources.DistributionNotFound: The 'deepspeed' distribution was not found",
        ),
        (
            r"AttributeError: (partially initialized )?module '[\w.]+' has no attribute",
            "AttributeError: module 'torch.distributed' has no attribute 'tensor'",
        ),
        (
            r"Failed to import [\w.]+ because of the following error",
            "RuntimeError: Failed to import transformers.models.clip.modeling_clip because of the following "
            "error (look up to see its traceback):",
        ),
    ),
    *known(
        Cause.IMPORT_ERROR,
        "NumPy, PyTorch and torchvision: libraries that were built against other versions",
        (
            r"Numpy is not available|Descriptors cannot (not )?be created directly"
            r"|numpy\.\w+ size changed|A module that was compiled using NumPy 1\.x cannot be run"
            r"|numpy\.core\.multiarray failed to import",
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility.",
        ),
        (
            r"operator torchvision::nms does not exist|Couldn't load custom C\+\+ ops",
            "RuntimeError: operator torchvision::nms does not exist",
        ),
        (
            r"Torch not compiled with CUDA enabled|not compiled with (CUDA|NCCL)|Distributed package doesn't "
            r"have NCCL",
            "AssertionError: Torch not compiled with CUDA enabled",
        ),
        (
            r"detected CUDA version .*mismatches the version that was used to compile|DeepSpeed Op Builder: "
            r"Installed CUDA "
            r"version .* does not match",
            "RuntimeError: The detected CUDA version (11.8) mismatches the version that was used to compile "
            "PyTorch (12.4).",
        ),
        (
            r"no kernel image is available|CUDA_ERROR_NO_BINARY_FOR_GPU|is not compatible with the current "
            r"PyTorch installation",
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        ),
        (
            r"ABI mismatch|incompatible (ABI|with the installed version of)",
            "RuntimeError: ABI mismatch: the extension is incompatible with the installed version of torch",
        ),
        (
            r"requires a different Python|'type' object is not subscriptable",
            "ERROR: Package 'trl' requires a different Python: 3.8.10 not in '>=3.9'",
        ),
        raised_only=True,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "CUDA's runtime: a library that has no kernel for this kind of GPU, as bitsandbytes and others print "
        "it without an exception",
        (
            r"named symbol not found|device kernel image is invalid|^Error (no kernel image|invalid device "
            r"function)",
            "Error named symbol not found at line 116 in file bitsandbytes/csrc/ops.cu",
        ),
    ),
    *known(
        Cause.IMPORT_ERROR,
        "FlashAttention, xFormers, bitsandbytes, DeepSpeed, transformers and PEFT: an extra package is "
        "missing or does not fit",
        (
            r"FlashAttention only supports Ampere|only supports? (sm_?\d+|GPUs with|compute capability|CUDA|"
            r"Hopper|Ampere|Blackwell)",
            "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        ),
        (
            r"FlashAttention-?2? ?(has been toggled on, but it )?cannot be used|the package flash_attn seems "
            r"to be not installed",
            "RuntimeError: FlashAttention2 has been toggled on, but it cannot be used due to the following "
            "error:",
        ),
        (
            r"CUDA Setup failed despite|bitsandbytes.*(was not compiled|compiled without GPU support|library "
            r"load error|needs "
            r"to be installed)",
            "RuntimeError: CUDA Setup failed despite GPU being available. Please run the following command "
            "to get more information:",
        ),
        (
            r"(Using|Loading) .* requires (the latest version of |the )?[\w`' -]+(installed)?: ?`?pip "
            r"install|requires? .*to be "
            r"installed|is required but not installed|[Nn]eed to have .* installed|(is|are) not installed|"
            r"Could not import|not "
            r"available in your environment",
            "ImportError: Using `bitsandbytes` 4-bit quantization requires the latest version of "
            "bitsandbytes: `pip install -U bitsandbytes`",
        ),
        (
            r"(Please|please|You (need|have) to|Try) .*`?pip3? install ",
            "RuntimeError: Please install accelerate with pip install accelerate",
        ),
        (
            r"serious vulnerability issue in `torch\.load`|require users to upgrade torch",
            "ValueError: Due to a serious vulnerability issue in `torch.load`, even with "
            "`weights_only=True`, we now require users to upgrade torch to at least v2.6",
        ),
        (
            r"does not recognize this architecture|your version of Transformers is out of date",
            "ValueError: The checkpoint you are trying to load has model type `qwen4` but Transformers does "
            "not recognize this architecture.",
        ),
        # A tokenizer.json that a newer version of the library wrote.
        (
            r"data did not match any variant of untagged enum",
            "Exception: data did not match any variant of untagged enum ModelWrapper at line 250373 column 3",
        ),
        (
            r"No operator found for `|operator wasn't built|xFormers (wasn't|was not) buil[dt]",
            "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:",
        ),
        (
            r"KeyError: '(qwen|llama|mistral|mixtral|gemma|phi|deepseek|glm|chatglm|gpt|olmo|granite|"
            r"internlm|minicpm|cohere"
            r"|falcon|smollm|kimi|minimax)[\w.-]*'$",
            "KeyError: 'qwen3_next'",
        ),
        raised_only=True,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "transformers, TRL and accelerate: an argument that has another name, or another place, in another "
        "version",
        (
            r"(Trainer|TrainingArguments|Accelerator|(SFT|DPO|GRPO|PPO|KTO|ORPO|Reward)Config)\.__init__\(\) "
            r"got an unexpected keyword "
            r"argument '(processing_class|tokenizer|eval(uation)?_strategy|logging_dir|dispatch_batches|"
            r"split_batches"
            r"|max_seq_length|max_length|dataset_text_field|peft_config)'",
            "TypeError: DPOTrainer.__init__() got an unexpected keyword argument 'processing_class'",
        ),
        raised_only=True,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "PyTorch, torch/_inductor, and others: a program or library that is not installed",
        (
            r"(?i)\b((cannot|can't|could not|couldn't|unable to|failed to) find|there is no|no) (a |an |any "
            r")?(working |valid |compatible "
            r"|usable )[\w./+-]+ (installation|install)\b",
            "RuntimeError: Cannot find a working triton installation. More information on installing Triton "
            "can be found at",
        ),
        raised_only=True,
        strength=HINT,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "XTuner, entry_point.py: what its command prints as a warning in place of an exception, before it "
        "tells how it is called",
        (
            r"\bcommand error: '(No module named |cannot import name |(partially initialized )?module "
            r"'[\w.]+' has no attribute)",
            "mmengine - WARNING - WARNING: command error: 'module 'torch.compiler' has no attribute "
            "'is_compiling''!",
        ),
        strength=HINT,
    ),
    # Settings are passed to trainers and their arguments, but nobody builds the layers of a model by hand.
    *known(
        Cause.IMPORT_ERROR,
        "transformers and unsloth: a layer that was written for another version of the other",
        (
            r"TypeError: \w+(RotaryEmbedding|Attention|DecoderLayer|MLP|RMSNorm)\.__init__\(\) (got an "
            r"unexpected|missing|takes)",
            "TypeError: LlamaRotaryEmbedding.__init__() got an unexpected keyword argument 'config'",
        ),
        (
            r"TypeError: _?unsloth_\w+\(\) (got|missing|takes)",
            "TypeError: _unsloth_get_batch_samples() takes 3 positional arguments but 4 were given",
        ),
        raised_only=True,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "FlashAttention, apex, PEFT, accelerate, bitsandbytes, Triton and vLLM: names that are bound only if "
        "the package is there",
        (
            r"NameError: name '(flash_attn\w*|_flash_attn\w*|(un)?pad_input|index_first_axis|amp_C|apex|"
            r"deepspeed|bnb|bitsandbytes|triton"
            r"|xformers|Peft(Model|Config)|init_empty_weights|PartialState|LLM|SamplingParams)' is not "
            r"defined",
            "NameError: name 'flash_attn_varlen_func' is not defined",
        ),
        raised_only=True,
        strength=HINT,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "Triton and Inductor: a kernel of a library does not compile with this version, or for this GPU",
        (
            r"triton\.\S*CompilationError|PassManager::run failed",
            "torch._inductor.exc.InductorError: RuntimeError: PassManager::run failed",
        ),
        raised_only=True,
        strength=HINT,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "huggingface_hub, repository.py: a program that the image lacks",
        (
            r"^OSError: Looks like you do not have git(-lfs)? installed",
            "OSError: Looks like you do not have git-lfs installed, please install.",
        ),
    ),
    *known(
        Cause.IMPORT_ERROR,
        "Open MPI: its processes do not find the launcher that they were built for",
        (r"An error occurred in MPI_Init", "*** An error occurred in MPI_Init_thread"),
        strength=HINT,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "transformers, TRL, PEFT, accelerate, Lightning, vLLM and unsloth: one was written for another "
        "version of the other",
        (
            r"AttributeError: (type object )?'(\w*(Trainer|TrainerState|Accelerator(State)?|Tokenizer(Fast)?|"
            r"LLMEngine|AsyncLLM\w*|LLM"
            r"|GradScaler"
            r"|For(CausalLM|ConditionalGeneration|MaskedLM|\w*Classification|QuestionAnswering)|\w*Cache|"
            r"\w*Attention\w*|RotaryEmbedding)"
            r"|HydraConfig|Adam|AdamW|SGD|Lion|AcceleratedOptimizer|DeepSpeedEngine|"
            r"FullyShardedDataParallel)' (object )?has no attribute",
            "AttributeError: 'Trainer' object has no attribute '_pad_across_processes'",
        ),
        (
            r"TypeError: (\w*(Trainer|Tokenizer(Fast)?|LLMEngine|For(CausalLM|ConditionalGeneration)|"
            r"Attention|RotaryEmbedding|DecoderLayer"
            r"|Cache|Accelerator))\._?[a-z]\w*\(\) (takes|missing|got)\b",
            "TypeError: XPOTrainer.training_step() takes 3 positional arguments but 4 were given",
        ),
        (
            r"AttributeError: 'NoneType' object has no attribute '\w*(_fwd|_bwd|_forward|_backward|_cuda|"
            r"grad_fp\d+|_grad)\w*'",
            "AttributeError: 'NoneType' object has no attribute 'causal_conv1d_fwd'",
        ),
        (
            r"Unsloth: (Please file a bug report|Error patching|Failed to (create|patch|compile)|.*not "
            r"supported in your current Unsloth)",
            "RuntimeError: Unsloth: Please file a bug report! Error patching SFTTrainer",
        ),
        (
            r"Tokenizer class \S+ does not exist or is not currently imported|Loading a dataset cached in a "
            r"LocalFileSystem is not"
            r"|Invalid pattern: '\*\*' can only be an entire path component",
            "ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently imported.",
        ),
        (r"\.to\(\) does not accept copy argument", "RuntimeError: .to() does not accept copy argument"),
        (
            r"Internal Triton PTX codegen error|PTX \.version \S+ does not support|Triton Error \[CUDA\]: "
            r"device kernel image",
            "RuntimeError: Internal Triton PTX codegen error: ",
        ),
        raised_only=True,
        strength=HINT,
    ),
    *known(
        Cause.IMPORT_ERROR,
        "PyTorch cpp_extension, DeepSpeed op_builder, Triton, Inductor, Ninja and NVCC: no compiler, or one "
        "that does not fit",
        (
            r"CUDA_HOME (does not exist|environment variable is not set)|MissingCUDAException",
            "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        ),
        (
            r"Ninja is required to load C\+\+ extensions",
            "RuntimeError: Ninja is required to load C++ extensions",
        ),
        (
            r"Failed to find C compiler|No working C\+\+ compiler found|InvalidCxxCompiler|Could not find (a "
            r")?(C|C\+\+|nvcc) compiler",
            "torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler.",
        ),
        (
            r"nvcc fatal|[Uu]nsupported gpu architecture|(nvcc|ninja|gcc|g\+\+|cc1plus|ptxas)['\"]?: "
            r"(command )?not found|No "
            r"such file or directory: '[^']*(nvcc|ninja|gcc|g\+\+|ptxas|cuobjdump)'",
            "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
        ),
        (
            r"Error (building|compiling) (extension|objects)|ninja: build stopped|PTXASError|`?ptxas`? "
            r"(failed|died)",
            "RuntimeError: Error building extension 'cpu_adam'",
        ),
        (
            r"CppCompileError|C\+\+ compile error|compilation terminated\.",
            "CppCompileError: C++ compile error",
        ),
        (
            r"fatal error: \S+: No such file or directory",
            "/tmp/tmpabc/main.c:5:10: fatal error: Python.h: No such file or directory",
        ),
        (
            r"\[?'[^']*(gcc|g\+\+|nvcc|clang|ninja)'.*returned non-zero exit status",
            "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/main.c', '-O3']' returned "
            "non-zero exit status 1.",
        ),
        (
            r"Couldn't find a suitable version of ptxas|(libdevice|ptxas|nvcc|cuobjdump) .*not found|Failed "
            r"to compile|JIT "
            r"compilation of .* failed|Unable to JIT load the \w+ op",
            "RuntimeError: Unable to JIT load the fused_adam op due to it not being compatible due to "
            "hardware/software issue.",
        ),
        (
            r"(?i)cuDNN library needs to have matching major version|Loaded runtime CuDNN library.*but "
            r"source was compiled|DNN "
            r"library initialization failed",
            "E0000 cuda_dnn.cc:522] Loaded runtime CuDNN library: 8.9.7 but source was compiled with: 9.1.1.",
        ),
    ),
    *known(
        Cause.IMPORT_ERROR,
        "Words with which libraries say that another version is needed",
        (
            r"(?i)\b(requires?|needs?|expects?|at least|minimum|supported) (a |the |is )?(newer |older |"
            r"higher |later |minimum "
            r"|different )?version\b|module compiled against A[BP]I version|Can't instantiate abstract class"
            r"|\b(newer|older) than and incompatible\b"
            r"|\bplease update your (version|install\w*|packages?|drivers?|\w+ (version|package|library|"
            r"driver|install\w*|and/or))\b"
            r"|\b(please|need to|must|should|have to|try to) (up|down)grad(e|ing)\b|version (mismatch|"
            r"conflict)"
            r"|version of \S+ (you are using|you have|installed) is not (compatible|supported)"
            r"|incompatible versions?|\b(was|were) (compiled|built) (with|for|against) |not compatible with "
            r"(your|this|the) "
            r"(version|installed|current)",
            "ValueError: this model requires a newer version of the library, please upgrade it",
        ),
        (
            r"(?i)\b(requires?|needs?) [\w.-]+ ?(>=|==|<=|~=|!=|<|>) ?v?\d+\.\d",
            "ImportError: accelerate>=0.26.0 is required: this needs accelerate>=0.26.0",
        ),
        raised_only=True,
        strength=HINT,
    ),
    *known(
        Cause.SETUP_FAILED,
        "pip, uv and apt: what they end with",
        (
            r"ERROR: (Could not find a version that satisfies|No matching distribution found|"
            r"ResolutionImpossible|Failed "
            r"building wheel|Could not build wheels)",
            "ERROR: No matching distribution found for torch==9.9.9",
        ),
        (
            r"No solution found when resolving dependencies|E: Unable to locate package",
            "  × No solution found when resolving dependencies:",
        ),
        (
            r"RuntimeEnvSetupError|Failed to set up runtime environment",
            "ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment.",
        ),
        action=Action.STOP,
    ),
)
