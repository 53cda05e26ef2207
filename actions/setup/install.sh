#!/usr/bin/env bash
# Installs prime-train, as it lies two folders above this file, into a virtual environment of its own: $RUNNER_TEMP/prime-train.
# With the word `watcher`, what a watcher needs in addition comes along: the package of W&B.
#
# Everything fetched is pinned and checked against hashes. Doing it twice does it once. The Python, the virtual environment and the
# settings of uv and pip that the caller's other steps use are neither read nor changed, but for where packages are fetched from.
set -euo pipefail

die() {
  printf '::error title=prime-train::%s\n' "$1"
  exit 2
}

: "${RUNNER_TEMP:?is set by the runner}"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
venv=$RUNNER_TEMP/prime-train
stamp=$venv/.installed

pins=${1:-runtime}
wanted=$("$root/actions/setup/fingerprint.sh")
# What a watcher needs is enough for everything else.
if [ -f "$stamp" ] && { [ "$(cat "$stamp")" = "$wanted watcher" ] || [ "$(cat "$stamp")" = "$wanted $pins" ]; }; then
  echo "prime-train of these very files is installed already"
  exit 0
fi

# What a caller's workflow may have set for its own project; in this process only.
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH PIP_CONSTRAINT PIP_PREFIX PIP_REQUIRE_VIRTUALENV PIP_TARGET PIP_USER \
  UV_BUILD_CONSTRAINT UV_CONSTRAINT UV_EXCLUDE_NEWER UV_NO_VERIFY_HASHES UV_OVERRIDE UV_PROJECT_ENVIRONMENT UV_PYTHON UV_SYSTEM_PYTHON
# Nothing in the caller's repository, neither a uv.toml nor a venv.py, is read.
cd "$root"
rm -rf "$venv"

echo "::group::Install prime-train"
pinned=(-r "requirements/$pins.txt" -r requirements/build.txt)
if command -v uv >/dev/null; then
  uv venv --quiet --no-config --python '>=3.11' "$venv"
  uv pip install --no-config --python "$venv/bin/python" --require-hashes "${pinned[@]}"
  # uv compiles nothing. What each verb loads is compiled while prime-train is built, rather than when the verb is run; it does without, too.
  site=("$venv"/lib/python3.*/site-packages)
  "$venv/bin/python" -I -m compileall -q \
    "${site[0]}"/{charset_normalizer,idna,pydantic,pydantic_core,requests,typer,typing_extensions.py,typing_inspection,urllib3,yaml} &
  compiling=$!
  uv pip install --no-config --python "$venv/bin/python" --no-deps --no-build-isolation .
  wait "$compiling" || true
else
  python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    die 'prime-train needs uv, or a python3 of 3.11 or later; this runner has neither. Put astral-sh/setup-uv or actions/setup-python before it.'
  python3 -I -m venv "$venv"
  "$venv/bin/python" -I -m pip install --disable-pip-version-check --quiet --require-hashes "${pinned[@]}"
  "$venv/bin/python" -I -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation .
fi
echo "::endgroup::"

# A folder with nothing but the command: on a PATH, it hides no python.
mkdir "$venv/command"
ln -s ../bin/prime-train "$venv/command/prime-train"
echo "$wanted $pins" >"$stamp"
