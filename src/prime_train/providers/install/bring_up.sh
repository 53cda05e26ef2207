# Brings the agent up on this machine: sh -s -- look|up ATTEMPT DIGEST PYTHON IMAGE DISK...
# Or, as the first process of a container, becomes the agent: sh bring_up.sh first - DIGEST PYTHON IMAGE TICKET FILES DISK
# Or, where a task of another tool runs, becomes a run's whole control plane: sh bring_up.sh alone - DIGEST PYTHON IMAGE FILES DISK
#
# By SSH it comes by standard input, over a connection that may end at any byte. So all of it is functions, and only the last line does anything:
# half a script does nothing. Whatever it is asked may be asked again, after any part of it was done, and by two at once.
#
#   ~/.prime-train/files-DIGEST/    a wheel and the pins of what it depends on; each is there whole or not at all
#   ~/.prime-train/venv-DIGEST/     a Python of our own, away from the user's; `whole` is written last
#   ~/.prime-train/ATTEMPT/         ticket.json, pid, disk (where the agent works), agent.out (what it printed)
#   ~/.prime-train/lock             held by who installs or starts; the agent does not inherit it
#
# PYTHON: one that has the agent already; empty: install it, unless the folder IMAGE, which is part of an image that prime-train has built,
# has just this agent, every file as it was built. Exit codes: 75 later perhaps, 78 never on this machine. The last line says why.

LOCK_S_MAX=5
START_TENTHS_MAX=300
# An archive of one version, which is unpacked only if it has this hash; statically linked, so that it runs with any C library.
UV_ARCHIVES=https://github.com/astral-sh/uv/releases/download/0.12.5
UV_SHA256_x86_64=a4742988791c9aeae68c78150d6cba762062ad2a47e53738c2779d2b596bfcdb
UV_SHA256_aarch64=8767a0e77f2cd45436401b1b42bf7e9ed5a4a91a74a5305d6fe93249d0f6dbc5
IS_NEW_ENOUGH='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'

later() { echo "$1"; exit 75; }
never() { echo "$1"; exit 78; }

main() {
  verb=$1 attempt=$2 digest=$3 python=$4 image=$5/agent-$3
  shift 5
  root=$HOME/.prime-train
  folder=$root/$attempt files=$root/files-$digest venv=$root/venv-$digest
  mask=$(umask)
  umask 077
  case $verb in
    look) look ;;
    up) up "$@" ;;
    first) first "$@" ;;
    alone) alone "$@" ;;
  esac
}

# A container's end is announced by a signal to its first process, which therefore has to be the agent, and not a shell that waits for it.
# FILES is a folder with what look would have been sent; a wheel is in parts there, because a Secret has a largest size.
first() {
  ticket=$1
  install_from "$2" "$3"
  exec "$python" -I -m prime_agent.main --ticket "$ticket" --disk "$3/attempt"
}

alone() {
  install_from "$1" "$2"
  exec "$python" -I -m prime_train.interop.commands.machine "$1" "$2"
}

install_from() {
  parts=$1 root=$2/.prime-train
  files=$root/files-$digest venv=$root/venv-$digest
  if [ -n "$python" ]; then
    :
  elif is_in_image; then
    python=$image/venv/bin/python
  else
    mkdir -p "$files" || later "$files cannot be made"
    cat "$parts"/wheel.* >"$files/$(cat "$parts/wheel-name")" && cat "$parts/runtime.txt" >"$files/runtime.txt" ||
      later "$files cannot be written to"
    (install) || exit
    python=$venv/bin/python
  fi
  umask "$mask"
}

look() {
  if runs; then
    echo running
  elif [ -n "$python" ] || [ -e "$venv/whole" ] || is_in_image; then
    echo installed
  else
    echo bare
  fi
}

up() {
  for tool in flock setsid nohup; do
    command -v "$tool" >/dev/null || never "there is no $tool on this machine"
  done
  mkdir -p "$folder" || later "$folder cannot be made"
  exec 9>"$root/lock"
  flock -w "$LOCK_S_MAX" 9 || later "somebody else is just installing the agent there"
  if runs; then
    return
  fi
  if [ -z "$python" ] && is_in_image; then
    python=$image/venv/bin/python
  elif [ -z "$python" ]; then
    # In a shell of its own: the agent and what it starts keep the user's environment.
    (install) || exit
    python=$venv/bin/python
  fi
  choose_disk "$@"
  start
}

# Whether the agent of this attempt runs. A number may have gone to another process since; what that was started with tells.
runs() {
  pid=$(cat "$folder/pid" 2>/dev/null) && command_of "$pid" | grep -qF -e "--ticket $folder/ticket.json "
}

