"""Settings of prime-rl at 559b4477 (2026-08-21), made by tests/rules/prime_rl_table.py from its own schema;
not to be edited.

`prime_train.trainers.prime_rl.rules.fields` says how a row is read.
"""

COMMIT = "559b4477"
DATE = "2026-08-21"
FIELDS = """\
RLConfig
  ckpt null | @SharedCheckpointConfig = null
  clean bool = false
  deployment by:type(multi_node@MultiNodeDeploymentConfig, single_node@SingleNodeDeploymentConfig) = "single_node"
  dry_run bool = false
  env_vars map:text
  inference null | @InferenceConfig = null
  log @SharedLogConfig
  max_steps null | int = null
  model null | @SharedModelConfig = null
  monitors @SharedMonitorsConfig
  orchestrator @OrchestratorConfig
  output_dir text = "outputs"
  resume null | @ResumeConfig = null
  rollout_transport null | by:type(filesystem@FileSystemTransportConfig, zmq@ZMQTransportConfig) = null
  run @RunConfig
  seq_len null | int = null
  slurm null | @SlurmConfig = null
  tokenizer null | @TokenizerConfig = null
  trainer @TrainerConfig
  weight_broadcast null | by:type(filesystem@SharedFileSystemWeightBroadcastConfig, nccl@SharedNCCLWeightBroadcastConfig, \
  nixl@SharedNIXLWeightBroadcastConfig) = null
ActivationCheckpointConfig
  freq int[1..) = 1
  mode 'full' | 'selective' = "full"
  targets list:text
ActivationOffloadingConfig
  max_inflight_activations int[1..) = 5
  pin_memory bool = true
AdamWConfig
  betas1 number[0..) = 0.9
  betas2 number[0..) = 0.999
  lr number[0..) = 1e-06
  max_norm null | number[0..) = 1.0
  type 'adamw' = "adamw"
  weight_decay number[0..) = 0.01
AdvRangeGateConfig
  reject_max number = 0.0
  reject_min number = 0.0
  type 'advantage_range' = "advantage_range"
AutoRendererConfig
  name 'auto' = "auto"
  thinking_retention null | 'tool_cycle' | 'all' = null
CPUOffloadTier
  num_bytes int(0..) !
ClientConfig
  admin_base_url null | list:text = null
  api_key_var text = "VLLM_API_KEY"
  base_url text = "http://localhost:8000/v1"
  extra_headers_from_state map:text
  headers map:text
  headers_from_env map:text
  skip_model_check bool = false
  wait_for_ready_timeout int = 1800
CompileConfig
  fullgraph bool = false
ConcurrencyConfig
  initial_inflight null | int[1..) = null
  max_inflight null | int[1..) = 1024
  min_inflight int[1..) = 1
ConstantSchedulerConfig
  type 'constant' = "constant"
CosineSchedulerConfig
  min_lr number[0..) = 0.0
  type 'cosine' = "cosine"
  warmup_steps int[0..) = 10
CurriculumConfig
  gates map:@AdvRangeGateConfig
  sampler by:type(difficulty_pool@DifficultyPoolSamplerConfig, standard@StandardSamplerConfig)
CustomLossConfig
  import_path text !
  kwargs map:any
  type 'custom' = "custom"
CustomRendererConfig +
  import_path text !
  name 'custom' = "custom"
  thinking_retention null | 'tool_cycle' | 'all' = null
DataLoaderConfig
  fake null | @FakeDataLoaderConfig = null
DebugModelConfig
  force_balanced_routing bool = false
  num_layers null | int = null
  random_init bool = false
DeepSeekR1RendererConfig
  name 'deepseek-r1' = "deepseek-r1"
  thinking_retention null | 'tool_cycle' | 'all' = null
DeepSeekV3RendererConfig
  name 'deepseek-v3' = "deepseek-v3"
  thinking_retention null | 'tool_cycle' | 'all' = null
DeepSeekV4RendererConfig
  drop_thinking bool = true
  enable_thinking bool = false
  name 'deepseek-v4' = "deepseek-v4"
  reasoning_effort 'low' | 'high' | 'max' = "low"
  thinking_retention null | 'tool_cycle' | 'all' = null
DefaultLossConfig
  adv_tau number[0..) = 1.0
  dppo_mask_high number[0..) = 0.2
  dppo_mask_low number[0..) = 0.2
  kl_tau number[0..) = 0.001
  type 'default' = "default"
DefaultRendererConfig +
  name 'default' = "default"
  reasoning_parser null | text = null
  thinking_retention null | 'tool_cycle' | 'all' = null
  tool_parser null | text = null
DifficultyPoolConfig
  threshold number !
  weight number[0..) !
DifficultyPoolSamplerConfig
  pools map:@DifficultyPoolConfig
  seed int = 42
  type 'difficulty_pool' = "difficulty_pool"
DisaggregatedInferenceDeploymentConfig
  decode_env_vars map:text
  decode_nodes_per_replica int[1..) = 1
  decode_port int = 8200
  decode_vllm_overrides map:any
  gpus_per_node int = 8
  num_decode_replicas int[1..) = 1
  num_prefill_replicas int[1..) = 1
  prefill_env_vars map:text
  prefill_nodes_per_replica int[1..) = 1
  prefill_port int = 8100
  prefill_vllm_overrides map:any
  type 'disaggregated' = "disaggregated"
DiskOffloadTier
  path text !
EchoAlgoConfig
  filter null | @EchoFilterConfig = null
  length_penalty null | @LinearLengthPenaltyConfig = null
  roles @EchoRolesConfig
  sampling @algorithm.SamplingConfig
  type 'echo' = "echo"
EchoFilterConfig
  import_path text !
  kwargs map:any
EchoRoleConfig
  alpha number(0..) = 0.1
EchoRolesConfig
  assistant null | @EchoRoleConfig = null
  system null | @EchoRoleConfig = null
  tool null | @EchoRoleConfig = null
  user null | @EchoRoleConfig = null
ElasticPoolConfig
  max_workers null | int = null
  multiplex int[1..) = 128
  type 'elastic' = "elastic"
EvalConfig
  group_size int[1..) = 1
  interval int[1..) = 100
  num_examples int = -1
  retrigger_on_resume bool = false
  sampling @EvalSamplingConfig
  skip_first_step bool = false
  source list:@EvalSourceConfig
EvalSamplingConfig
  extra_body map:any
  max_completion_tokens null | int = null
  min_p null | number[0..) = null
  reasoning_effort null | 'minimal' | 'low' | 'medium' | 'high' = null
  temperature null | number[0..2] = null
  top_k null | int = null
  top_p null | number = null
EvalSourceConfig
  env any
  group_size int[1..) = 1
  interval int[1..) = 100
  name null | text = null
  num_examples int = -1
  ratio number(0..) = 1.0
  sampling @EvalSamplingConfig
  serve @ServeConfig
FP8Config
  enable_grouped_gemm bool = true
  ignore_patterns list:text
  type 'fp8' = "fp8"
FakeDataLoaderConfig
  batch_size int[1..) = 2
  generate_samples bool = false
FileMonitorConfig
  path text = "metrics.jsonl"
FileSystemTransportConfig
  type 'filesystem' = "filesystem"
FileSystemWeightBroadcastConfig
  type 'filesystem' = "filesystem"
FrozenModelConfig
  admin_base_url null | list:text = null
  api_key_var text = "VLLM_API_KEY"
  base_url text = "http://localhost:8000/v1"
  extra_headers_from_state map:text
  headers map:text
  headers_from_env map:text
  name text !
  skip_model_check bool = false
  wait_for_ready_timeout int = 1800
GCConfig
  interval int[1..) = 50
GLM45RendererConfig
  enable_thinking bool = true
  name 'glm-4.5' = "glm-4.5"
  thinking_retention null | 'tool_cycle' | 'all' = null
GLM51RendererConfig
  clear_thinking bool = true
  enable_thinking bool = true
  name 'glm-5.1' = "glm-5.1"
  thinking_retention null | 'tool_cycle' | 'all' = null
GLM53RendererConfig
  clear_thinking bool = false
  name 'glm-5.3' = "glm-5.3"
  reasoning_effort 'low' | 'high' | 'max' = "max"
  thinking_retention null | 'tool_cycle' | 'all' = null
GLM5RendererConfig
  clear_thinking bool = true
  enable_thinking bool = true
  name 'glm-5' = "glm-5"
  thinking_retention null | 'tool_cycle' | 'all' = null
GRPOAlgoConfig
  length_penalty null | @LinearLengthPenaltyConfig = null
  sampling @algorithm.SamplingConfig
  type 'grpo' = "grpo"
Gemma4RendererConfig
  enable_thinking bool = false
  image_cache_max int = 256
  name 'gemma4' = "gemma4"
  preserve_thinking bool = false
  thinking_retention null | 'tool_cycle' | 'all' = null
GptOssRendererConfig
  auto_drop_analysis bool = true
  conversation_start_date null | text = null
  knowledge_cutoff null | text = null
  model_identity null | text = null
  name 'gpt-oss' = "gpt-oss"
  reasoning_effort 'low' | 'medium' | 'high' = "medium"
  thinking_retention null | 'tool_cycle' | 'all' = null
  use_system_prompt bool = true
HeartbeatConfig
  url text !
HierarchicalGRPOAlgoConfig
  episode_agents list:text !
  sampling @algorithm.SamplingConfig
  type 'hierarchical_grpo' = "hierarchical_grpo"
Hy3RendererConfig
  fallback_strategy null | 'reasoning_toolcall_retry' = null
  is_training bool = false
  name 'hy3' = "hy3"
  preserved_thinking null | bool = null
  raw_last_assistant bool = false
  reasoning_effort 'no_think' | 'low' | 'high' = "no_think"
  thinking_retention null | 'tool_cycle' | 'all' = null
IPOLossConfig
  adv_tau number[0..) = 1.0
  ipo_threshold number[0..) = 0.1
  kl_tau number[0..) = 0.001
  type 'ipo' = "ipo"
IndexCacheConfig
  topk_freq int[1..) = 1
  topk_pattern null | text = null
InferenceConfig
  backend_port int = 8100
  deployment by:type(disaggregated@DisaggregatedInferenceDeploymentConfig, multi_node@MultiNodeInferenceDeploymentConfig, \
  single_node@SingleNodeInferenceDeploymentConfig) = "single_node"
  dry_run bool = false
  enable_fp32_lm_head bool = true
  enable_fp32_router_logits bool = true
  env_vars map:text
  kv_cache_offload null | by:type(mooncake@MooncakeKVCacheOffloadConfig, native@NativeKVCacheOffloadConfig) = null
  log @LogConfig
  output_dir text = "outputs"
  router null | by:type(llm-d@LlmdRouterConfig, vllm-router@VllmRouterConfig)
  server @ServerConfig
  slurm null | @SlurmConfig = null
  use_deep_gemm bool = false
  use_pd_kv_transfer bool = false
  vllm @VllmConfig
  weight_broadcast @WeightBroadcastConfig
InklingRendererConfig
  audio_cache_max int = 256
  image_cache_max int = 256
  name 'inkling' = "inkling"
  reasoning_effort text | number = 0.9
  thinking_retention null | 'tool_cycle' | 'all' = null
KimiK25RendererConfig
  image_cache_max int = 256
  name 'kimi-k2.5' = "kimi-k2.5"
  thinking bool = true
  thinking_retention null | 'tool_cycle' | 'all' = null
KimiK2RendererConfig
  enable_thinking bool = true
  name 'kimi-k2' = "kimi-k2"
  thinking_retention null | 'tool_cycle' | 'all' = null
LagunaM1RendererConfig
  enable_thinking bool = false
  name 'laguna-m.1' = "laguna-m.1"
  render_assistant_messages_raw bool = false
  thinking_retention null | 'tool_cycle' | 'all' = null
LagunaS21RendererConfig
  enable_thinking bool = true
  name 'laguna-s-2.1' = "laguna-s-2.1"
  preserve_thinking bool = false
  thinking_retention null | 'tool_cycle' | 'all' = null
LagunaXS21RendererConfig
  enable_thinking bool = false
  name 'laguna-xs-2.1' = "laguna-xs-2.1"
  thinking_retention null | 'tool_cycle' | 'all' = null
LagunaXS2RendererConfig
  enable_thinking bool = false
  name 'laguna-xs.2' = "laguna-xs.2"
  render_assistant_messages_raw bool = false
  thinking_retention null | 'tool_cycle' | 'all' = null
LinearLengthPenaltyConfig
  num_input_tokens_weight number[0..) = 0.1
  num_output_tokens_weight number[0..) = 0.25
  num_turns_weight number[0..) = 0.1
  type 'linear' = "linear"
LinearSchedulerConfig
  decay_steps int[0..) = 10
  min_lr number[0..) = 0.0
  type 'linear' = "linear"
  warmup_steps int[0..) = 10
Llama3RendererConfig
  date_string text = "26 Jul 2024"
  name 'llama-3' = "llama-3"
  thinking_retention null | 'tool_cycle' | 'all' = null
  tools_in_user_message bool = true
LlmdRouterConfig
  decode_scorer_overrides map:number
  decode_sidecar_port int = 8300
  non_cached_tokens int = 16
  prefill_scorer_overrides map:number
  scorers map:number
  type 'llm-d' = "llm-d"
LogConfig
  interval number(0..) = 10.0
  json_logging bool = false
  level text
  log_data bool = false
  vf_level text
MXFP8Config
  enable_a2a bool = true
  enable_grouped_gemm bool = true
  ignore_patterns list:text
  recipe 'mxfp8_rceil' | 'mxfp8_rceil_wgrad_with_hp' = "mxfp8_rceil"
  type 'mxfp8' = "mxfp8"
MaxRLAlgoConfig
  sampling @algorithm.SamplingConfig
  type 'max_rl' = "max_rl"
MetricsServerConfig
  host text = "0.0.0.0"
  port int[1..65535] = 8000
MiniMaxM2RendererConfig
  model_identity text
  name 'minimax-m2' = "minimax-m2"
  thinking_retention null | 'tool_cycle' | 'all' = null
MonitorsConfig
  file null | @FileMonitorConfig
  wandb null | @WandbMonitorConfig = null
MooncakeKVCacheOffloadConfig
  cpu null | @CPUOffloadTier = null
  device_name text = ""
  disk null | @DiskOffloadTier = null
  type 'mooncake' = "mooncake"
MultiNodeDeploymentConfig
  gpus_per_node int = 8
  nodes_per_fsdp_group null | int = null
  num_infer_nodes null | int[0..) = null
  num_infer_replicas int[1..) = 1
  num_train_nodes int !
  orchestrator_on_inference bool = false
  type 'multi_node' = "multi_node"
MultiNodeInferenceDeploymentConfig
  gpus_per_node int = 8
  num_nodes int[1..) = 2
  type 'multi_node' = "multi_node"
MuonConfig
  betas1 number[0..) = 0.9
  betas2 number[0..) = 0.95
  lr number[0..) = 1e-06
  max_norm null | number[0..) = 1.0
  mu number[0..) = 0.95
  type 'muon' = "muon"
  weight_decay number[0..) = 0.01
NativeKVCacheOffloadConfig
  cpu null | @CPUOffloadTier = null
  disk null | @DiskOffloadTier = null
  type 'native' = "native"
Nemotron35RendererConfig
  enable_thinking bool = true
  name 'nemotron-3.5' = "nemotron-3.5"
  thinking_retention null | 'tool_cycle' | 'all' = null
  truncate_history_thinking bool = true
Nemotron3RendererConfig
  enable_thinking bool = true
  low_effort bool = false
  name 'nemotron-3' = "nemotron-3"
  thinking_retention null | 'tool_cycle' | 'all' = null
  truncate_history_thinking bool = true
Nemotron3UltraRendererConfig
  enable_thinking bool = true
  medium_effort bool = false
  name 'nemotron-3-ultra' = "nemotron-3-ultra"
  thinking_retention null | 'tool_cycle' | 'all' = null
  truncate_history_thinking bool = true
OPDAlgoConfig
  sampling @algorithm.SamplingConfig
  teacher @FrozenModelConfig !
  type 'opd' = "opd"
OPSDAlgoConfig
  demo_key text = "demonstration"
  renderer by:name(auto@AutoRendererConfig, custom@CustomRendererConfig, deepseek-r1@DeepSeekR1RendererConfig, \
  deepseek-v3@DeepSeekV3RendererConfig, deepseek-v4@DeepSeekV4RendererConfig, default@DefaultRendererConfig, \
  gemma4@Gemma4RendererConfig, glm-4.5@GLM45RendererConfig, glm-5@GLM5RendererConfig, glm-5.1@GLM51RendererConfig, \
  glm-5.3@GLM53RendererConfig, gpt-oss@GptOssRendererConfig, hy3@Hy3RendererConfig, inkling@InklingRendererConfig, \
  kimi-k2@KimiK2RendererConfig, kimi-k2.5@KimiK25RendererConfig, laguna-m.1@LagunaM1RendererConfig, \
  laguna-s-2.1@LagunaS21RendererConfig, laguna-xs-2.1@LagunaXS21RendererConfig, laguna-xs.2@LagunaXS2RendererConfig, \
  llama-3@Llama3RendererConfig, minimax-m2@MiniMaxM2RendererConfig, nemotron-3@Nemotron3RendererConfig, \
  nemotron-3-ultra@Nemotron3UltraRendererConfig, nemotron-3.5@Nemotron35RendererConfig, prime-qwen3@PrimeQwen3RendererConfig, \
  qwen3@Qwen3RendererConfig, qwen3-vl@Qwen3VLRendererConfig, qwen3.5@Qwen35RendererConfig, qwen3.6@Qwen36RendererConfig, \
  qwen3.8@Qwen38RendererConfig) = "auto"
  sampling @algorithm.SamplingConfig
  template text
  type 'opsd' = "opsd"
OptimizerInBackwardOffloadConfig
  cpu_optimizer_backend 'native' | 'torch' = "native"
  numa_bind bool = true
OrchestratorConfig
  algo by:type(echo@EchoAlgoConfig, grpo@GRPOAlgoConfig, hierarchical_grpo@HierarchicalGRPOAlgoConfig, max_rl@MaxRLAlgoConfig, \
  opd@OPDAlgoConfig, opsd@OPSDAlgoConfig, rae@RAEAlgoConfig, sft@SFTAlgoConfig) = "grpo"
  batch_size null | int[1..) = null
  ckpt null | @orchestrator.CheckpointConfig = null
  collect_inference_metrics bool = true
  concurrency @ConcurrencyConfig
  env_server_base_port int[1..65535] = 5000
  env_vars map:text
  eval null | @EvalConfig = null
  group_size int[1..) = 1
  heartbeat null | @HeartbeatConfig = null
  inference_metrics_roles null | list:'prefill' | 'decode' = null
  log @LogConfig
  max_off_policy_steps int[0..) = 8
  max_steps null | int = null
  model @orchestrator.ModelConfig
  monitors @OrchestratorMonitorsConfig
  num_train_workers int[1..) = 1
  output_dir text = "outputs"
  pad_to_multiple_of int[1..) = 1
  renderer by:name(auto@AutoRendererConfig, custom@CustomRendererConfig, deepseek-r1@DeepSeekR1RendererConfig, \
  deepseek-v3@DeepSeekV3RendererConfig, deepseek-v4@DeepSeekV4RendererConfig, default@DefaultRendererConfig, \
  gemma4@Gemma4RendererConfig, glm-4.5@GLM45RendererConfig, glm-5@GLM5RendererConfig, glm-5.1@GLM51RendererConfig, \
  glm-5.3@GLM53RendererConfig, gpt-oss@GptOssRendererConfig, hy3@Hy3RendererConfig, inkling@InklingRendererConfig, \
  kimi-k2@KimiK2RendererConfig, kimi-k2.5@KimiK25RendererConfig, laguna-m.1@LagunaM1RendererConfig, \
  laguna-s-2.1@LagunaS21RendererConfig, laguna-xs-2.1@LagunaXS21RendererConfig, laguna-xs.2@LagunaXS2RendererConfig, \
  llama-3@Llama3RendererConfig, minimax-m2@MiniMaxM2RendererConfig, nemotron-3@Nemotron3RendererConfig, \
  nemotron-3-ultra@Nemotron3UltraRendererConfig, nemotron-3.5@Nemotron35RendererConfig, prime-qwen3@PrimeQwen3RendererConfig, \
  qwen3@Qwen3RendererConfig, qwen3-vl@Qwen3VLRendererConfig, qwen3.5@Qwen35RendererConfig, qwen3.6@Qwen36RendererConfig, \
  qwen3.8@Qwen38RendererConfig) = "auto"
  resume null | @ResumeConfig = null
  rollout_transport by:type(filesystem@FileSystemTransportConfig, zmq@ZMQTransportConfig) = "zmq"
  seq_len int = 2048
  tasks_per_minute null | int[1..) = null
  token_batch_size null | int[1..) = null
  tokenizer @TokenizerConfig
  train @TrainConfig
  weight_broadcast by:type(filesystem@FileSystemWeightBroadcastConfig, nccl@orchestrator.NCCLWeightBroadcastConfig, \
  nixl@orchestrator.NIXLWeightBroadcastConfig) = "filesystem"
OrchestratorMonitorsConfig
  file null | @FileMonitorConfig
  prime null | @PrimeMonitorConfig = null
  wandb null | @WandbMonitorConfig = null
PrimeMonitorConfig
  name null | text = null
PrimeQwen3RendererConfig
  name 'prime-qwen3' = "prime-qwen3"
  thinking_retention null | 'tool_cycle' | 'all' = null
Qwen35RendererConfig
  add_vision_id bool = false
  enable_thinking null | bool = null
  image_cache_max int = 256
  name 'qwen3.5' = "qwen3.5"
  thinking_retention null | 'tool_cycle' | 'all' = null
Qwen36RendererConfig
  add_vision_id bool = false
  enable_thinking null | bool = null
  image_cache_max int = 256
  name 'qwen3.6' = "qwen3.6"
  preserve_thinking bool = false
  thinking_retention null | 'tool_cycle' | 'all' = null
Qwen38RendererConfig
  add_vision_id bool = false
  enable_thinking null | bool = null
  image_cache_max int = 256
  name 'qwen3.8' = "qwen3.8"
  preserve_thinking bool = true
  reasoning_effort 'xhigh' | 'medium' | 'low' = "xhigh"
  thinking_retention null | 'tool_cycle' | 'all' = null
Qwen3RendererConfig
  enable_thinking bool = true
  name 'qwen3' = "qwen3"
  thinking_retention null | 'tool_cycle' | 'all' = null
Qwen3VLRendererConfig
  add_vision_id bool = false
  image_cache_max int = 256
  name 'qwen3-vl' = "qwen3-vl"
  thinking_retention null | 'tool_cycle' | 'all' = null
RAEAlgoConfig
  decay number[0..1) = 0.95
  sampling @algorithm.SamplingConfig
  type 'rae' = "rae"
ResumeConfig
  dir null | text = null
  step null | int[1..) = null
RunConfig
  dir null | text = null
  name null | text = null
SFTAlgoConfig
  sampling @algorithm.SamplingConfig
  type 'sft' = "sft"
SGDConfig
  lr number[0..) = 1e-06
  max_norm null | number[0..) = 1.0
  momentum number = 0.9
  nesterov bool = true
  type 'sgd' = "sgd"
  weight_decay number[0..) = 0.01
ServeConfig
  address null | text = null
  max_concurrent null | int[1..) = null
  pool by:type(elastic@ElasticPoolConfig, static@StaticPoolConfig)
ServerConfig
  host null | text = null
  liveness_timeout_seconds number(0..) = 30.0
  port int = 8000
SharedCheckpointConfig
  interval null | int = null
  keep_interval null | int[1..) = null
  keep_last null | int[1..) = null
  output_dir null | text = null
SharedFileSystemWeightBroadcastConfig
  type 'filesystem' = "filesystem"
SharedLogConfig
  json_logging bool = false
  level null | text = null
SharedModelConfig
  name text = "Qwen/Qwen3-0.6B"
  vlm null | @VLMConfig = null
SharedMonitorsConfig
  file null | @FileMonitorConfig = null
  prime null | @PrimeMonitorConfig = null
  wandb null | @SharedWandbConfig = null
SharedNCCLWeightBroadcastConfig
  host text = "localhost"
  port int = 29501
  quantize_in_weight_transfer bool = false
  timeout int = 1200
  type 'nccl' = "nccl"
SharedNIXLWeightBroadcastConfig
  host text = "localhost"
  port int = 8001
  session_id text = "default"
  timeout int = 1200
  type 'nixl' = "nixl"
SharedWandbConfig
  entity null | text = null
  group null | text = null
  name null | text = null
  offline null | bool = false
  project null | text = "prime-rl"
  tags null | list:text = null
SignSGDConfig
  lr number[0..) = 1e-06
  max_norm null | number[0..) = 1.0
  type 'sign_sgd' = "sign_sgd"
  weight_decay number[0..) = 0.01
SingleNodeDeploymentConfig
  gpus_per_node int = 8
  num_infer_gpus int = 1
  num_train_gpus int = 1
  type 'single_node' = "single_node"
SingleNodeInferenceDeploymentConfig
  gpus_per_node int = 8
  type 'single_node' = "single_node"
SlurmConfig
  account null | text = null
  cleanup_grace_period int[0..) = 3600
  exclude null | text = null
  job_name text = "prime-rl"
  nodelist null | text = null
  partition text = "cluster"
  pre_run_command null | text = null
  project_dir text = "."
  shared_fs bool = true
  template_path null | text = null
  time null | text = null
StandardSamplerConfig
  type 'standard' = "standard"
StaticPoolConfig
  num_workers int[1..) = 4
  type 'static' = "static"
TokenizerConfig
  chat_template null | text = null
  name null | text = null
  trust_remote_code null | bool = null
TrainConfig
  filter_zero_advantages bool = true
  sampling @TrainSamplingConfig
  source list:@TrainSourceConfig
TrainSamplingConfig
  extra_body map:any
  max_completion_tokens null | int = null
  temperature number[0..2] = 1.0
TrainSourceConfig
  algo null | by:type(echo@EchoAlgoConfig, grpo@GRPOAlgoConfig, hierarchical_grpo@HierarchicalGRPOAlgoConfig, \
  max_rl@MaxRLAlgoConfig, opd@OPDAlgoConfig, opsd@OPSDAlgoConfig, rae@RAEAlgoConfig, sft@SFTAlgoConfig) = null
  curriculum null | @CurriculumConfig = null
  env any
  group_size int[1..) = 1
  name null | text = null
  ratio number(0..) = 1.0
  sampling @TrainSamplingConfig
  serve @ServeConfig
TrainerConfig
  ckpt null | @trainer.CheckpointConfig = null
  data @DataLoaderConfig
  dist_timeout_seconds int = 3600
  enable_router_replay bool = false
  enable_token_export bool = false
  env_vars map:text
  gc null | @GCConfig
  heartbeat null | @HeartbeatConfig = null
  log @TrainerLogConfig
  loss by:type(custom@CustomLossConfig, default@DefaultLossConfig, ipo@IPOLossConfig) = "default"
  matmul_precision 'highest' | 'high' | 'medium' = "high"
  max_steps null | int = null
  memory_profiler_path null | text = null
  metrics_server null | @MetricsServerConfig = null
  model @trainer.ModelConfig
  monitors @MonitorsConfig
  optim by:type(adamw@AdamWConfig, muon@MuonConfig, sgd@SGDConfig, sign_sgd@SignSGDConfig) = "adamw"
  output_dir text = "outputs"
  resume null | @ResumeConfig = null
  rollout_transport by:type(filesystem@FileSystemTransportConfig, zmq@ZMQTransportConfig) = "zmq"
  scheduler by:type(constant@ConstantSchedulerConfig, cosine@CosineSchedulerConfig, linear@LinearSchedulerConfig) = "constant"
  tokenizer @TokenizerConfig
  trace_path null | text = null
  weight_broadcast by:type(filesystem@FileSystemWeightBroadcastConfig, nccl@trainer.NCCLWeightBroadcastConfig, \
  nixl@trainer.NIXLWeightBroadcastConfig) = "filesystem"
TrainerLogConfig
  interval number(0..) = 10.0
  json_logging bool = false
  level text
  log_data bool = false
  ranks_filter list:int
  vf_level text
VLMConfig
  freeze_vision_encoder bool = true
  language_model_attr text !
  vision_encoder_attr text !
VllmConfig +
  all2all_backend 'allgather_reducescatter' | 'deepep_high_throughput' | 'deepep_low_latency' | 'flashinfer_nvlink_one_sided' | \
  'flashinfer_nvlink_two_sided' = "allgather_reducescatter"
  api_server_count int[0..) = 1
  chat_template null | text = null
  data_parallel_rpc_port int[1..65535] = 13345
  data_parallel_size int[1..) = 1
  data_parallel_size_local null | int[1..) = null
  dtype 'auto' | 'float16' | 'bfloat16' | 'float32' = "auto"
  enable_dbo bool = false
  enable_eplb bool = false
  enable_expert_parallel bool = false
  enable_lora bool = false
  enable_prefix_caching null | bool = null
  enable_return_routed_experts bool = false
  enforce_eager bool = false
  gpu_memory_utilization number = 0.9
  lora_target_modules null | list:text = null
  max_cpu_loras int = 100
  max_lora_rank null | int = null
  max_loras int = 8
  max_model_len null | int = null
  model text = "Qwen/Qwen3-0.6B"
  quantization null | text = null
  reasoning_parser null | text = "auto"
  rope_scaling null | text | map:any = null
  seed int = 0
  tensor_parallel_size int = 1
  tool_call_parser null | text = "auto"
  trust_remote_code bool = false
VllmRouterConfig
  policy text = "consistent_hash"
  type 'vllm-router' = "vllm-router"
WandbMonitorConfig
  entity null | text = null
  group null | text = null
  name null | text = null
  offline bool = false
  project text = "prime-rl"
  tags null | list:text = null
WeightBroadcastConfig
  type 'nccl' | 'filesystem' | 'nixl' = "filesystem"
ZMQTransportConfig
  host text = "localhost"
  hwm int = 10
  port int = 5555
  type 'zmq' = "zmq"
algorithm.SamplingConfig
  source 'policy' | @FrozenModelConfig = "policy"
orchestrator.CheckpointConfig
  interval null | int[1..) = null
  keep_interval null | int[1..) = null
  keep_last null | int[1..) = null
  skip_progress bool = false
  wait_for_weights_timeout null | int[1..) = null
orchestrator.LoRAConfig
  alpha null | number[0..) = null
  name null | text = null
  rank null | int[1..) = null
orchestrator.ModelConfig
  client @ClientConfig
  lora null | @orchestrator.LoRAConfig = null
  name text = "Qwen/Qwen3-0.6B"
  trust_remote_code bool = false
  vlm null | @VLMConfig = null
orchestrator.NCCLWeightBroadcastConfig
  host text = "localhost"
  inference_world_size int[1..) = 1
  port int = 29501
  quantize_in_weight_transfer bool = false
  timeout int = 1200
  type 'nccl' = "nccl"
orchestrator.NIXLWeightBroadcastConfig
  host text = "localhost"
  inference_world_size int[1..) = 1
  port int = 8001
  session_id text = "default"
  timeout int = 1200
  type 'nixl' = "nixl"
trainer.CheckpointConfig
  interval null | int[1..) = null
  keep_interval null | int[1..) = null
  keep_last null | int[1..) = null
  output_dir null | text = null
  skip_dataloader bool = false
  skip_optimizer bool = false
  skip_progress bool = false
  skip_scheduler bool = false
trainer.LoRAConfig
  alpha number[0..) = 32.0
  dropout number[0..1] = 0.0
  modules_to_save list:text
  rank int[1..) = 16
  target_modules list:text
trainer.ModelConfig
  ac null | @ActivationCheckpointConfig
  ac_offloading null | @ActivationOffloadingConfig
  attn 'flash_attention_2' | 'flash_attention_3' | 'flash_attention_4' | 'auto' = "auto"
  compile null | @CompileConfig
  conversion_dir null | text = null
  cp int = 1
  cp_style 'ring' | 'ulysses' = "ring"
  debug @DebugModelConfig
  deepep_num_sms int[1..) = 20
  deepep_token_chunk_size null | int[1..) = null
  dp_replicate int = 1
  ep int | 'auto' = "auto"
  ep_comm_backend 'torch' | 'deepep' = "torch"
  freeze_moe_router bool = false
  fsdp_cpu_offload bool = false
  full_offload null | @OptimizerInBackwardOffloadConfig | bool = null
  fused_lm_head_token_chunk_size int | 'disabled' = 8192
  impl 'hf' | 'custom' | 'auto' = "auto"
  index_cache null | @IndexCacheConfig = null
  lora null | @trainer.LoRAConfig = null
  moe_fused_kernel bool = false
  moe_router_dtype 'bfloat16' | 'float32' = "float32"
  moe_use_grouped_mm bool = true
  name text = "Qwen/Qwen3-0.6B"
  optim_cpu_offload bool = true
  optimization_dtype 'bfloat16' | 'float32' = "float32"
  quantization null | by:type(fp8@FP8Config, mxfp8@MXFP8Config) = null
  reduce_dtype 'bfloat16' | 'float32' = "float32"
  reshard_after_forward bool = true
  seq_len int = 2048
  trust_remote_code bool = false
  vlm null | @VLMConfig = null
trainer.NCCLWeightBroadcastConfig
  host text = "localhost"
  inference_world_size int = 1
  port int = 29501
  quantize_in_weight_transfer bool = false
  timeout int = 1200
  type 'nccl' = "nccl"
trainer.NIXLWeightBroadcastConfig
  host text = "localhost"
  inference_world_size int = 1
  port int = 8001
  session_id text = "default"
  timeout int = 1200
  type 'nixl' = "nixl"
"""
