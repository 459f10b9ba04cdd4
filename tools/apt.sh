# Installs Debian packages if their content is missing. Source it after common.sh.
APT_UPDATED=
AS_ROOT=()
[ "$(id -u)" = 0 ] || AS_ROOT=(sudo -n)

# may_install: can this user install packages without a prompt?
may_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }
}

# Fetches the lists of packages once.
update_packages() {
    [ -z "$APT_UPDATED" ] || return 0
    "${AS_ROOT[@]}" apt-get update -qq || return
    APT_UPDATED=1
}

# offers_package PACKAGE: can apt-get install it?
offers_package() {
    may_install && update_packages &&
        apt-get install --simulate -qq --no-install-recommends "$1" >/dev/null 2>&1
}

# want_packages PACKAGE...: installs them, or stops with an error that names them.
want_packages() {
    if ! command -v apt-get >/dev/null; then
        fail "Debian packages are missing and this machine has no apt-get: please install the equivalents of: $*"
    fi
    may_install ||
        fail "Debian packages are missing and this user may not install them. Please run: apt-get update && apt-get install -y $*"
    say "installing Debian packages: $*"
    update_packages || fail "apt-get update failed; the missing Debian packages are: $*"
    "${AS_ROOT[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        fail "apt-get could not install: $*"
}

# These check for the file, not for the package: it may be installed in another way.
has_header() { echo "#include <$1>" | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1; }
has_library() { ldconfig -p 2>/dev/null | grep -q "$1" || /sbin/ldconfig -p 2>/dev/null | grep -q "$1"; }

need_gtest() {
    [ -f /usr/src/googletest/CMakeLists.txt ] || has_header gtest/gtest.h || want_packages libgtest-dev
}
links_with() { echo 'int main() {}' | "${CXX:-c++}" -x c++ - -o /dev/null "-l$1" >/dev/null 2>&1; }

# Switches the stacks of the fiber emulator. The benchmark needs Boost 1.81, and Debian's packages
# of two versions exclude each other, so 1.81 comes first. The header alone also comes with the
# benchmark, without the library.
need_boost_context() {
    has_header boost/context/detail/fcontext.hpp && links_with boost_context && return
    if offers_package libboost-context1.81-dev; then
        want_packages libboost-context1.81-dev
    else
        want_packages libboost-context-dev
    fi
}
# Compiles device code to PTX for the interpreter in tests/ptx.
need_clang_22() { command -v clang++-22 >/dev/null || want_packages clang-22; }
# The compiler cache is optional.
need_ccache() {
    command -v ccache >/dev/null || ! may_install || (want_packages ccache) || say "the build continues without ccache"
}
need_open3d_libraries() {
    local missing=()
    has_library libusb-1.0.so.0 || missing+=(libusb-1.0-0)
    has_library libGL.so.1 || missing+=(libgl1)
    [ ${#missing[@]} = 0 ] || want_packages "${missing[@]}"
}
# The peers of tensorhash-bench: a header and its Debian package.
CPP_PEERS=(
    "absl/container/flat_hash_map.h libabsl-dev"
    "boost/unordered/unordered_flat_map.hpp libboost1.81-dev"
    "oneapi/tbb/concurrent_unordered_map.h libtbb-dev"
)
# Peers are optional: one that cannot be installed is left out with a message.
need_cpp_peers() {
    local peer
    for peer in "${CPP_PEERS[@]}"; do
        has_header "${peer%% *}" || (want_packages "${peer##* }") || say "the benchmark continues without ${peer##* }"
    done
}
need_doxygen() { command -v doxygen >/dev/null || want_packages doxygen; }
# The benchmark counts instructions with it.
want_valgrind() { (need_valgrind) || say "the benchmark continues without valgrind"; }
need_valgrind() { command -v valgrind >/dev/null || want_packages valgrind; }
need_chromium() { command -v chromium >/dev/null || want_packages chromium; }
