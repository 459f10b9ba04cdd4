# Shared by the scripts here: where things are, how to report, how to know that work is already done.
# Source it; it leaves the shell in the top folder of the tree, strict about errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
VENV=$ROOT/.venv
STAMPS=$VENV/stamps
JOBS=$(nproc 2>/dev/null || echo 2)
MACHINE_PATH=$PATH
# The environment's cmake, ninja and clang-format come before the machine's.
export PATH="$VENV/bin:$PATH"
# A caller's PYTHONPATH could slip another tensorhash under the tests.
unset PYTHONPATH PYTHONHOME

# A compiler cache makes a second build of the same sources quick, in another clone too: paths below the
# tree count as relative. CCACHE_DISABLE=1 does without.
if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
    # The compiler's own list of headers takes the place of a second run of the preprocessor.
    export CCACHE_DEPEND=1
    # A precompiled header is an input like any other; only its time of making differs between clones.
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
fi

step() { printf '\n=== %s\n' "$*"; }
say() { printf '    %s\n' "$*"; }
fail() {
    printf '\nerror: %s\n' "$*" >&2
    exit 1
}

# timed NAME COMMAND...: runs it and notes its seconds for the table at the end of `make test`.
timed() {
    local name=$1 began=$SECONDS
    shift
    "$@"
    mkdir -p build
    printf '%s\t%s\n' "$name" $((SECONDS - began)) >>build/step-parts
}

# hash_of PATH...: one number for the contents of these files and folders; missing ones do not count.
hash_of() {
    { find "$@" -type f -not -name '*.pyc' -print0 2>/dev/null || true; } | LC_ALL=C sort -z |
        xargs -0 -r sha256sum | sha256sum | cut -c1-32
}

# is_done NAME HASH / mark_done NAME HASH: whether the work called NAME was finished for these contents.
is_done() { [ "$(cat "$STAMPS/$1" 2>/dev/null)" = "$2" ]; }
mark_done() { mkdir -p "$STAMPS" && printf '%s\n' "$2" >"$STAMPS/$1"; }

# What the Python package is made from.
package_hash() { hash_of include src python integrations cmake CMakeLists.txt pyproject.toml README.md LICENSE; }
