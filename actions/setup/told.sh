#!/usr/bin/env bash
# Tells the steps after this one where the command is that install.sh installed.
set -euo pipefail

folder=$RUNNER_TEMP/prime-train/command
version=$("$RUNNER_TEMP/prime-train/bin/python" -I "$folder/prime-train" --version)
echo "$folder" >>"$GITHUB_PATH"
printf '%s\n' "command=$folder/prime-train" "version=${version#prime-train }" >>"$GITHUB_OUTPUT"
