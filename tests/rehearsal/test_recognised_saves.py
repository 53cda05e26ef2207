"""What is a checkpoint, by the files that were seen: its unit, names, number, sentinel, and what is beside it."""

from collections.abc import Callable

import pytest

from prime_train.rehearsal.saves import SavesSeen
from prime_train.rehearsal.seen_saves import begins_save, saves_like, saves_seen
from tests.rehearsal.recorded import Recorder, state

Save = Callable[[Recorder, int, int], None]
"""What is done at a save: given the recorder, the step, and which save it is, from 1."""


def seen(save: Save, saves: int = 4, every: int = 20) -> SavesSeen:
    return saves_seen(recorded(save, saves, every).recording)


def recorded(save: Save, saves: int = 4, every: int = 20) -> Recorder:
    made = Recorder()
    for number in range(1, saves + 1):
        made.after(2)
        save(made, number * every, number)
    return made


def beside(found: SavesSeen) -> set[tuple[str, str]]:
    return {(one.path, one.kind) for one in found.beside}


def files(*names: str) -> Save:
    """Return a save that writes files of these names, in which `{n}` is the step and `{k}` counts the saves."""

    def write(made: Recorder, step: int, number: int) -> None:
        for at, name in enumerate(names):
            is_text = name.endswith((".json", ".txt", "latest", "checkpoint"))
            made.write(name.format(n=step, k=number), f"{step} of {name}" if is_text else state(step + at))

    return write


@pytest.mark.parametrize(
    ("save", "where", "also", "counts"),
    [
        (files("ck/ckpt_{n}.pt"), "ck/ckpt_{step}.pt", (), "step"),
        (files("ck/{n:07d}.pt"), "ck/{step}.pt", (), "step"),
        (files("g_{n:08d}", "do_{n:08d}"), "./g_{step}", ("do_{step}",), "step"),
        (files("w_{n}.npz", "opt_{n}.npz"), "./w_{step}.npz", ("opt_{step}.npz",), "step"),
        (files("runs/seed42/lr0.001/ckpt_{n}.pt"), "runs/seed42/lr0.001/ckpt_{step}.pt", (), "step"),
        (files("runs/Nov27_21-08-42_host/m_{n}.pt"), "runs/Nov27_21-08-42_host/m_{step}.pt", (), "step"),
        (files("c/epoch={k}-val_loss=0.{n}.ckpt"), "c/epoch={epoch}-val_loss=*.ckpt", (), "epoch"),
        (files("c/epoch={k}-step={n}.ckpt"), "c/epoch={epoch}-step={step}.ckpt", (), "step"),
        (
            files("m/lora-{n:06d}.safetensors", "m/lora-{n:06d}-state/a.bin", "m/lora-{n:06d}-state/b.pkl"),
            "m/lora-{step}-state",
            ("lora-{step}.safetensors",),
            "step",
        ),
        (
            files("tf/model.ckpt-{n}.data-00000-of-00001", "tf/model.ckpt-{n}.index"),
            "tf/model.ckpt-{step}.data-00000-of-00001",
            ("model.ckpt-{step}.index",),
            "step",
        ),
        (
            files("ck/model_{n}-rank0.pt", "ck/model_{n}-rank1.pt"),
            "ck/model_{step}-rank0.pt",
            ("model_{step}-rank*.pt",),
            "step",
        ),
        (files("ck/last.pt"), "ck/last.pt", (), ""),
        (files("study.db"), "./study.db", (), ""),
        (files("out/a.pt", "out/b.pt", "out/iter.txt"), "out/a.pt", ("b.pt", "iter.txt"), ""),
        (files("c/best-epoch={k}.ckpt", "c/last.ckpt"), "c/last.ckpt", (), ""),
        (files("c/best-epoch={k}.ckpt"), "c/best-epoch={epoch}.ckpt", (), "epoch"),
    ],
)
def test_names_are_written_as_a_config_has_them(
    save: Save, where: str, also: tuple[str, ...], counts: str
) -> None:
    found = seen(save)

    assert (f"{found.folder}/{found.pattern}", found.also, found.counts) == (where, also, counts)
    assert len(found.saves) == 4


