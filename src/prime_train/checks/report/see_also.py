"""The operations that show more about the cause of a finding, by the finding's code."""

from prime_train.advice import Advice, Call, Operation

_FIND = Advice(Call(Operation.FIND), ", which lists the GPUs for rent")
_MEMORY = Advice(Call(Operation.MEMORY), ", which shows what the memory is used for")

SEE_ALSO = {**dict.fromkeys(("HW101", "HW102"), _FIND), **dict.fromkeys(("ME201", "ME202"), _MEMORY)}