# Empty where there is no such process, where it has ended and only its parent does not know yet, and while it becomes another program.
command_of() { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null

has_ended() { [ ! -e "/proc/$1" ] || grep -qs '^State:.[ZX]' "/proc/$1/status"; }

# What it was installed from has the hash of what would be sent, each file has the hash of when the image was built, and there is no other.
is_in_image() {
  [ -s "$image/sums" ] && (
    cd "$image" &&
      [ "$(cd files && LC_ALL=C && export LC_ALL && sha256sum -- * | sha256sum | cut -c 1-16)" = "$digest" ] &&
      sha256sum --check --status --strict sums &&
      [ "$(find files venv -type f | wc -l)" -eq "$(wc -l <sums)" ] &&
      find files venv -type l -printf '%p -> %l\n' | LC_ALL=C sort | cmp -s - links
  )
}

install() {
  python=$venv/bin/python
  if [ -e "$venv/whole" ]; then
    return
  fi
  unset VIRTUAL_ENV PYTHONPATH PYTHONHOME
  rm -rf "$venv"
  PATH=$PATH:$HOME/.local/bin:$root/bin:$(image_path)
  system=$(new_enough)
  if command -v uv >/dev/null; then
    install_by_uv
  elif [ -n "$system" ]; then
    "$system" -m venv "$venv" || later "$system could make no venv"
    pip="$python -m pip install --quiet --disable-pip-version-check --no-input"
    $pip --require-hashes -r "$files/runtime.txt" && $pip --no-deps "$files"/*.whl || later "pip could not install the agent"
  else
    fetch_uv
    install_by_uv
  fi </dev/null
  : >"$venv/whole"
}

# The PATH that the image sets, which a session over SSH does not have. Its Python may be the only one, and images have not always a curl.
image_path() { tr '\0' '\n' </proc/1/environ | sed -n 's/^PATH=//p' | tail -n 1; } 2>/dev/null

# uv finds a Python that is new enough, or fetches one.
install_by_uv() {
  uv venv --quiet --python '>=3.11' "$venv" || later "uv could make no venv with Python 3.11 or later"
  pip="uv pip install --quiet --python $python"
  $pip --require-hashes -r "$files/runtime.txt" && $pip --no-deps "$files"/*.whl || later "uv could not install the agent"
}

new_enough() {
  for candidate in python3.13 python3.12 python3.11 python3; do
    if "$candidate" -c "$IS_NEW_ENOUGH" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

# An image of Ubuntu 22.04 has Python 3.10 and no uv.
fetch_uv() {
  has=$(python3 --version 2>/dev/null || echo "no Python")
  command -v curl >/dev/null || never "the agent needs uv, or Python 3.11 or later with venv; this machine has $has, and no curl to fetch uv"
  kind=$(uname -m)
  case $kind in
    x86_64) sum=$UV_SHA256_x86_64 ;;
    aarch64) sum=$UV_SHA256_aarch64 ;;
    *) never "the agent needs uv, or Python 3.11 or later with venv; this machine has $has, and a processor ($kind) for which no uv is known" ;;
  esac
  archive=$root/uv.tar.gz
  curl -LsSf --retry 3 --max-time 300 -o "$archive" "$UV_ARCHIVES/uv-$kind-unknown-linux-musl.tar.gz" ||
    later "this machine has $has and no uv, and uv could not be fetched"
  echo "$sum  $archive" | sha256sum --check --status || later "this machine has $has and no uv, and what was fetched as uv has another hash"
  mkdir -p "$root/bin" && tar -xzf "$archive" --strip-components 1 -C "$root/bin" && rm "$archive" ||
    later "this machine has $has, and uv could not be unpacked"
}

# The one with the most room; once chosen it stays, for there the agent finds what it has done.
choose_disk() {
  if [ ! -s "$folder/disk" ]; then
    best='' most_kib=-1
    for place in "$@"; do
      [ "$place" != '~' ] || place=$HOME
      [ -d "$place" ] && [ -w "$place" ] || continue
      free_kib=$(df -Pk "$place" | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4)
      if [ "$free_kib" -gt "$most_kib" ]; then
        best=$place most_kib=$free_kib
      fi
    done
    [ -n "$best" ] || never "none of $* is a folder that can be written to"
    echo "$best/prime-train/$attempt" >"$folder/disk.new" && mv "$folder/disk.new" "$folder/disk"
  fi
  disk=$(cat "$folder/disk")
  mkdir -p "$disk" || later "$disk cannot be made"
}

# The agent empties its lock file as soon as its program is loaded: so it has come up when what we wrote there is gone.
start() {
  rm -f "$folder/pid"
  echo starting >"$disk/agent.lock" || later "$disk cannot be written to"
  # The pid is written by the process itself, before it becomes the agent: no agent runs that the file does not name.
  (
    umask "$mask"
    exec setsid nohup sh -c 'echo $$ >"$0.new" && mv "$0.new" "$0" && exec "$@"' "$folder/pid" \
      "$python" -I -m prime_agent.main --ticket "$folder/ticket.json" --disk "$disk"
  ) </dev/null >>"$folder/agent.out" 2>&1 9>&- &
  tenths=0
  while [ -s "$disk/agent.lock" ]; do
    ! has_ended "$!" || later "the agent ended at once: $(tail -c 300 "$folder/agent.out")"
    [ "$tenths" -lt "$START_TENTHS_MAX" ] || later "the agent has not come up in $((START_TENTHS_MAX / 10)) s"
    tenths=$((tenths + 1))
    sleep 0.1
  done
}

main "$@"; exit
