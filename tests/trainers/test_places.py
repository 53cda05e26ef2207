"""An exception of few words is put down to the place where it was raised."""

import pytest

from prime_train.outputs.logs.log_ending import ending_in
from prime_train.spec.causes import Action, Cause
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.known_errors.places import LINES_MAX, PLACES, RaisedAt, placed
from prime_train.trainers.of_spec import named

TRACEBACK = "Traceback (most recent call last):"
LIBRARY = "/usr/lib/python3.11/site-packages"


def cause_of(*lines: str) -> tuple[Cause, Action | None]:
    found = named([TRACEBACK, *lines], BUILT_IN, code=1)
    return found.cause, found.action


@pytest.mark.parametrize("place", PLACES, ids=[place.source[:40] for place in PLACES])
def test_every_place_has_a_source_and_an_example_that_names_its_cause(place: RaisedAt) -> None:
    *frames, exception = place.example
    assert place.source
    assert placed(exception, frames) == place.rule
    assert cause_of(*place.example) == (place.cause, place.action)


@pytest.mark.parametrize(
    "frames",
    [
        ['  File "/w/train.py", line 67, in main', "    optimizer.load_state_dict(checkpoint['optimizer'])"],
        ['  File "/w/train.py", line 101, in load_checkpoint', "    state = saved[name]"],
        [f'  File "{LIBRARY}/torch/distributed/checkpoint/state_dict_loader.py", line 250, in local_step'],
        [f'  File "{LIBRARY}/torch/optim/sgd.py", line 87, in step', "    param_state = self.state[p]"],
    ],
)
def test_a_key_that_is_missing_while_a_checkpoint_is_loaded_speaks_against_the_checkpoint(
    frames: list[str],
) -> None:
    assert cause_of(*frames, "KeyError: 'step_size'") == (Cause.BAD_CHECKPOINT, Action.STOP)
    assert (
        cause_of('  File "/w/train.py", line 3, in main', "    rate = rates[name]", "KeyError: 'step_size'")[
            0
        ]
        is Cause.TRAINER_ERROR
    )


@pytest.mark.parametrize(
    "frames",
    [
        [f'  File "{LIBRARY}/torch/distributed/checkpoint/state_dict_saver.py", line 9, in save'],
        [
            '  File "/w/train.py", line 9, in load_checkpoint',
            "    run()",
            '  File "/w/train.py", line 40, in train',
            "    step(batch)",
        ],
        [
            f'  File "{LIBRARY}/transformers/modeling_utils.py", line 3, in from_pretrained',
            "    model.load_state_dict(state)",
        ],
    ],
    ids=["saving", "training that a function of that name began", "the model that the config names"],
)
def test_saving_training_and_loading_a_model_do_not_speak_against_the_checkpoint(frames: list[str]) -> None:
    assert cause_of(*frames, "IndexError: list index out of range")[0] is not Cause.BAD_CHECKPOINT


def test_a_column_that_the_data_lack_is_told_from_a_key_of_the_code() -> None:
    column = [
        '  File "/w/data.py", line 4, in collate_fn',
        '    texts = [sample["caption"] for sample in samples]',
        "KeyError: 'caption'",
    ]
    assert cause_of(*column) == (Cause.BAD_CONFIG, Action.STOP)
    assert cause_of("KeyError: 'caption'")[0] is Cause.TRAINER_ERROR


def test_only_the_calls_nearest_to_the_exception_count() -> None:
    far = ['  File "/w/train.py", line 101, in load_checkpoint', "    replay(state)"]
    near = [
        line
        for number in range(LINES_MAX)
        for line in (f'  File "/w/replay.py", line {number}, in replay', "    inner()")
    ]
    assert cause_of(*far, *near, "KeyError: 'step_size'")[0] is Cause.TRAINER_ERROR


def test_the_calls_of_another_traceback_do_not_count() -> None:
    loading = [
        f'  File "{LIBRARY}/torch/optim/adam.py", line 82, in step',
        "KeyError: 'exp_avg'",
        "",
        "During handling of the above:",
        "",
    ]
    assert placed("KeyError: 'x'", ()) is None
    found = named(
        [TRACEBACK, *loading[:1], TRACEBACK, '  File "/w/a.py", line 1, in f', "KeyError: 'x'"],
        BUILT_IN,
        code=1,
    )
    assert found.cause is Cause.TRAINER_ERROR


def test_a_rule_that_knows_the_words_outranks_the_place() -> None:
    frames = ['  File "/w/train.py", line 101, in load_checkpoint', "    state = torch.load(path)"]
    assert (
        cause_of(*frames, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")[0]
        is Cause.GPU_OOM
    )
    assert cause_of(*frames, "RuntimeError: Connection reset by peer")[0] is Cause.NETWORK_ERROR


def test_what_was_survived_at_a_place_does_not_count_after_exit_code_0() -> None:
    *frames, exception = PLACES[0].example
    assert named([TRACEBACK, *frames, exception], BUILT_IN, code=0).cause is Cause.FINISHED


def test_ranks_in_front_do_not_hide_the_place() -> None:
    lines = [f"[rank3]: {line}" for line in (TRACEBACK, *PLACES[1].example)]
    assert ending_in(lines, code=1, kind="torchrun").found.cause is Cause.BAD_CHECKPOINT


def test_a_name_that_an_installed_package_lacks_is_told_from_a_slip_of_a_script_that_the_package_calls() -> (
    None
):
    library = [
        f'  File "{LIBRARY}/transformers/trainer.py", line 9, in train',
        "    self.callback_handler.on_step_end(args)",
    ]
    script = ['  File "/w/train.py", line 4, in on_step_end', "    print(rewards)", "          ^^^^^^^"]
    assert cause_of(*script, *library, "NameError: name 'is_peft_available' is not defined") == (
        Cause.IMPORT_ERROR,
        Action.STOP,
    )
    assert cause_of(*library, *script, "NameError: name 'rewards' is not defined") == (
        Cause.TRAINER_ERROR,
        Action.STOP,
    )


@pytest.mark.parametrize(
    "words",
    [
        "LLM.__init__() got an unexpected keyword argument 'kv_dtype'",
        "run() missing 1 required positional argument: 'ids'",
    ],
)
def test_a_call_that_does_not_fit_is_put_down_to_the_versions_if_an_installed_package_makes_it(
    words: str,
) -> None:
    library = [f'  File "{LIBRARY}/trl/trainer/grpo_trainer.py", line 9, in __init__', "    self.llm = LLM("]
    passed_on = [
        f'  File "{LIBRARY}/trl/trainer/grpo_trainer.py", line 9, in __init__',
        "    self.llm = LLM(**settings)",
    ]
    script = ['  File "/w/train.py", line 4, in main', "    llm = LLM(kv_dtype='fp8')"]
    assert cause_of(*script, *library, f"TypeError: {words}") == (Cause.IMPORT_ERROR, Action.STOP)
    for frames in ([*library, *script], [*script, *passed_on]):
        assert cause_of(*frames, f"TypeError: {words}")[0] in (Cause.BAD_CONFIG, Cause.TRAINER_ERROR)


def test_what_a_loader_of_checkpoints_does_not_support_is_no_fault_of_the_checkpoint() -> None:
    frames = ['  File "/w/workers.py", line 411, in load_checkpoint', "    assert self.is_actor, ("]
    assert cause_of(*frames, "AssertionError: loading is only supported for the actor")[0] is Cause.BAD_CONFIG
    assert cause_of(*frames, "AssertionError: loading found another actor")[0] is Cause.BAD_CHECKPOINT
