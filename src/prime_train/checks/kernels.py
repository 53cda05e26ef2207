"""Rules about packages whose installation compiles CUDA kernels (TR462 to TR465): the compiler, the torch,
and the GPUs compiled for.
"""

from collections.abc import Iterator

from prime_train.estimate import gpus
from prime_train.spec.config_format import words
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.spec.tree import Path
from prime_train.trainers.conventions.kernels import (
    CAPABILITIES,
    SETUPTOOLS,
    Install,
    brings_compiler,
    covers,
    has_compiler,
    installs,
)

TOPIC = "kernels"
_LIST = "TORCH_CUDA_ARCH_LIST"
_DEVEL = (
    "start from an image whose tag says devel, such as pytorch/pytorch:...-devel with its digest, or begin "
    "setup with apt-get install -y nvidia-cuda-toolkit, of the CUDA version that torch was built for"
)


RULES = Rules(TOPIC, requires="spec")


def _installs(subject: Subject) -> Iterator[tuple[int, Install]]:
    for at, command in enumerate(subject.spec.setup if subject.spec is not None else ()):
        for install in installs(words(command)):
            yield at, install


def _bare_image(subject: Subject) -> tuple[Path, str] | None:
    """Return the image without nvcc that the run starts from, with its place; None if there is none, or its
    name does not tell.
    """
    spec = subject.spec
    if spec is None:
        return None
    packages = spec.image.packages if spec.image is not None else ()
    if brings_compiler((*spec.setup, *packages)):
        return None
    named = spec.hardware.image
    if named is not None and has_compiler(named) is not None:
        return None if has_compiler(named) else (("hardware", "image"), named)
    # What the image of the config is built from is known even if a template hides it.
    if spec.image is not None and has_compiler(spec.image.base) is False:
        return ("image", "base"), spec.image.base
    return None


def _no_compiler(subject: Subject, *, is_sure: bool) -> Iterator[Violation]:
    bare = _bare_image(subject)
    found = [install.kernels.package for _, install in _installs(subject) if install.is_sure is is_sure]
    if bare is not None and found:
        path, image = bare
        may = "compiles" if is_sure else "compiles, where no wheel of its maker's fits,"
        yield Violation(
            path,
            f"{found[0]}, which setup installs, {may} CUDA kernels, and {image[:80]} has no nvcc",
            _DEVEL,
        )


@RULES.warning(
    "TR464",
    "kernels built without the installed torch",
    why="The build imports torch and fails without it, or is made for another torch than the installed one, "
    "and cannot be imported.",
    fix="install torch first, and add --no-build-isolation",
)
def isolated(subject: Subject) -> Iterator[Violation]:
    for at, install in _installs(subject):
        name = install.kernels.package
        if install.is_isolated and install.kernels.isolated_fails:
            fix = (
                f"write: pip install '{SETUPTOOLS}' wheel packaging ninja && pip "
                "install "
                f"--no-build-isolation {name}, after torch"
            )
            yield Violation(
                ("setup", at),
                f"{name} is built in an environment of pip's own, without the torch that it is for",
                fix,
                word=name,
            )


@RULES.error(
    "TR465",
    "kernels for other GPUs than those that may be rented",
    why="The first call fails: no kernel image is available for execution on the device.",
    fix="name the compute capability of each kind in hardware.gpus",
)
def other_gpus(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    listed = spec.environment.get(_LIST, "") if spec is not None else ""
    if spec is None or not listed:
        return
    known = {
        kind: found
        for kind in spec.hardware.gpus
        if (found := CAPABILITIES.get(gpus.plain(gpus.family(kind)))) is not None
    }
    left_out = [kind for kind, capability in known.items() if covers(listed, capability) is False]
    if left_out:
        wanted = ";".join(f"{major}.{minor}" for major, minor in sorted(set(known.values())))
        which = f"{left_out[0]} needs {'.'.join(map(str, known[left_out[0]]))}"
        yield Violation(
            ("environment", _LIST),
            f"{_LIST}={listed[:60]} has no code for a GPU that may be rented: {which}",
            f'write "{wanted}"',
        )


RULES.error(
    "TR462",
    "kernels to compile, and no compiler",
    why="The set-up fails, or installs a package without its kernels, on a machine that is already paid for.",
    fix=_DEVEL,
)(lambda subject: _no_compiler(subject, is_sure=True))
RULES.warning(
    "TR463",
    "kernels that may have to be compiled, and no compiler",
    why="The package looks for a wheel for exactly this torch, CUDA and Python. Where there is none, the "
    "set-up fails on a machine that is already paid for.",
    fix=_DEVEL,
)(lambda subject: _no_compiler(subject, is_sure=False))
