"""The trainer and the orchestrator of one launch, one step at a time; the orchestrator is one step ahead."""

import os
import shutil
import threading
from pathlib import Path

from tests.fakes.prime_rl import deaths, halves
from tests.fakes.prime_rl.deaths import Died
from tests.fakes.prime_rl.gpu import engine_answers, gpus_there, is_too_full
from tests.fakes.prime_rl.options import Options
from tests.fakes.prime_rl.signs import Signs

AHEAD = 1
WEIGHTS_BYTES = 1000


class Training:
    def __init__(self, options: Options, signs: Signs, resume: int) -> None:
        self._options, self._signs = options, signs
        self._run = options.run_folder
        self._checkpoints = self._run / "checkpoints"
        self._shipped = resume
        self._resume = resume
        self._pause_s = float(os.environ.get("FAKE_RL_STEP_S", "0"))
        self._hurries = Path(os.environ.get("FAKE_RL_HURRIES", "/nowhere"))
        step, _, file = os.environ.get("FAKE_RL_WAITS", "0@/nowhere").partition("@")
        self._waits_at, self._waits_for = int(step), Path(file)

    def run(self) -> None:
        """Run the launch. Raises Died, FileNotFoundError. The orchestrator's last save is made in any case,
        at the step it has sent.
        """
        if self._resume:
            halves.load(self._checkpoints, self._resume)
        try:
            deaths.at_start(self._options.broadcast)
            self._meet_the_server()
            self._broadcast(self._resume)
            for step in range(self._resume + 1, self._options.max_steps + 1):
                self._step(step)
            self._save_trainer(self._options.max_steps)
        finally:
            if self._shipped:
                halves.save_orchestrator(self._checkpoints, self._shipped)

    def _meet_the_server(self) -> None:
        """Raise Died if the GPU is too full for the trainer, or a server that was to be there is not."""
        if is_too_full():
            raise Died("oom")
        if gpus_there() == 1 and not engine_answers(self._options.client):
            raise Died("not_ready")

    def _step(self, step: int) -> None:
        while gpus_there() == 1 and not engine_answers(self._options.client):
            # No rollout comes any more, and nobody says so.
            threading.Event().wait(0.05)
        while self._shipped < min(step + AHEAD, self._options.max_steps):
            self._ship(self._shipped + 1)
        if not self._hurries.exists():
            threading.Event().wait(self._pause_s)
        while step == self._waits_at and not self._waits_for.exists():
            threading.Event().wait(0.02)
        try:
            deaths.at(step)
        except Died:
            if deaths.requested()[0] == "save":
                halves.save_shards(self._checkpoints, step)
            raise
        self._signs.trained(step)
        self._broadcast(step)
        if self._is_due(step):
            self._save_trainer(step)

    def _ship(self, step: int) -> None:
        (self._run / "rollouts" / f"step_{step}" / "train").mkdir(parents=True, exist_ok=True)
        self._signs.shipped(step)
        self._shipped = step
        if self._is_due(step):
            halves.save_orchestrator(self._checkpoints, step)

    def _save_trainer(self, step: int) -> None:
        halves.save_trainer(self._checkpoints, step)
        if self._options.keep_last is not None:
            halves.keep_last(self._checkpoints, self._options.keep_last)

    def _broadcast(self, step: int) -> None:
        """Broadcast the weights. Those of steps with a checkpoint are never removed."""
        folder: Path = self._run / "broadcasts"
        made = folder / f"step_{step}"
        made.mkdir(parents=True, exist_ok=True)
        (made / "model.safetensors.part").write_bytes(bytes(WEIGHTS_BYTES))
        (made / "STABLE").touch()
        if not self._is_due(step - 2):
            shutil.rmtree(folder / f"step_{step - 2}", ignore_errors=True)

    def _is_due(self, step: int) -> bool:
        return self._options.interval is not None and step % self._options.interval == 0
