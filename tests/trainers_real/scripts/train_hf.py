"""A script of a user that trains with the Trainer of transformers, and with --lora an adapter of PEFT."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from halt import ATTEMPT, TROUBLE, halt_at
from peft import LoraConfig, get_peft_model
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    HfArgumentParser,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

ROWS, LENGTH, TOKENS = 96, 12, 64


@dataclass
class Own:
    lora: bool = False


class Halt(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        # After the callback that draws the progress bar, and before the figures of this step.
        halt_at(state.global_step)


class Troubled(Trainer):
    """The Trainer, to which something happens while it saves; $TROUBLE says what."""

    def _save_rng_state(self, output_dir):
        if ATTEMPT == 2 and TROUBLE == "killed" and self.state.global_step == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._save_rng_state(output_dir)

    def _save_checkpoint(self, model, trial):
        super()._save_checkpoint(model, trial)
        if ATTEMPT == 1 and TROUBLE == "killed" and self.state.global_step == 4:
            # Its links are there, and its limited speed leaves it seconds to go.
            while not Path("../stage/upload-1-4/trainer_state.json").exists():
                time.sleep(0.01)
            super()._save_checkpoint(model, trial)
            Path("written-again").touch()


def rows():
    drawn = torch.randint(0, TOKENS, (ROWS, LENGTH), generator=torch.Generator().manual_seed(5))
    return [{"input_ids": row, "labels": row} for row in drawn]


def model_of(own):
    config = GPT2Config(
        vocab_size=TOKENS, n_positions=LENGTH, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    if not own.lora:
        return model
    return get_peft_model(
        model, LoraConfig(r=4, lora_dropout=0.1, target_modules=["c_attn"], fan_in_fan_out=True)
    )


def main():
    own, arguments = HfArgumentParser((Own, TrainingArguments)).parse_args_into_dataclasses()
    torch.manual_seed(arguments.seed)
    trainer = Troubled(model_of(own), arguments, train_dataset=rows(), callbacks=[Halt()])
    trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


main()
