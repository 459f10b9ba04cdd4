#!/usr/bin/env bash
# Plants each bug of mutants.py in a copy of the tree; the C++ tests must notice it. Too slow for
# every `make test`: run `make mutants`. With arguments: only mutants with one of them in their
# name.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$root/tools/common.sh"
exec python3 "$root/tests/mutants/run.py" "$root" "${TENSORHASH_MUTANTS_DIR:-$root/build/mutants}" "$@"
