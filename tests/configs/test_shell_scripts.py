"""Which command a shell script starts a training with, by its text alone."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.spec.shell_scripts import (
    CHARS_MAX,
    COMMAND_CHARS_MAX,
    inline_script,
    script_named,
    training_command,
)
from tests.core.given import PROPERTY


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("python train.py --a 1", "python train.py --a 1"),
        ("set -x\npython train.py \\\n    --a 1 \\\n    --b 2 $@\n", "python train.py --a 1 --b 2"),
        ("MODEL=Qwen/Qwen3-8B\npython t.py --m $MODEL", "python t.py --m Qwen/Qwen3-8B"),
        ("N=${N:-8}\ntorchrun --nproc_per_node=$N t.py", "torchrun --nproc_per_node=8 t.py"),
        ("A=1\nB=${A}2\npython t.py x=${B}", "python t.py x=12"),
        ("export A='$B'\nB=1\npython t.py '$B' $A", "python t.py '$B' '$B'"),
        ("python t.py $HOME/data ${UNKNOWN}", "python t.py '$HOME/data' '${UNKNOWN}'"),
        ('D=(\n  a=1\n  # b=2\n  c=3\n)\npython -m v "${D[@]}" d=4', "python -m v a=1 c=3 d=4"),
        ("D=(a=1)\nD+=(b=2)\npython -m v ${D[@]}", "python -m v a=1 b=2"),
        ("T=\"['$X', 'b']\"\npython t.py f=\"$T\"", "python t.py 'f=['\"'\"'$X'\"'\"', '\"'\"'b'\"'\"']'"),
        ("if [ $1 = a ]; then\n  M=x\nelse\n  M=y\nfi\npython t.py $M", "python t.py x"),
        ("CUDA_VISIBLE_DEVICES=0,1 \\\nswift sft --model a", "CUDA_VISIBLE_DEVICES=0,1 swift sft --model a"),
        ("export NPROC_PER_NODE=2\nswift sft --model a", "NPROC_PER_NODE=2 swift sft --model a"),
        ("nohup srun python t.py --a 1 > log.txt 2>&1 &", "python t.py --a 1"),
        ("python t.py --data a#1 # not this", "python t.py --data 'a#1'"),
        ("pip install x\npython prepare.py\npython t.py --a 1 --b 2", "python t.py --a 1 --b 2"),
    ],
)
def test_the_command_is_found_as_a_shell_would_run_it(text: str, command: str) -> None:
    found = training_command(text)
    assert found is not None
    assert shlex.split(found.text) == shlex.split(command)


@pytest.mark.parametrize("text", ["", "echo python", "cp a b\nls", "# python t.py", "'", "A=(", 'A="x'])
def test_a_script_that_starts_no_training_has_no_command(text: str) -> None:
    assert training_command(text) is None


def test_arguments_are_those_of_the_command_that_starts_the_script() -> None:
    named = script_named("FOO=1 bash -x run.sh 4 out more=1")
    assert named == ("run.sh", ("4", "out", "more=1"))
    found = training_command('python t.py n=$1 o=${2:-x} "$@"', named[1])
    assert found is not None
    assert found.text == "python t.py n=4 o=out 4 out more=1"
    assert found.hands_on
    assert script_named("python run.py run.sh") is None
    assert script_named("bash run.sh && rm -r x") is None


def test_a_script_in_the_command_itself_is_read_too() -> None:
    assert inline_script("exec bash -lc 'cd x\npython t.py'") == "cd x\npython t.py"
    assert inline_script("bash run.sh") is None
    assert inline_script("bash -c") is None


def test_the_line_of_the_command_is_known() -> None:
    found = training_command("#!/bin/bash\n\nA=1\npython t.py \\\n  --a 1\n")
    assert found is not None
    assert found.line == 4
    assert not found.hands_on


def test_variables_that_grow_without_end_are_cut() -> None:
    bomb = "A0=" + "x" * 500 + "".join(f"\nA{n + 1}={'$A' + str(n)}{'$A' + str(n)}" for n in range(60))
    found = training_command(f"{bomb}\npython t.py {'$A60 ' * 50}")
    assert found is None or len(found.text) <= COMMAND_CHARS_MAX


@given(st.text(alphabet="ab$={}()'\"\\\n #@-:python.sh;", max_size=300))
@PROPERTY
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = training_command(text)
    assert found is None or len(found.text) <= COMMAND_CHARS_MAX
    assert script_named(text) is None or script_named(text)
    assert inline_script(text) is None or text


def test_no_more_of_a_script_is_read_than_a_limit() -> None:
    assert training_command("#" * CHARS_MAX + "\npython t.py") is None
