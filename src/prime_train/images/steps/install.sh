#!/bin/sh
# Installs the agent and the trainer's environment while an image is built: sh install.sh CONTEXT TARGET
#
# Each goes into a folder that is named after the hash of what it was installed from. With SOURCE_DATE_EPOCH, two builds from the same files
# give the same bytes.
set -eu
# What Python compiles by itself contains the times of files, which pip sets as it goes.
LC_ALL=C PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
export LC_ALL PYTHONHASHSEED PYTHONDONTWRITEBYTECODE
umask 022

main() {
  context=$1 target=$2
  python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || {
    echo "the base image needs Python 3.11 or later with venv; choose another image.base, or add its packages to image.packages" >&2
    exit 1
  }
  mkdir -p "$target"
  install_agent
  if [ -d "$context/environment" ]; then
    install_environment
  fi
  cp "$context/start.sh" "$target/start.sh"
  find "$target" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

install_agent() {
  begin agent
  make_venv
  pip -r "$made/files/runtime.txt" --require-hashes
  pip --no-deps "$made"/files/*.whl
  end
}

install_environment() {
  begin environment
  for requirements in "$made"/files/requirements-*.txt; do
    [ -e "$requirements" ] || continue
    [ -e "$made/venv" ] || make_venv
    set -- "$@" -r "$requirements"
  done
  [ $# -eq 0 ] || pip --require-hashes "$@"
  end
}

begin() {
  made=$target/$1-$(cd "$context/$1" && sha256sum -- * | sha256sum | cut -c 1-16)
  mkdir "$made"
  cp -R "$context/$1" "$made/files"
}

make_venv() {
  python3 -m venv "$made/venv"
  # That of pip was compiled in spite of this.
  find "$made/venv" -name __pycache__ -prune -exec rm -rf {} +
}

pip() {
  "$made/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-cache-dir --no-compile "$@"
}

# The user that runs the image may not write here, so everything is compiled now, without the times of files.
end() {
  if [ -e "$made/venv" ]; then
    # Files that are meant for another Python cannot be compiled, and are not needed then.
    "$made/venv/bin/python" -m compileall -q -f --invalidation-mode unchecked-hash "$made/venv/lib" >/dev/null || :
  fi
  cd "$made"
  set -- files
  [ ! -e venv ] || set -- files venv
  find "$@" -type f -print0 | sort -z | xargs -0 sha256sum >sums
  find "$@" -type l -printf '%p -> %l\n' | sort >links
  cd /
}

main "$@"
