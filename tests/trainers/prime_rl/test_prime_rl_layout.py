"""Which GPUs serve inference and on which ports, derived from prime-rl's configuration."""

import pytest

from prime_train.trainers.prime_rl.layout import Layout, layout

SERVED = "[inference]\n"


def found(config: str, *overrides: str, visible: str | None = None, count: int = 8) -> Layout:
    return layout(config, overrides, count=count, visible=visible)


def test_inference_has_the_first_gpus_and_a_port_of_its_own_above_the_front() -> None:
    config = "[deployment]\nnum_train_gpus = 4\nnum_infer_gpus = 2\n[inference.server]\nport = 9000\n"
    assert found(config) == Layout((0, 1), (9100, 9000))


def test_what_is_not_reported_has_its_defaults() -> None:
    assert found(SERVED) == Layout((0,), (8100, 8000))


@pytest.mark.parametrize("words", [("--deployment.num-infer-gpus", "3"), ("--deployment.num_infer_gpus=3",)])
def test_arguments_outrank_the_file(words: tuple[str, ...]) -> None:
    assert found(
        SERVED + "[deployment]\nnum_infer_gpus = 1\n", "--clean", *words, "--inference.server.port=8200"
    ).gpus == (0, 1, 2)


def test_the_engines_port_can_be_named() -> None:
    assert found("[inference.deployment]\nbackend_port = 8600\n").ports == (8600, 8000)


def test_gpus_that_are_made_visible_are_counted_in_their_order() -> None:
    config = SERVED + "[deployment]\nnum_infer_gpus = 2\nnum_train_gpus = 1\n"
    assert found(config, visible="6,4, 7").gpus == (6, 4)


@pytest.mark.parametrize("visible", ["GPU-8a7b,GPU-1c2d", "0", "", "0,,1", "0,-1", "9999999999,1"])
def test_gpus_that_cannot_be_distinguished_are_not_known(visible: str) -> None:
    assert found(SERVED, visible=visible) == Layout((), (8100, 8000))


def test_one_gpu_for_both_is_no_gpu_for_inference() -> None:
    assert found(SERVED, count=1) == Layout((), (8100, 8000))
    assert found(SERVED + "[deployment]\nnum_infer_gpus = 0\n").gpus == ()


@pytest.mark.parametrize(
    "config",
    [
        "",
        "[model]\nname = 'a'\n",
        "inference = 'None'\n",
        "[inference]\n[deployment]\ntype = 'multi_node'\n",
        "this is no TOML",
        "a = " + "[" * 5000,
    ],
)
def test_where_no_server_is_started_here_or_nothing_is_understood_nothing_is_known(config: str) -> None:
    assert found(config) == Layout()


def test_a_further_file_may_say_anything_so_nothing_is_known() -> None:
    assert found(SERVED, "@", "overlay.toml") == Layout()


@pytest.mark.parametrize("port", ["0", "65500", "true", "'x'", "-1", "8000.0", "[1]"])
def test_a_port_that_is_none_is_not_known(port: str) -> None:
    assert found(f"[inference.server]\nport = {port}\n") == Layout((0,), ())
