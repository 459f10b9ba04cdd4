// Random bits from the system, unless the environment fixes the seed.
#include "runtime/seed.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "tensorhash/error.hpp"

namespace tensorhash::runtime {
namespace {

/// Read once: another thread may change the environment while a table is made.
std::optional<std::string> const& setting() {
    static std::optional<std::string> const text = [] {
        char const* const set = std::getenv("TENSORHASH_SEED");
        return set == nullptr || *set == '\0' ? std::nullopt : std::optional<std::string>(set);
    }();
    return text;
}

std::uint64_t parsed(std::string const& text) {
    bool const is_hex = text.starts_with("0x") || text.starts_with("0X");
    std::string_view const digits = std::string_view(text).substr(is_hex ? 2 : 0);
    std::uint64_t seed = 0;
    auto const [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), seed, is_hex ? 16 : 10);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
        throw ValueError("TENSORHASH_SEED: expected an integer from 0 to 2^64 - 1, got \"" + text +
                         "\"");
    }
    return seed;
}

std::uint64_t random_bits() {
    std::uint64_t bits = 0;
    // Neither blocks for long nor returns fewer bytes: the system seeds its generator at boot.
    if (getentropy(&bits, sizeof(bits)) != 0) {
        int const code = errno;
        throw SystemError(
            "seed: the system gave no random bits: " + std::generic_category().message(code) +
                "; set TENSORHASH_SEED to use a fixed seed",
            code);
    }
    return bits;
}

}  // namespace

std::uint64_t new_seed() { return setting() ? parsed(*setting()) : random_bits(); }

}  // namespace tensorhash::runtime
