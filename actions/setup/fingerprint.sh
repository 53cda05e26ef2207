#!/usr/bin/env bash
# Prints one hash of everything that install.sh installs.
#
# Of the files and not the ref: a tag that moved, or a checkout that changed between two steps, is another code under the same name.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
find actions/setup pyproject.toml README.md LICENSE requirements/{build,runtime,watcher}.txt configs/demo.yaml \
  examples/consumer-repo/.github/workflows src agent lambdas \
  -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
