"""A small language model learns to count, with the Trainer of transformers; nothing is downloaded.

train.py --output_dir FOLDER, and every other option of TrainingArguments
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments

TOKENS, LENGTH, ROWS = 48, 16, 512


def rows():
    """Return sequences that count on by 1, 2 or 3 from a random number."""
    drawn = torch.Generator().manual_seed(5)
    begin = torch.randint(0, TOKENS, (ROWS, 1), generator=drawn)
    by = torch.randint(1, 4, (ROWS, 1), generator=drawn)
    return [{"input_ids": row, "labels": row} for row in (begin + by * torch.arange(LENGTH)) % TOKENS]


def main():
    (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    torch.manual_seed(arguments.seed)
    config = GPT2Config(
        vocab_size=TOKENS, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=rows())
    # The Trainer itself does not read this argument.
    trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


if __name__ == "__main__":
    main()
