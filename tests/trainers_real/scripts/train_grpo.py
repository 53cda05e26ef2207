"""A script of a user that trains with TRL's GRPO: the reward is the share of a completion's tokens that are
the first word.
"""

import torch
from datasets import Dataset
from halt import halt_at
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer, TrlParser

WORDS = ["<pad>", "<eos>", "yes", *(f"w{number}" for number in range(13))]
PROMPTS = ["w1 w2", "w3 w4", "w5 w6", "w7 w8"]


class Halt(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        halt_at(state.global_step)


def tokenizer():
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="w0", padding_side="left"
    )


def reward(completions, **kwargs):
    return [text.split().count("yes") / max(1, len(text.split())) for text in completions]


def main():
    (arguments,) = TrlParser((GRPOConfig,)).parse_args_into_dataclasses()
    torch.manual_seed(arguments.seed)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    data = Dataset.from_dict({"prompt": PROMPTS * 8})
    trainer = GRPOTrainer(
        LlamaForCausalLM(config),
        reward,
        args=arguments,
        train_dataset=data,
        processing_class=tokenizer(),
        callbacks=[Halt()],
    )
    trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


main()
