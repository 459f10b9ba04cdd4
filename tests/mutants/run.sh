#!/usr/bin/env bash
# Plants each mistake of mutants.py in a copy of the tree and demands that the C++ tests notice. Too slow for every
# `make test`: `make mutants`. With arguments: only mistakes with one of them in their name.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$root/tools/common.sh"
exec python3 "$root/tests/mutants/run.py" "$root" "${TENSORHASH_MUTANTS_DIR:-$root/build/mutants}" "$@"
