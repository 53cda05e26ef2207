"""The words of Prime's own description: whatever else is sent in their place is answered 422."""

_PROVIDERS = """
    runpod fluidstack lambdalabs hyperstack oblivus cudocompute scaleway tensordock datacrunch latitude crusoecloud massedcompute akash
    primeintellect primecompute dc_impala dc_kudu dc_roan nebius dc_eland dc_wildebeest vultr dc_gnu denvr
"""

_SECURITIES = """
    secure_cloud community_cloud
"""

_IMAGES = """
    ubuntu_22_cuda_12 cuda_12_1_pytorch_2_2 cuda_11_8_pytorch_2_1 cuda_12_1_pytorch_2_3 cuda_12_1_pytorch_2_4 cuda_12_4_pytorch_2_4
    cuda_12_4_pytorch_2_5 cuda_12_4_pytorch_2_6 cuda_12_6_pytorch_2_7 stable_diffusion axolotl bittensor hivemind petals_llama
    vllm_llama_8b vllm_llama_70b vllm_llama_405b custom_template flux prime_rl
"""

_GPU_TYPES = """
    CPU_NODE A10_24GB A100_80GB A100_40GB A30_24GB A40_48GB B200_180GB B300_262GB GB200 GB300 RTX3070_8GB RTX3080_10GB RTX3080Ti_12GB
    RTX3090_24GB RTX3090Ti_24GB RTX4070Ti_12GB RTX4080_16GB RTX4080Ti_16GB RTX4090_24GB RTX5090_32GB H100_80GB H200_96GB GH200_96GB
    H200_141GB GH200_480GB GH200_624GB L4_24GB L40_48GB L40S_48GB RTX4000_8GB RTX5000_16GB RTX6000_24GB RTX8000_48GB RTX2000Ada_16GB
    RTX4000Ada_20GB RTX5000Ada_32GB RTX6000Ada_48GB A2000_6GB A4000_16GB A4500_20GB A5000_24GB A6000_48GB V100_16GB V100_32GB P100_16GB
    T4_16GB P4_8GB P40_24GB RTX_PRO_6000B_96GB
"""

PROVIDERS = frozenset(_PROVIDERS.split())
SECURITIES = frozenset(_SECURITIES.split())
IMAGES = frozenset(_IMAGES.split())
GPU_TYPES = frozenset(_GPU_TYPES.split())
