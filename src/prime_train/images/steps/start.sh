#!/bin/sh
# Starts the SSH server through which the agent comes. A provider that starts one itself does not need this.
#
# PUBLIC_KEY: the key that may log in; providers set it. SSH_PORT: by default 22, and 2222 for a user that may not use that. The host keys
# are made here: an image that held them would give all machines the same.
set -eu
if [ -z "${PUBLIC_KEY:-}" ]; then
  echo "PUBLIC_KEY is not set, so nobody could log in; set it to an SSH public key" >&2
  exit 78
fi
folder=$HOME/.ssh
mkdir -p "$folder/host"
chmod 700 "$folder" "$folder/host"
printf '%s\n' "$PUBLIC_KEY" >"$folder/authorized_keys"
chmod 600 "$folder/authorized_keys"
[ -e "$folder/host/ed25519" ] || ssh-keygen -q -t ed25519 -N '' -f "$folder/host/ed25519"
port=2222
if [ "$(id -u)" -eq 0 ]; then
  port=22
  mkdir -p /run/sshd
fi
exec /usr/sbin/sshd -D -e -f /dev/null -p "${SSH_PORT:-$port}" -h "$folder/host/ed25519" -o PidFile=none -o UsePAM=no \
  -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o PermitRootLogin=prohibit-password \
  -o "AuthorizedKeysFile=$folder/authorized_keys" -o "Subsystem=sftp internal-sftp"
