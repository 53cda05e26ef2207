#!/bin/sh
# M7C 125M on whatever GPU was found: 262,144 tokens a step everywhere, 256 sequences of 1,024 tokens, in as few passes as the memory
# allows. What is given to this script goes to the trainer as it is, after all else, so that it counts.
#
# FILL IN: the script's name and its options are what ours are called; write what yours are.
set -eu

memory_mib=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | sort -n | head -n 1)
if [ "$memory_mib" -ge 75000 ]; then      # 80 GB
    micro_batch=64 accumulate=4
elif [ "$memory_mib" -ge 38000 ]; then    # 40 GB
    micro_batch=32 accumulate=8
elif [ "$memory_mib" -ge 22000 ]; then    # 24 GB
    micro_batch=16 accumulate=16
else
    echo "m7c: a GPU of $memory_mib MiB; 24 GB are the least" >&2
    exit 2
fi
echo "m7c: $memory_mib MiB, $micro_batch sequences at a time, $accumulate times a step"

exec python3 train.py \
    --size 125m --seq-len 1024 --micro-batch "$micro_batch" --accumulate "$accumulate" \
    --save-dir out --save-every 500 --progress progress.csv "$@"