@pytest.mark.parametrize(
    ("names", "sentinel"),
    [
        (("model.safetensors", "optimizer.bin", "trainer_state.json"), "trainer_state.json"),
        (("__0_0.distcp", "__1_0.distcp", ".metadata"), ".metadata"),
        (("CKPT.txt", "model.ckpt", "optimizer.ckpt"), "optimizer.ckpt"),
        ((*tuple(f"shard_{number:05d}.bin" for number in range(200)), "index.json"), "index.json"),
        (("mp_rank_00/state.pt", "mp_rank_01/state.pt"), ""),
        (("all.pt",), ""),
    ],
)
def test_the_file_that_is_always_written_last_is_the_sentinel(names: tuple[str, ...], sentinel: str) -> None:
    found = seen(files(*(f"ck/step-{{n}}/{name}" for name in names)))

    assert (found.folder, found.pattern, found.is_folder) == ("ck", "step-{step}", True)
    assert found.sentinel == sentinel


def test_a_folder_that_is_renamed_into_place_needs_no_sentinel() -> None:
    def save(made: Recorder, step: int, number: int) -> None:
        draft = f"ck/{step}.orbax-checkpoint-tmp-17642"
        for name in ("params/a", "params/b", "_METADATA"):
            made.write(f"{draft}/{name}", state(step))
        made.move(draft, f"ck/{step}", is_folder=True)

    found = seen(save)

    assert (found.folder, found.pattern, found.is_renamed, found.sentinel) == ("ck", "{step}", True, "")
    begun = recorded(save, 1).recording.changes[0]
    assert begins_save(found, begun)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ck/latest", "step-{n}"),
        ("ck/latest.txt", "{n}"),
        ("ck/last_checkpoint", "/home/someone/ck/step-{n}"),
        ("ck/checkpoint", 'model_checkpoint_path: "step-{n}"'),
    ],
)
def test_a_text_that_names_the_newest_is_a_pointer(name: str, text: str) -> None:
    def save(made: Recorder, step: int, number: int) -> None:
        made.write(f"ck/step-{step}/state.pt", state(step))
        made.write(name, text.format(n=step))

    assert beside(seen(save)) == {(name, "pointer")}


def test_links_copies_and_the_best_are_told_apart() -> None:
    def save(made: Recorder, step: int, number: int) -> None:
        made.write(f"ck/n_{step}.pt", state(step))
        made.write("ck/latest.pt", state(step))
        made.delete("ck/hard.pt")
        made.hard_link("ck/hard.pt", state(step))
        made.link("ck/newest", f"n_{step}.pt")
        if number in (1, 3):
            made.write("ck/best.pt", state(step))

    assert beside(seen(save)) == {
        ("ck/latest.pt", "copy"),
        ("ck/hard.pt", "copy"),
        ("ck/newest", "link"),
        ("ck/best.pt", "best"),
    }


@pytest.mark.parametrize(
    "others",
    [
        files("samples/{n:06d}.png", "samples/{n:06d}.npy"),
        files("plots/{n}.svg"),
        files("logs/epoch_{n}.json"),
        files("out/fake_{n}.npz"),
    ],
)
def test_what_is_produced_beside_numbered_checkpoints_is_none(others: Save) -> None:
    def save(made: Recorder, step: int, number: int) -> None:
        others(made, step, number)
        made.write(f"out/net_{step}.pt", state(step, 50_000))

    found = seen(save)

    assert (found.folder, found.pattern, found.also) == ("out", "net_{step}.pt", ())


def test_numbered_samples_beside_a_state_that_is_overwritten_are_no_checkpoints() -> None:
    found = seen(files("samples/sample_{n}.npy", "model.pt", "meta.json"))

    assert (found.pattern, found.also, found.is_in_place) == ("model.pt", ("meta.json",), True)


@pytest.mark.parametrize(
    "name",
    [
        "save/CKPT+2026-11-27+21-0{k}-11+00/model.ckpt",
        "out/20261127_2108{n}/ckpt.pt",
        "out/model_17642777{n}.pt",
        "out/2026-11-2{k}.pt",
    ],
)
def test_a_date_in_a_name_is_no_step(name: str) -> None:
    found = seen(files(name))

    assert found.saves == ()
    assert len(found.others) == 1


def test_two_names_in_turn_are_no_pair() -> None:
    def save(made: Recorder, step: int, number: int) -> None:
        made.write(f"ck/slot{number % 2}.pt", state(step))

    found = seen(save, 6)

    assert found.also == ()
    assert len(found.saves) == 3


