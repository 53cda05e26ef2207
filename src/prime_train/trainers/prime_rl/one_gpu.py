"""How prime-rl trains and generates on the only GPU of a machine.

Its launcher gives the inference server GPUs of its own, and refuses a machine that has too few ("Requested 2
GPUs via deployment settings, but only 1 physical GPU(s) are available", entrypoints/rl.py at 559b4477).
Without an [inference] part it starts no server and expects one that was started by hand; that is the way to
one GPU that is left, with the server limited to a share of the GPU (`inference.vllm.gpu_memory_utilization`;
"Single-GPU Training" in docs/deployment.md up to v0.5.0).

So the launcher is run twice. The first time it only writes the resolved config of each part (`--dry-run`),
because what the server needs follows from the other parts, such as the rank of LoRA. Then the server is
started alone, until it is ready: vLLM measures the free memory of the GPU while it starts, and must not see a
trainer come. At last the launcher starts all the rest with `--no-inference`; the address of the engine, for
new weights, is the one setting that it then no longer derives. Weights go over the file system, as NCCL
refuses two processes on one GPU. Whichever of server and launcher ends, the other one is ended, too.
"""

import shlex
from collections.abc import Sequence

READY_S_MAX = 1800
"""Seconds for the server to become ready, prime-rl's own limit
(orchestrator.model.client.wait_for_ready_timeout).
"""
STOP_S_MAX = 60
"""Seconds between SIGTERM and SIGKILL, as in prime-rl's own launcher."""

_ENGINE = (
    "import json, sys, urllib.request; client = json.load(open(sys.argv[1]))['model']['client']; url = "
    "(client.get('admin_base_url') or [client['base_url']])[0]; "
    "urllib.request.urlopen(url.removesuffix('/v1') + '/health', timeout=5).close(); print(url)"
)
"""A program that prints the engine's address if it is ready. Any error means that it is not."""

_SCRIPT = """\
configs={run}/configs log={log} server= launcher=
own() {{ exec {tool} "$@"; }}
stop() {{
    trap '' TERM INT
    kill $server $launcher 2>/dev/null
    left={stop_s}
    while [ $left -gt 0 ] && {{ kill -0 ${{server:-x}} || kill -0 ${{launcher:-x}}; }} 2>/dev/null; do sleep 1; left=$((left - 1)); done
    kill -s KILL $server $launcher 2>/dev/null
    exit $1
}}
rm -f "$configs/inference.json"
(own "$@" --weight-broadcast.type filesystem --dry-run) || exit 1
[ -e "$configs/inference.json" ] || own "$@"
trap 'stop 1' TERM INT
mkdir -p "${{log%/*}}" || exit 1
echo "Starting inference on the GPU that the trainer uses, too; its log is $log"
own inference @ "$configs/inference.json" >"$log" 2>&1 &
server=$! waited=0
until engine=$(own python -c {engine} "$configs/orchestrator.json" 2>/dev/null); do
    kill -0 $server 2>/dev/null || {{ wait $server; echo "Error: Inference failed with exit code $?"; stop 1; }}
    [ $waited -lt {ready_s} ] || {{ echo "Inference server is not ready after $waited (>{ready_s}) seconds"; stop 1; }}
    sleep 1; waited=$((waited + 1))
done
own "$@" --weight-broadcast.type filesystem --no-inference --orchestrator.model.client.admin-base-url "$engine" &
launcher=$!
while kill -0 $launcher 2>/dev/null; do
    kill -0 $server 2>/dev/null || {{ wait $server; echo "Error: Inference failed with exit code $?"; stop 1; }}
    sleep 1
done
wait $launcher
stop $?
"""


def script(tool: str, arguments: Sequence[str], *, run: str, log: str) -> str:
    """Return the shell's program. `tool` runs one of prime-rl's commands, `arguments` are `rl` and its
    arguments, all quoted for the shell; `run` is the path of the run's folder, `log` that of the server's
    log.
    """
    body = _SCRIPT.format(
        run=shlex.quote(run),
        log=shlex.quote(log),
        tool=tool,
        engine=shlex.quote(_ENGINE),
        stop_s=STOP_S_MAX,
        ready_s=READY_S_MAX,
    )
    return f"set -- {' '.join(arguments)}\n{body}"
