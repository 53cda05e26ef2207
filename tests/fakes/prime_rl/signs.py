"""What the fake reports: rows of metrics, lines in logs and on the console, and a GET after each step."""

import http.client
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit


class Signs:
    def __init__(self, run: Path, logs: Path, heartbeats: dict[str, str]) -> None:
        self._run, self._logs, self._heartbeats = run, logs, heartbeats
        self._start_s, self._last_s = time.time(), dict[str, float]()
        self._step_s, self._reported_s = float(os.environ.get("FAKE_RL_STEP_S", "0")), 0.0
        for name in ("trainer", "orchestrator", "inference"):
            (logs / f"{name}.log").touch()

    def log(self, component: str, line: str) -> None:
        """Write to a component's log. The launcher shows only the orchestrator's."""
        with (self._logs / f"{component}.log").open("a") as log:
            log.write(f"{line}\n")
        if component == "orchestrator":
            print(line, flush=True)

    def shipped(self, step: int) -> None:
        """Write the load of the engines, as a row of its own without a step."""
        cycle_s = self._since("orchestrator")
        reported = {
            "progress/rollouts": 128,
            "reward/all/mean": round(0.01 * step, 4),
            "time/step": cycle_s,
            "time/save_ckpt": 0.0,
        }
        timing = {"agent/model/mean": 0.2 * cycle_s, "total/mean": cycle_s, "total/max": 2 * cycle_s}
        reported |= {f"train/agg/all/agent/timing/{name}": value for name, value in timing.items()}
        self._row(step, reported | {"time/wait_for_policy": 0.0, "time/pack": 0.0})
        engines = {"num_requests_running": 4.0, "num_requests_waiting": 0.0, "kv_cache_usage_perc": 0.1}
        self._row(
            None,
            {
                f"inference/agg/{name}/{stat}": value
                for name, value in engines.items()
                for stat in ("sum", "mean")
            },
        )
        self.log(
            "orchestrator",
            f"12:00:00 SUCCESS Step {step} | Time: 1.00s | Reward: {0.01 * step:.4f} | Throughput: 10.0 "
            "tokens/s",
        )
        self._heartbeat("orchestrator")

    def trained(self, step: int) -> None:
        """Write several rows, of which one has the loss. Most of the step was waiting."""
        loss, step_s = 2.0 / step, self._since("trainer")
        self._reported_s += step_s
        self._row(step, {"perf/throughput": 1000.0, "perf/mfu": 30.0})
        self._row(step, {"optim/lr": 1e-6, "optim/grad_norm": 0.5})
        self._row(step, {"loss/mean": loss, "entropy/all/mean": 0.3})
        shares = {
            "wait_for_batch": 0.6,
            "load_data": 0.0,
            "forward_backward": 0.35,
            "broadcast_weights": 0.05,
            "save_ckpt": 0.0,
        }
        self._row(
            step, {"time/step": step_s, **{f"time/{name}": share * step_s for name, share in shares.items()}}
        )
        self.log(
            "trainer",
            f"12:00:01 SUCCESS Step {step} |   1.00s | Loss {loss:.4f} | Entropy 0.3000 | LR 1.00e-06 | MFU "
            "30.0%",
        )
        self._heartbeat("trainer")

    def _since(self, component: str) -> float:
        """Return the seconds of a step: those that were asked for, whatever pauses a busy machine makes, or
        else those since the last call for that component or since the launch. The times of rows are sums of
        them, so that a pause shows nowhere.
        """
        if self._step_s:
            return self._step_s
        now_s = time.time()
        last_s, self._last_s[component] = self._last_s.get(component, self._start_s), now_s
        return now_s - last_s

    def _row(self, step: int | None, figures: dict[str, float]) -> None:
        with (self._run / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, "time": self._start_s + self._reported_s, **figures}) + "\n")

    def _heartbeat(self, component: str) -> None:
        url = urlsplit(self._heartbeats.get(component, ""))
        if not url.hostname:
            return
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=1)
        # Nobody listening is nothing to die of.
        with suppress(OSError):
            connection.request("GET", url.path)
            connection.getresponse().read()
        connection.close()
