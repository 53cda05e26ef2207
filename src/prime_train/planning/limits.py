"""What the commands that plan a run take at most, and what they assume where nothing is said."""

SEQ_LEN_MAX = 2**21
GPUS_MAX = 1024
MICRO_BATCH_MAX = 1024
STEPS_MAX = 10**9
STEP_S_MAX = 10**6
TOKENS_MAX = 10**15
USD_PER_HOUR_MAX = 10**5
TOKENS = 1e8
"""Tokens to train on."""
PROBE_STEPS, PROBE_SECONDS, PROBE_USD = 10, 60.0, 2.0
"""What a probe measures at least, and the most that it may cost."""
