# Gives this machine to one attempt at a time: sh -s -- look|take|end ...
#
# It comes by standard input, over a connection that may end at any byte. So all of it is functions, and only the last line does anything:
# half a script does nothing. Whatever it is asked may be asked again, after any part of it was done, and by two control planes at once.
#
#   ~/.prime-train/host/MACHINE.taken   who has the machine: POD_ID NAME SECOND BOOT, written at once or not at all
#   ~/.prime-train/host/MACHINE.lock    held by who changes that
#
# MACHINE is in the names because several machines may share a home folder. BOOT tells whether the machine has started again since.
# The last line tells the state of the machine. Exit codes: 75 later perhaps, 78 never on this machine; the last line then says why.

LOCK_S_MAX=10
INSTALL_S_MAX=40
ROUNDS_MAX=100

later() { echo "$1"; exit 75; }
never() { echo "$1"; exit 78; }

main() {
  verb=$1
  shift
  root=$HOME/.prime-train
  taken=$root/host/$(uname -n).taken
  umask 077
  case $verb in
    look) ;;
    take) take "$@" ;;
    end) end "$@" ;;
  esac
  look
}

boot() { cat /proc/sys/kernel/random/boot_id; }

look() {
  if [ -s "$taken" ]; then
    echo "machine taken $(cat "$taken") $(boot) end"
  else
    echo "machine free end"
  fi
}

lock() {
  for tool in flock setsid nohup gzip od; do
    command -v "$tool" >/dev/null || never "there is no $tool on this machine"
  done
  [ -r /proc/sys/kernel/random/boot_id ] || never "this machine does not tell when it was started"
  mkdir -p "$root/host" || never "$root/host cannot be made"
  exec 9>"${taken%.taken}.lock"
  flock -w "$LOCK_S_MAX" 9 || later "somebody else is just taking or ending this machine"
}

# take POD_ID NAME SECOND
take() {
  lock
  if [ ! -s "$taken" ]; then
    echo "$1 $2 $3 $(boot)" >"$taken.new" && mv "$taken.new" "$taken" || never "$taken cannot be written to"
  fi
}

# end POD_ID ATTEMPT: kill the attempt's processes, delete its files, and only then give the machine to others.
end() {
  lock
  if [ ! -s "$taken" ] || [ "$(cut -d ' ' -f 1 "$taken")" != "$1" ]; then
    return
  fi
  attempt=$2 folder=$root/$2
  exec 8>"$root/lock"
  flock -w "$INSTALL_S_MAX" 8 || later "an agent is just being installed on this machine"
  disk=$(cat "$folder/disk" 2>/dev/null)
  # As the agent marks what it starts: with the CRC-32 of its disk's path, which is at the end of what gzip makes of it. So an attempt of the
  # same name that works in another folder, for another control plane, is left alone.
  place=$(printf %s "$disk" | gzip -c | tail -c 8 | od -An -N 4 -t x4 | tr -d ' ')
  kill_all || later "processes of $attempt cannot be killed"
  case $disk in
    */prime-train/"$attempt") rm -rf -- "$disk" || later "$disk cannot be deleted" ;;
  esac
  rm -rf -- "$folder" || later "$folder cannot be deleted"
  rm -f "$taken"
}

kill_all() {
  rounds=0
  while pids=$(mine) && [ -n "$pids" ]; do
    [ "$rounds" -lt "$ROUNDS_MAX" ] || return 1
    kill -s KILL $pids 2>/dev/null
    rounds=$((rounds + 1))
    sleep 0.05
  done
}

# The agent, and whoever has just started to become it, has the ticket's path as an argument; its children, and theirs, have a mark in their
# environment. A process that has ended has neither.
mine() {
  {
    grep -lszxF -e "$folder/ticket.json" /proc/[0-9]*/cmdline
    grep -lszE -e "^PRIME_TRAIN_CHILD=$attempt-$place/" /proc/[0-9]*/environ
  } | cut -d / -f 3 | sort -u
}

main "$@"; exit