def test_how_many_are_kept_and_when_the_old_ones_go_is_seen() -> None:
    def after(made: Recorder, step: int, number: int) -> None:
        made.write(f"ck/n_{step}.pt", state(step))
        made.after(0.02)
        made.delete(f"ck/n_{step - 40}.pt")

    def before(made: Recorder, step: int, number: int) -> None:
        made.delete(f"ck/n_{step - 20}.pt")
        made.after(0.05)
        made.write(f"ck/n_{step}.pt", state(step))

    assert (seen(after).kept, seen(after).deletes_first) == (2, False)
    assert (seen(before).kept, seen(before).deletes_first) == (1, True)
    assert (seen(files("n_{n}.pt")).kept, seen(files("n.pt")).kept) == (None, 1)


def test_a_save_that_failed_once_is_no_checkpoint() -> None:
    def save(made: Recorder, step: int, number: int) -> None:
        if number == 2:
            made.begin(f"ck/n_{step}.pt")
        made.write(f"ck/n_{step}.pt", b"" if number == 2 else state(step))

    assert seen(save).numbers == [20, 60, 80]


def test_what_was_cut_off_by_the_kill_is_no_checkpoint() -> None:
    made = recorded(files("ck/n_{n}.pt"))
    made.recording.killed_s = made.now_s - 0.001

    assert saves_seen(made.recording).numbers == [20, 40, 60]


def test_a_draft_that_is_written_again_before_it_is_renamed_is_none() -> None:
    def save(made: Recorder, step: int, number: int) -> None:
        made.write("model.pt.tmp", state(1))
        made.after(0.2)
        made.write("model.pt.tmp", state(step))
        made.move("model.pt.tmp", "model.pt", state(step))

    found = seen(save)

    assert (found.pattern, found.is_renamed, len(found.saves)) == ("model.pt", True, 4)
    assert found.save_s > 0.2


@pytest.mark.parametrize(
    "folder", ["runs/2026-11-28_01-02-03_calm-fox-3", "runs/2026-11-27_22-10-11_brisk-owl-70"]
)
def test_saves_of_a_later_start_are_known_in_a_folder_of_another_name(folder: str) -> None:
    known = seen(files("runs/2026-11-27_21-08-42_deft-elk-12/ckpt_{n}.pt"))
    later = recorded(files(f"{folder}/ckpt_{{n}}.pt", f"{folder}/other_{{n}}.bin"), 2)

    assert [save.path for save in saves_like(known, later.recording)] == [
        f"{folder}/ckpt_20.pt",
        f"{folder}/ckpt_40.pt",
    ]


def test_names_with_line_breaks_or_escape_codes_are_no_checkpoints() -> None:
    found = seen(files("a\nb\x1b[31m_{n}.pt", "ckpt_{n}.pt"))

    assert (found.pattern, found.also) == ("ckpt_{step}.pt", ())


def test_saves_of_several_fixed_names_are_complete_with_all_of_them() -> None:
    known = seen(files("out/last/model.bin", "out/last/optimizer.bin", "out/last/state.json"))
    later = recorded(files("out/last/model.bin", "out/last/optimizer.bin", "out/last/state.json"), 2)
    later.after(2)
    later.write("out/last/model.bin", state(7))

    found = saves_like(known, later.recording)

    assert (known.pattern, known.also) == ("model.bin", ("optimizer.bin", "state.json"))
    assert [len(save.members) for save in found] == [3, 3]


def test_a_folder_that_lacks_what_the_others_have_is_not_complete() -> None:
    names = [f"ck/step_{{n}}/rank_{rank}/state.pt" for rank in range(3)]
    known = seen(files(*names))
    later = recorded(files(*names), 2)
    later.after(2)
    later.write("ck/step_60/rank_0/state.pt", state(7))

    assert [save.number for save in saves_like(known, later.recording)] == [20, 40]


def test_a_state_that_is_just_being_written_over_is_still_known() -> None:
    made = recorded(files("ck/last.pt"), 3)
    made.after(2)
    made.begin("ck/last.pt")

    assert len(saves_seen(made.recording).saves) == 3


def test_a_file_that_is_open_until_the_end_is_no_checkpoint() -> None:
    made = Recorder()
    made.begin("events.bin")
    made.after(20)
    made.recording.asked_s = made.recording.ended_s = made.now_s
    made.write("events.bin", state(1))

    assert saves_seen(made.recording).saves == ()
