"""Errors of arguments, configurations, models and data that do not fit: the same on every machine."""

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.known_errors.table import CONSEQUENCE, HINT, known

RULES = (
    *known(
        Cause.BAD_CONFIG,
        "argparse, and transformers' HfArgumentParser",
        (
            r"error: (unrecognized arguments|the following arguments are required|one of the arguments|"
            r"ambiguous option"
            r"|argument .*: (invalid|expected|must|not allowed|ignored))",
            "train.py: error: unrecognized arguments: --resume-step 30",
        ),
        (
            r"not used by the HfArgumentParser|HfArgumentParser: |remaining_arg[vs]: ",
            "ValueError: Some specified arguments are not used by the HfArgumentParser: "
            "['--save_total_limits', '2']",
        ),
        (
            r"error: (argument|unrecognized|invalid|too few|too many)\b",
            "train.py: error: argument --precision: invalid choice: 'bf17' (choose from 'bf16', 'fp32')",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "tyro, click, typer, absl, fire and gflags",
        (
            r"(?i)^\W*(Unrecognized|Unknown|Missing|Required|Invalid) (options?|arguments?|subcommands?)\b",
            "│ Unrecognized options: --training.steps_total   │",
        ),
        (
            r"No such (option|command)[: ]|Missing (option|argument|parameter|command) ?['\"]?|Invalid value "
            r"for |Got "
            r"unexpected extra argument|requires an argument",
            "Error: No such option: --epoch Did you mean --epochs?",
        ),
        (
            r"FATAL Flags parsing error|Unknown command line flag|UnparsedFlagAccessError|"
            r"IllegalFlagValueError"
            r"|fire\.core\.FireError|Could not consume arg",
            "FATAL Flags parsing error: Unknown command line flag 'lrr'. Did you mean: lr ?",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "Hydra and OmegaConf",
        (
            r"Could not override|OverrideParseException|ConfigCompositionException|MissingConfigException",
            "Could not override 'actor.lrr'.",
        ),
        (
            r"^(missing [A-Z_]+ at '|mismatched input '.*' expecting|no viable alternative at input '|"
            r"extraneous input ')",
            "missing EQUAL at '<EOF>'",
        ),
        (
            r"Could not find '[^']*'$|Cannot find primary config|Error merging override|Error locating "
            r"target|is ambiguous",
            "hydra.errors.InstantiationException: Error locating target 'model.Lama', set env var to see "
            "chained exception.",
        ),
        (
            r"ConfigAttributeError|ConfigKeyError|ConfigTypeError|ConfigValueError|MissingMandatoryValue|"
            r"Interpolation\w*Error"
            r"|UnsupportedInterpolationType|omegaconf\.errors\.\w+",
            "omegaconf.errors.ConfigAttributeError: Key 'lrr' is not in struct",
        ),
        (
            r"Key '[^']*' (is not in struct|not in '\w+')|is not in struct$",
            "Key 'n_gpu_per_node' is not in struct",
        ),
    ),
    # What the call raised is a part of the message, and may say more.
    *known(
        Cause.BAD_CONFIG,
        "Hydra, hydra/_internal/instantiate: a call that the config asks for failed",
        (
            r"InstantiationException: Error in call to target|Error instantiating '",
            "hydra.errors.InstantiationException: Error in call to target 'data.Coords': TypeError: abstract "
            "class",
        ),
        strength=HINT,
    ),
    *known(
        Cause.BAD_CONFIG,
        "pydantic",
        (
            r"\d+ validation errors? for \w+",
            "pydantic_core._pydantic_core.ValidationError: 2 validation errors for TrainerConfig",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "pydantic, pydantic-settings, jsonargparse, draccus, dacite, simple-parsing and ml_collections",
        (
            r"pydantic\S*ValidationError|SettingsError: error parsing",
            'pydantic_settings.exceptions.SettingsError: error parsing value for field "mesh" from source '
            '"EnvSettingsSource"',
        ),
        (
            r"Parser key \"|Key \"[^\"]*\" is (not expected|required)|jsonargparse|Validation failed: |No "
            r"action for (destination )?key",
            'error: Parser key "trainer": Key "acelerator" is not expected',
        ),
        (
            r"draccus\.\S*(DecodingError|ParsingError)|dacite\.\S*Error|(MissingValue|UnexpectedData|"
            r"WrongType)Error|ParseError: ",
            "draccus.utils.DecodingError: The fields `optim.lrr` are not valid for OptimConfig",
        ),
        raised_only=True,
    ),
    *known(
        Cause.BAD_CONFIG,
        "PyYAML, tomllib and ruamel",
        (
            r"yaml\.\w+\.\w+Error|(Scanner|Parser|Composer|Constructor)Error: |mapping values are not "
            r"allowed here",
            "yaml.scanner.ScannerError: mapping values are not allowed here",
        ),
        (
            r"TOMLDecodeError|toml\.decoder",
            "tomllib.TOMLDecodeError: Expected '=' after a key in a key/value pair (at line 3, column 5)",
        ),
        (
            r"JSONDecodeError: Expecting (property name|',' delimiter|':' delimiter)",
            "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 4 column "
            "3 (char 91)",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "DeepSpeed, deepspeed/runtime/config.py, and transformers' integration of it",
        (
            r"Check batch related parameters|DeepSpeedConfigError|correct the following DeepSpeed config "
            r"values|DeepSpeed "
            r"config values that mismatch",
            "AssertionError: Check batch related parameters. train_batch_size is not equal to "
            "micro_batch_per_gpu * gradient_acc_step * world_size 16 != 2 * 1 * 4",
        ),
        (
            r"(?i)zero (stage )?\d? ?.*(not supported|is incompatible|requires)|ZeRO.* optimizer .*(not|"
            r"only)",
            "ValueError: ZeRO stage 3 is incompatible with this optimizer",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "Megatron-LM, NeMo, verl, TRL, torchtitan and vLLM: sizes that do not divide",
        (
            r"(is not|must be|should be|isn't|not) (evenly )?(divisible|a multiple|multiple)( by| of)?\b",
            "AssertionError: global batch size (30) is not divisible by micro batch size (4) times data "
            "parallel size (4)",
        ),
        (
            r"must be (greater|less|smaller|larger|at least|at most|positive|one of|in \[|either|equal|set|"
            r"specified|provided"
            r"|between|a valid)",
            "AssertionError: --num-layers must be specified",
        ),
        (
            r"does not match the world size|[Ww]orld size .*(not|mismatch|!=)|Invalid parallel dims",
            "AssertionError: dataloader state does not match the world size",
        ),
        (
            r"Invalid recover mode|Invalid wandb mode",
            "ValueError: Invalid recover mode 'fault'. Valid options: {'on', 'off'}.",
        ),
        raised_only=True,
    ),
    *known(
        Cause.BAD_CONFIG,
        "prime-rl and verl: more GPUs than the machine has",
        (
            r"Requested \d+ GPUs but only \d+ available|Total available GPUs [\d.]+ is less than total "
            r"desired GPUs"
            r"|CUDA_VISIBLE_DEVICES.*(invalid|not enough)",
            "ValueError: Total available GPUs 4.0 is less than total desired GPUs 8",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "vLLM, vllm/config, and SGLang's server arguments",
        (
            r"max_model_len.* is greater than|max seq len .* is larger than|exceeds vLLM maximum",
            "Value error, User-specified max_model_len (65536) is greater than the derived max_model_len",
        ),
        (
            r"Model architectures? .* (is|are) not supported|Unsupported (model|architecture|quantization)|"
            r"Unknown quantization method",
            "ValueError: Model architectures ['Qwen4ForCausalLM'] are not supported for now.",
        ),
        (
            r"Bfloat16 is only supported on GPUs with compute capability",
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "transformers, TRL, PEFT and accelerate: settings that contradict one another or the model",
        (
            r"Your setup doesn't support bf16|bf16.* (is )?not supported|--?(bf16|tf32|fp16).*(require|need|"
            r"not support)|mixed "
            r"precision requires",
            "ValueError: Your setup doesn't support bf16/gpu.",
        ),
        (r"Attempting to unscale FP16 gradients", "ValueError: Attempting to unscale FP16 gradients."),
        (
            r"load_best_model_at_end requires|requires? the save and eval strategy|requires? (a|an|the|"
            r"either|at least|both"
            r"|setting|that you) [\w`' -]+ ?(to be|argument|set|when|in order)",
            "ValueError: --load_best_model_at_end requires the save and eval strategy to match, but found",
        ),
        (
            r"Target modules .*not found in the base model|No modules were targeted|Please specify "
            r"`?target_modules`?|Cannot "
            r"(mix|combine|use) ",
            "ValueError: Target modules {'q_proj'} not found in the base model. Please check the target "
            "modules and try again.",
        ),
        (
            r"tokenizer does not have a padding token|Unable to create tensor, you should probably activate|"
            r"chat_template is "
            r"not set|Cannot use chat template|does not have a chat template",
            "ValueError: Asking to pad but the tokenizer does not have a padding token.",
        ),
        (
            r"cannot (fine-?tune|perform fine-?tuning|train) .*(quantized|on purely)|You can(no|')t (train|"
            r"move|cast|use)",
            "ValueError: You cannot perform fine-tuning on purely quantized models.",
        ),
        (
            r"train dataset is empty|requires a train_dataset|eval_dataset|No columns in the dataset match|"
            r"num_samples should "
            r"be a positive integer",
            "ValueError: num_samples should be a positive integer value, but got num_samples=0",
        ),
        (
            r"Unrecognized (configuration class|model|processing class|image processor)|Unable to load "
            r"(vocabulary|weights)"
            r"|doesn't support .*(gradient|attention|device_map|flash)|does not support (gradient|Flash|"
            r"attention|tp|tensor|`)",
            "ValueError: Unrecognized configuration class <class 'C'> for this kind of AutoModel: "
            "AutoModelForCausalLM.",
        ),
        raised_only=True,
    ),
    # The place of the call may say that two packages do not fit one another.
    *known(
        Cause.BAD_CONFIG,
        "CPython: a class is given a value by a name that it does not know, or lacks one; of a function, "
        "that says nothing of settings",
        (
            r"\b[A-Z]\w*\.(__init__\(\) (missing \d+ required|got multiple values)|\w+\(\) got an unexpected "
            r"keyword argument ')",
            "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'rnk'",
        ),
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.BAD_CONFIG,
        "XTuner, entry_point.py: what its command prints as a warning in place of an exception, before it "
        "tells how it is called",
        (
            r"\bcommand error: '",
            "mmengine - WARNING - WARNING: command error: '[Errno 2] No such file or directory: 'a/b.json''!",
        ),
        strength=HINT,
    ),
    *known(
        Cause.BAD_CONFIG,
        "DeepSpeed, launcher/runner.py: a list of machines that does not belong here",
        (
            r"Using hostfile at .* was not reachable via ssh",
            "RuntimeError: Using hostfile at hostfile but host=10.0.0.7 was not reachable via ssh. If you "
            "are running with a single node",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "huggingface_hub and transformers: a model, data set or file of that name does not exist, or offline "
        "mode keeps it out",
        (
            r"is not a local folder and is not a valid model identifier|Repo id must |HFValidationError|is "
            r"not the path to a "
            r"directory containing",
            "OSError: meta-lama/L is not a local folder and is not a valid model identifier listed on "
            "'https://huggingface.co/models'",
        ),
        (
            r"does not appear to have a file named|[Nn]o file named .* found in|\b(Revision|Entry|"
            r"RemoteEntry) ?Not ?Found(Error)?\b",
            "OSError: a/b does not appear to have a file named pytorch_model.bin, model.safetensors or "
            "flax_model.msgpack.",
        ),
        (
            r"OfflineModeIsEnabled|offline mode is enabled|outgoing traffic has been disabled",
            "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/x: "
            "offline mode is enabled.",
        ),
        (
            r"trust_remote_code=True|Dataset scripts are no longer supported",
            "ValueError: Loading a/b requires you to execute the configuration file in that repo; set the "
            "option `trust_remote_code=True`.",
        ),
        (
            r"DatasetNotFoundError|DataFilesNotFoundError|Couldn't find (any data file|a dataset script)|"
            r"BuilderConfig .* not "
            r"found|Unknown split|Config name is missing",
            "datasets.exceptions.DatasetNotFoundError: Dataset 'a/b' doesn't exist on the Hub or cannot be "
            "accessed.",
        ),
        (
            r"datasets\.table\.CastError|column names don't match|DatasetGenerationCastError|Column .* (not "
            r"in|doesn't exist"
            r"|already)|Schema at index",
            "datasets.table.CastError: Couldn't cast",
        ),
        raised_only=True,
    ),
    *known(
        Cause.BAD_CONFIG,
        "PyTorch, torch/distributed, torch/optim and torch/nn/parallel; transformers' Trainer; vLLM: how "
        "they are set up or called",
        (
            r"environment variable \w+ expected, but not set|[Dd]efault process group has (not been|already "
            r"been) initialized"
            r"|initialize the default process group twice|optimizer got an empty parameter list"
            r"|module doesn't have any parameters that require a gradient|did not return a loss from the "
            r"inputs"
            r"|longer than the maximum model length",
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable "
            "RANK expected, but not set",
        ),
        (
            r"could not parse ModelProto from",
            "RuntimeError: Internal: could not parse ModelProto from tokenizer.model",
        ),
        raised_only=True,
        strength=HINT,
    ),
    # An error of the network comes before it where that is the reason.
    *known(
        Cause.BAD_CONFIG,
        "transformers, utils/hub.py and PEFT: the files of a model are not where it looks, or not those of a "
        "model",
        (
            r"Can't (load|find) (the |a )?'?(tokenizer|config\w*|model|feature extractor|image processor|"
            r"processor|adapter\w*)\b"
            r"|It looks like the config file at",
            "OSError: Can't load tokenizer for 'x/y'. If you were trying to load it from "
            "'https://huggingface.co/models', make sure",
        ),
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.BAD_CONFIG,
        "Shells and CPython: a command or script that is not there",
        (
            r"can't open file '[^']*': \[Errno 2\]",
            "python3: can't open file '/disk/tree/trian.py': [Errno 2] No such file or directory",
        ),
        (
            r"^(\S*/)?(ba|da|z)?sh: (\S+: )?(line )?(\d+: )?.*(not found|Permission denied|No such file or "
            r"directory)$",
            "/bin/sh: 1: pyhton: not found",
        ),
        (
            r"exec format error$|: command not found$|exec: \"[^\"]+\": executable file not found|OCI "
            r"runtime .*executable file not found",
            "bash: line 1: accelerate: command not found",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "W&B, wandb/errors",
        (
            r"wandb\.errors\.(errors\.)?UsageError|api_key not configured|No API key configured|You must "
            r"call wandb\.init",
            "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
        ),
        (
            r"CommError: (Could not find (run|project|sweep|artifact|entity)|entity \S+ not found)",
            "wandb.errors.CommError: Could not find run <Run team/project/8f2k1x0q (not found)>",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "boto3, google-cloud-storage and azure: a bucket or object of that name does not exist",
        (
            r"(?i:\b(object|bucket|blob|key) \S+ (was )?(not found|does(n't| not) exist))|NoSuchBucket|"
            r"NoSuchKey|PermanentRedirect"
            r"|InvalidBucketName|\(404\) when calling|exceptions\.(ProfileNotFound|NoRegionError|"
            r"InvalidRegionError)|\(EntityTooLarge\)"
            r"|specified (bucket|container|key) does not exist|google\.\S*NotFound: 404"
            r"|ContainerNotFound",
            "botocore.errorfactory.NoSuchBucket: An error occurred (NoSuchBucket) when calling the "
            "ListObjectsV2 operation",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "NCCL, invalid usage",
        (
            r"ncclInvalidUsage|ncclInvalidArgument|Duplicate GPU detected",
            "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
        ),
    ),
    *known(
        Cause.BAD_CONFIG,
        "datasets, datasets/builder.py: the data set cannot be built from what it names",
        (
            r"DatasetGenerationError: An error occurred while generating",
            "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset",
        ),
        action=Action.STOP,
        strength=CONSEQUENCE,
    ),
    *known(
        Cause.BAD_CONFIG,
        "Kinds of exceptions with which libraries refuse a setting, by their names",
        (
            r"^(\S+\.)?\w*(Misconfiguration|Config|Configuration|Validation|Argument|Usage|Instantiation|"
            r"Option|Settings"
            r"|Schema(Inference)?|Scanner|YAMLParser|TOMLDecode|TemplateSyntax|Template)(Error|Exception)(: |"
            r"$)"
            r"|^(yaml\.\w+\.\w+Error|jinja2\.exceptions\.\w+|gin\.config\.\w+)"
            r"|\b(INVALID_PARAMETER_VALUE|RESOURCE_DOES_NOT_EXIST)\b",
            "lightning.fabric.utilities.exceptions.MisconfigurationException: No `train_dataloader()` method "
            "defined to run `Trainer.fit`.",
        ),
        (
            r"XlaRuntimeError: INVALID_ARGUMENT",
            "jaxlib.xla_extension.XlaRuntimeError: INVALID_ARGUMENT: Mesh shape does not fit",
        ),
        raised_only=True,
        strength=HINT,
    ),
    *known(
        Cause.TRAINER_ERROR,
        "Triton, Inductor and PyTorch's extensions: processes that race for one cache of compiled code",
        (
            r"^(FileNotFoundError|FileExistsError|OSError): .*(/\.triton/|/torchinductor_|/torch_extensions/|"
            r"/inductor)",
            "FileNotFoundError: [Errno 2] No such file or directory: "
            "'/root/.triton/cache/ab/k.json.tmp.pid_41'",
        ),
        action=Action.SAME_MACHINE,
        strength=HINT,
    ),
    *known(
        Cause.BAD_CONFIG,
        "Lightning, callbacks/early_stopping.py and callbacks/model_checkpoint.py: a metric that is watched "
        "and never logged",
        (
            r"Early stopping conditioned on metric .* which is not available|could not find the monitored "
            r"key in the returned metrics",
            "RuntimeError: Early stopping conditioned on metric `val_loss` which is not available. Pass in "
            "or modify your `EarlyStopping`",
        ),
        raised_only=True,
    ),
    # The values of a call that the code itself makes, which are no values of a setting.
    *known(
        Cause.TRAINER_ERROR,
        "CPython: a function is called with too few or too many values",
        (
            r"^TypeError: [\w.<>]+\(\) takes (from )?\d+ (to \d+ )?positional arguments? but \d+ (was|were) "
            r"given",
            "TypeError: main() takes 0 positional arguments but 1 was given",
        ),
        (
            r"^TypeError: [\w.<>]+\(\) missing \d+ required (positional|keyword-only) arguments?: '",
            "TypeError: forward_llama() missing 1 required keyword-only argument: 'rotary_values'",
        ),
        (
            r"^TypeError: [a-z_<][\w<>]*\(\) got an unexpected keyword argument '",
            "TypeError: dataset_info() got an unexpected keyword argument 'timeout'",
        ),
        action=Action.STOP,
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.BAD_CONFIG,
        "Words with which libraries refuse a setting in a ValueError or an AssertionError",
        (
            r"(?i)^(\S+\.)?(Value|Assertion|Key|NotImplemented|Type|Runtime|Lookup)(Error): .*\b(unknown|"
            r"unsupported"
            r"|unrecognized|undefined|invalid|not supported|isn't supported"
            r"|do(es)?(n't| not) yet support|unexpected (key|argument|option)|not (in|one of) "
            r"(the )?(list|supported|available|allowed|valid)|is not (a )?(valid|allowed|supported|defined|"
            r"implemented)|must"
            r"|should (be|not)|cannot be (used|set|combined)|only (support|work|one|valid)\w*|greater than|"
            r"less than|larger "
            r"than|smaller than|exceeds?|mutually exclusive|incompatible|conflict\w*|please (set|specify|use|"
            r"provide|check"
            r"|choose|pass)|config\w*|arguments?|argv|option)\b",
            "ValueError: LoRA rank 64 is greater than max_lora_rank 16.",
        ),
        (
            r"(?i)^(\S+\.)?(Value|Key|Runtime|Lookup|Assertion|OS|Environment)Error: "
            r".*(\bnot found\b|\bdo(es)?(n't| not) exist\b|\b(could|can) ?(not|n.t) find"
            r"\b|\bno such\b|\bunable to find\b)|^(\S+\.)?Exception: "
            r".*(\bnot found\b|\bdo(es)?(n't| not) exist\b|\b(could|can) ?(not|n.t) find\b)",
            "ValueError: the reward function 'gsm9k' was not found",
        ),
        (
            r"^(FileNotFoundError|IsADirectoryError|NotADirectoryError): .*[\w-]\.(json|jsonl|ya?ml|toml|csv|"
            r"tsv|parquet|txt|arrow|np[yz]"
            r"|h5|hdf5|idx|model|py|sh|cfg|ini|lmdb|jinja|md|wav|flac|jpe?g|png|zip|tar|gz|zst|bin|pkl|"
            r"pickle|gguf)(['\"]|$)",
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.parquet'",
        ),
        (
            r"expected str, bytes or os\.PathLike object, not NoneType|path should be string, bytes, "
            r"os\.PathLike or integer, not NoneType"
            r"|^TypeError: not a string$",
            "TypeError: expected str, bytes or os.PathLike object, not NoneType",
        ),
        (
            r"AttributeError: '(\w*(Args|Arguments|Config|ConfigDict|EasyDict|AttrDict|Params|Options)|"
            r"Namespace|DotMap|Munch)' object has",
            "AttributeError: 'Namespace' object has no attribute 'vllm_enable_sleep'",
        ),
        (
            r"^(pyarrow\.lib\.)?Arrow(Invalid|TypeError|NotImplementedError|KeyError|CapacityError): |"
            r"^lmdb\.\w*Error: ",
            "pyarrow.lib.ArrowInvalid: JSON parse error: Column() changed from object to array in row 0",
        ),
        # The answer of a service is mostly one line, and an empty one fails in the first.
        (
            r"JSONDecodeError: (Expecting value|Extra data): line ([2-9]|[1-9]\d+) |JSONDecodeError: Invalid "
            r"\\escape",
            "json.decoder.JSONDecodeError: Expecting value: line 2 column 1 (char 2)",
        ),
        (
            r"KeyError: '(text|input_ids|attention_mask|pixel_values|images?)'$",
            "KeyError: 'input_ids'",
        ),
        (
            r"KeyError: '(prompt|chosen|rejected|messages|conversations|instruction|completion)(_\w+)?'$"
            r"|KeyError: '(learning_rate|lr|model|optimizer|batch_size|epochs|data\w*|train\w*|max_steps|"
            r"seed|output_dir|\w*config\w*)'$",
            "KeyError: 'learning_rate'",
        ),
        raised_only=True,
        strength=HINT,
    ),
    # A traceback shows an assertion's text only in the frame that raises it.
    *known(
        Cause.BAD_CONFIG,
        "Assertions without a message, in the training scripts' own words: sizes that do not divide, and "
        "values of the configuration",
        (r"^\s*assert [^#]*[\w)] % [^#]*== 0\b", "    assert gradient_accumulation_steps % world_size == 0"),
        (
            r"^\s*assert (not )?(self\.)?(config|cfg|args|hparams|opts?)\.\w",
            "    assert config.data.train_batch_size >= config.actor.ppo_mini_batch_size",
        ),
        in_code=True,
    ),
    *known(
        Cause.TRAINER_ERROR,
        "Pillow, OpenCV, librosa and soundfile: a torn file of the data set",
        (
            r"UnidentifiedImageError|image file is truncated|broken data stream when reading|cannot identify "
            r"image file|NoBackendError"
            r"|LibsndfileError|UnicodeDecodeError: ",
            "OSError: image file is truncated (42 bytes not processed)",
        ),
        action=Action.STOP,
        raised_only=True,
    ),
    *known(
        Cause.TRAINER_ERROR,
        "PyTorch, aten and torch.nn.parallel: tensors that do not fit one another",
        (
            r"mat1 and mat2|must have the same dtype|[Ee]xpected (scalar type|all tensors|a proper Tensor|"
            r"input\[|tensor for "
            r"argument|object of (scalar|device) type)|(shape|size|sizes|shapes) .*(mismatch|invalid for "
            r"input|must match|do "
            r"not match|cannot be multiplied)|The size of tensor a|must match the (size|existing size)",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x768 and 1024x50257)",
        ),
        (
            r"[Cc](an't|annot) pickle |does not require grad"
            r"|Trying to backward through the graph a second time|modified by an inplace operation|leaf "
            r"Variable|only Tensors of floating point dtype|is not implemented for '|not implemented for \"",
            "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (
            r"Expected to have finished reduction in the prior iteration|Expected to mark a variable ready "
            r"only once|Cannot "
            r"re-initialize CUDA in forked subprocess|An attempt has been made to start a new process before",
            "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new "
            "one.",
        ),
        (
            r"index out of range in self|stack expects each tensor to be equal size|each element in list of "
            r"batch should be of "
            r"equal size|Cannot copy out of meta tensor|Unsupported: |torch\._dynamo\.exc"
            r"\.(Unsupported|UserError|TorchRuntime|Internal|Fail)",
            "RuntimeError: stack expects each tensor to be equal size, but got [512] at entry 0 and [498] at "
            "entry 1",
        ),
        action=Action.STOP,
        raised_only=True,
    ),
)
