"""The steps of a build, carried out in a folder in place of a container: no builder, registry or package
index is needed.
"""

import hashlib
import os
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

from prime_train.spec.image_contents import digest_of, environment_files
from prime_train.spec.spec import ImageSpec

STEPS = Path(__file__).resolve().parents[2] / "src" / "prime_train" / "images" / "steps"
EPOCH_S = "315532800"


def wheel(folder: Path, name: str, files: Mapping[str, str], *, script: str = "") -> str:
    """Write a wheel with these modules, and return its hash. `script`: a program that it installs, as `name =
    module:function`.
    """
    about = f"{name}-1.dist-info"
    content = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{about}/entry_points.txt": f"[console_scripts]\n{script}\n"} if script else {}),
        f"{about}/RECORD": "",
    }
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in content.items():
            archive.writestr(zipfile.ZipInfo(inside, (1980, 1, 1, 0, 0, 0)), text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_context(folder: Path) -> Path:
    """Write a build context with a small agent and a small environment."""
    agent, environment, index = (folder / name for name in ("agent", "environment", "index"))
    for made in (agent, environment, index):
        made.mkdir(parents=True)
    wheel(agent, "small_agent", {"small_agent.py": "VALUE = 1\n"})
    (agent / "runtime.txt").write_text("")
    digest = wheel(
        index,
        "small_trainer",
        {"small_trainer.py": "def main():\n    print('trained')\n"},
        script="train = small_trainer:main",
    )
    requirements = f"--find-links {index}\nsmall_trainer==1 --hash=sha256:{digest}\n"
    for name, content in environment_files(
        ImageSpec(requirements=("any.txt",)), lambda _: requirements.encode()
    ).items():
        (environment / name).write_bytes(content)
    (folder / "start.sh").write_bytes((STEPS / "start.sh").read_bytes())
    return folder


def install(context: Path, target: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Carry out the step of the build that installs."""
    # Nothing is looked for in an index.
    variables = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH_S, "PIP_NO_INDEX": "1", **environment}
    words = ["sh", str(STEPS / "install.sh"), str(context), str(target)]
    return subprocess.run(words, env=variables, capture_output=True, text=True, check=False)


def digest_of_folder(folder: Path) -> str:
    return digest_of({path.name: path.read_bytes() for path in folder.iterdir()})
