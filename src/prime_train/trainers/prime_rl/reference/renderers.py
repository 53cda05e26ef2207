"""Models whose chat template the package `renderers` 0.1.12 recognises by exact name; a row has the renderer,
the models' owner and their names.
"""

ROWS = """\
deepseek-r1 deepseek-ai: DeepSeek-R1 DeepSeek-R1-0528
deepseek-v3 deepseek-ai: DeepSeek-V3 DeepSeek-V3-Base
deepseek-v4 deepseek-ai: DeepSeek-V4-Flash-0731
gemma4 google: gemma-4-E2B-it gemma-4-E4B-it gemma-4-26B-A4B-it gemma-4-31B-it
glm-4.5 THUDM: GLM-4.5-Air
glm-4.5 zai-org: GLM-4.5-Air
glm-5 zai-org: GLM-5 GLM-5-FP8 GLM-4.7-Flash
glm-5.1 zai-org: GLM-5.1
glm-5.3 zai-org: GLM-5.3 GLM-5.3-BF16
gpt-oss openai: gpt-oss-20b gpt-oss-120b
hy3 tencent: Hy3 Hy3-FP8
inkling thinkingmachines: Inkling Inkling-Small
kimi-k2 moonshotai: Kimi-K2-Instruct
kimi-k2.5 moonshotai: Kimi-K2.5 Kimi-K2.6
laguna-m.1 poolside: Laguna-M.1
laguna-s-2.1 poolside: Laguna-S-2.1
laguna-xs-2.1 poolside: Laguna-XS-2.1
laguna-xs.2 poolside: Laguna-XS.2
llama-3 meta-llama: Llama-3.2-1B-Instruct Llama-3.2-3B-Instruct
minimax-m2 MiniMaxAI: MiniMax-M2 MiniMax-M2.5
nemotron-3 nvidia: NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 NVIDIA-Nemotron-3-Super-120B-A12B-BF16
nemotron-3-ultra nvidia: NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16 NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8
nemotron-3.5 nvidia: NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16 NVIDIA-Nemotron-3.5-Super-EA-09112026
prime-qwen3 PrimeIntellect: Qwen3-0.6B Qwen3-1.7B
qwen3 Qwen: Qwen3-0.6B Qwen3-1.7B Qwen3-4B Qwen3-4B-Instruct-2507 Qwen3-4B-Thinking-2507 Qwen3-8B Qwen3-14B Qwen3-32B
  Qwen3-30B-A3B Qwen3-30B-A3B-Instruct-2507 Qwen3-30B-A3B-Thinking-2507 Qwen3-235B-A22B
qwen3-vl Qwen: Qwen3-VL-4B-Instruct Qwen3-VL-8B-Instruct Qwen3-VL-30B-A3B-Instruct
qwen3.5 Qwen: Qwen3.5-0.8B Qwen3.5-2B Qwen3.5-4B Qwen3.5-9B Qwen3.5-35B-A3B Qwen3.5-122B-A10B Qwen3.5-397B-A17B
qwen3.6 Qwen: Qwen3.6-35B-A3B
qwen3.8 Qwen: Qwen3.8-27B Qwen3.8-Flash-Next
"""
