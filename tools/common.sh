# Shared by these scripts: paths, messages, and stamps for work that is already done.
# Source it: it changes to the top folder of the tree and makes errors fatal.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
VENV=$ROOT/.venv
STAMPS=$VENV/stamps
JOBS=$(nproc 2>/dev/null || echo 2)
MACHINE_PATH=$PATH
# Prefer the environment's cmake, ninja and clang-format to the machine's.
export PATH="$VENV/bin:$PATH"
# With the caller's PYTHONPATH the tests could import another tensorhash.
unset PYTHONPATH PYTHONHOME

# The compiler cache makes a second build of the same sources fast, also in another clone, because
# paths below the tree count as relative. CCACHE_DISABLE=1 switches it off.
if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
    # Use the compiler's own list of headers instead of running the preprocessor.
    export CCACHE_DEPEND=1
    # Needed for precompiled headers. Their time stamps differ between clones.
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
fi

step() { printf '\n=== %s\n' "$*"; }
say() { printf '    %s\n' "$*"; }
fail() {
    printf '\nerror: %s\n' "$*" >&2
    exit 1
}

# timed NAME COMMAND...: runs it and records its seconds for the table at the end of `make test`.
timed() {
    local name=$1 began=$SECONDS
    shift
    "$@"
    mkdir -p build
    printf '%s\t%s\n' "$name" $((SECONDS - began)) >>build/step-parts
}

# hash_of PATH...: a hash of the contents of these files and folders; missing ones do not count.
hash_of() {
    { find "$@" -type f -not -name '*.pyc' -print0 2>/dev/null || true; } | LC_ALL=C sort -z |
        xargs -0 -r sha256sum | sha256sum | cut -c1-32
}

# is_done NAME HASH: was the work NAME finished for these contents? mark_done NAME HASH: now it is.
is_done() { [ "$(cat "$STAMPS/$1" 2>/dev/null)" = "$2" ]; }
mark_done() { mkdir -p "$STAMPS" && printf '%s\n' "$2" >"$STAMPS/$1"; }

# The hash of everything that the Python package is built from.
package_hash() { hash_of include src python integrations cmake CMakeLists.txt pyproject.toml README.md LICENSE; }
