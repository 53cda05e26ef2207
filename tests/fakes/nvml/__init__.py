"""NVIDIA's management library and CUDA's driver library as installed with a driver: a shared library,
controlled by a text file.

The real binding (`pynvml`), and whoever loads CUDA's, loads it in any process that has `Driver.env`. It is
built where there is a C compiler, on Linux.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "nvml.c"
LIBRARY = "libnvidia-ml.so.1"
CUDA_LIBRARY = "libcuda.so.1"
COMPILER = (
    next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    if sys.platform == "linux"
    else None
)


class Driver:
    """The state of the GPUs: `says` may be called at any time, and applies to the next call of the
    library.
    """

    def __init__(self, folder: Path, library: Path) -> None:
        self._file = folder / "gpus.txt"
        self._library = library
        self._lines: dict[str, str] = {}
        self._xids: list[str] = []
        self._write()

    @property
    def env(self) -> dict[str, str]:
        others = os.environ.get("LD_LIBRARY_PATH")
        path = os.pathsep.join([str(self._library.parent), *([others] if others else [])])
        return {"LD_LIBRARY_PATH": path, "FAKE_NVML": str(self._file)}

    def says(self, **lines: int | str | None) -> None:
        """Set values such as `count=1`, `gpu0_util=0`, `gpu1_power="E3"`; None: as at the start. The names
        are those of nvml.c.
        """
        for name, value in lines.items():
            at, _, figure = name.partition("_")
            key = f"{at.removeprefix('gpu')}.{figure}" if at.startswith("gpu") else name
            if value is None:
                self._lines.pop(key, None)
            else:
                self._lines[key] = str(value)
        self._write()

    def reports(self, gpu: int, xid: int) -> None:
        self._xids.append(f"xid {gpu} {xid}")
        self._write()

    def _write(self) -> None:
        draft = self._file.with_suffix(".new")
        draft.write_text(
            "".join(
                f"{line}\n"
                for line in [*(f"{key} {value}" for key, value in self._lines.items()), *self._xids]
            )
        )
        draft.replace(self._file)


def build(folder: Path) -> Path:
    """Build the library into this folder, and return its path."""
    assert COMPILER is not None, "there is no C compiler"
    made = folder / LIBRARY
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", made, SOURCE],
        check=True,
        timeout=120,
    )
    (folder / CUDA_LIBRARY).symlink_to(LIBRARY)
    return made
