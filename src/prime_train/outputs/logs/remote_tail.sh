# Says what the newest log of an attempt has, and goes on saying it: sh -s -- ATTEMPT LINES NAME INODE OFFSET
#
# One line a piece: NAME INODE OFFSET BASE64. OFFSET is where the piece begins in the file of that number; so whoever lost the connection can
# go on at the very byte. With INODE 0, the last LINES lines come first. A file that was rotated away is read to its end as NAME.1; another
# log that has begun (trainer.log after setup.log) is gone over to. A line `-` every few seconds says that it still looks.
#
# It ends with whoever listens: the next line it writes has nowhere to go. Where there is no agent or no log yet, it waits.

PIECE_BYTES=65536
LOOK_S=0.5
ALIVE_LOOKS=10

main() {
  attempt=$1 lines=$2 name=$3 inode=$4 offset=$5
  # At once, as soon as all is said that there is.
  looks=$ALIVE_LOOKS
  while :; do
    there && choose && look && continue
    looks=$((looks + 1))
    if [ "$looks" -ge "$ALIVE_LOOKS" ]; then
      looks=0
      echo - || exit
    fi
    sleep "$LOOK_S"
  done
}

there() {
  disk=$(cat "$HOME/.prime-train/$attempt/disk" 2>/dev/null) && cd "$disk/logs" 2>/dev/null
}

# The most wanted log there is. What is left of the one before is said first.
choose() {
  for newest in trainer.log smoke.log setup.log agent.log; do
    [ ! -e "$newest" ] || break
  done
  [ -e "$newest" ] || return
  if [ "$newest" != "$name" ]; then
    if [ "$inode" -ne 0 ]; then
      while look; do :; done
    fi
    # The first log of all is shown from near its end, those that follow it from their start.
    [ -z "$name" ] || lines=all
    name=$newest inode=0 offset=0
  fi
}

# Says one piece, where there is one that was not said yet.
look() {
  now=$(stat -c '%i %s' "$name" 2>/dev/null) || return
  file=$name size=${now#* }
  if [ "$inode" -eq 0 ]; then
    inode=${now% *} offset=0
    [ "$lines" = all ] || offset=$((size - $(tail -c "$size" "$name" | tail -n "$lines" | wc -c)))
    [ "$offset" -ge 0 ] || offset=0
  elif [ "$inode" -ne "${now% *}" ]; then
    old=$(stat -c '%i %s' "$name.1" 2>/dev/null)
    if [ "${old% *}" = "$inode" ] && [ "$offset" -lt "${old#* }" ]; then
      file=$name.1 size=${old#* }
    else
      inode=${now% *} offset=0
    fi
  elif [ "$size" -lt "$offset" ]; then
    offset=0
  fi
  count=$((size - offset))
  [ "$count" -gt 0 ] || return
  [ "$count" -le "$PIECE_BYTES" ] || count=$PIECE_BYTES
  said=$(tail -c +$((offset + 1)) "$file" | head -c "$count" | base64 | tr -d '\n')
  # It may have been rotated while it was read.
  [ "$(stat -c %i "$file" 2>/dev/null)" = "$inode" ] || return
  echo "$name $inode $offset $said" || exit
  offset=$((offset + count))
}

main "$@"; exit
