// The body of the match tests, included once per instruction-set level inside a region compiled for that level.
// Plain code only: nothing of the standard library may be compiled twice.

namespace th_test {
namespace TH_SNAPSHOT_LEVEL {

namespace kernel = tensorhash::kernel::TH_ISA;

inline std::uint64_t next_word(std::uint64_t& state) { return kernel::mix(state++); }

/// A line whose words are marks, a wanted word, words that differ from it in one half, or noise.
template <class Line>
void fill(Line& line, std::uint64_t* words, std::uint32_t lanes, std::uint64_t wanted,
          std::uint64_t& state) {
    (void)line;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        std::uint64_t noise = next_word(state);
        switch (next_word(state) % 7) {
            case 0:
                words[lane] = 0;
                break;
            case 1:
                words[lane] = 1;
                break;
            case 2:
                words[lane] = wanted;
                break;
            case 3:
                words[lane] = (wanted & 0xffffffff00000000u) | (noise & 0xffffffffu);
                break;
            case 4:
                words[lane] = (wanted & 0xffffffffu) | (noise & 0xffffffff00000000u);
                break;
            case 5:
                words[lane] = wanted ^ (std::uint64_t{1} << (noise % 64));
                break;
            default:
                words[lane] = noise;
                break;
        }
    }
}

template <class Predicate>
std::uint32_t naive(std::uint64_t const* words, std::uint32_t lanes, Predicate predicate) {
    std::uint32_t bits = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        if (predicate(words[lane])) bits |= 1u << lane;
    return bits;
}

/// Lines on which an answer differs from the naive one.
template <class Access>
int wrong_narrow_lines(int lines) {
    int wrong = 0;
    std::uint64_t state = 1;
    for (int i = 0; i < lines; ++i) {
        kernel::NarrowLine line{};
        std::uint64_t wanted = next_word(state);
        fill(line, line.words, kernel::NarrowLine::kLanes, wanted, state);
        kernel::NarrowSnapshot<Access> seen(line);
        auto is = [](std::uint64_t word) { return [word](std::uint64_t w) { return w == word; }; };
        wrong +=
            seen.with_word(wanted) != naive(line.words, kernel::NarrowLine::kLanes, is(wanted)) ||
            seen.empty() != naive(line.words, kernel::NarrowLine::kLanes, is(0)) ||
            seen.erased() != naive(line.words, kernel::NarrowLine::kLanes, is(1));
    }
    return wrong;
}

template <class Access>
int wrong_wide_lines(int lines) {
    int wrong = 0;
    std::uint64_t state = 2;
    for (int i = 0; i < lines; ++i) {
        kernel::WideLine line{};
        std::uint64_t wanted = next_word(state);
        fill(line, line.slots, kernel::WideLine::kLanes, wanted, state);
        kernel::WideSnapshot<Access> seen(line);
        auto is = [](std::uint64_t word) { return [word](std::uint64_t w) { return w == word; }; };
        constexpr std::uint64_t kTrace = kernel::WideLine::kTrace;
        auto is_traced = [](std::uint64_t w) { return (w & kTrace) != 0; };
        auto same_high = [wanted](std::uint64_t w) { return (w ^ wanted) >> 32 == 0; };
        wrong += seen.with_fingerprint(wanted) !=
                     naive(line.slots, kernel::WideLine::kLanes, same_high) ||
                 seen.has_fingerprint(wanted) != (seen.with_fingerprint(wanted) != 0) ||
                 seen.empty() != naive(line.slots, kernel::WideLine::kLanes, is(0)) ||
                 seen.erased() != naive(line.slots, kernel::WideLine::kLanes, is(1)) ||
                 seen.traces() != naive(line.slots, kernel::WideLine::kLanes, is_traced);
        // The slots alone: traces on some lanes change no answer.
        std::uint64_t const plain = wanted & ~kTrace;
        for (auto& slot : line.slots) slot &= ~kTrace;
        kernel::WideLine traced = line;
        for (auto& slot : traced.slots) slot |= next_word(state) & kTrace;
        kernel::WideSnapshot<Access> const without(line);
        auto const alone = kernel::WideSnapshot<Access>(traced).without_traces();
        wrong += alone.with_fingerprint(plain) != without.with_fingerprint(plain) ||
                 alone.empty() != without.empty() || alone.erased() != without.erased() ||
                 alone.traces() != 0;
    }
    return wrong;
}

int wrong_lines(int lines);
int wrong_lines(int lines) {
    return wrong_narrow_lines<kernel::Sole>(lines) + wrong_narrow_lines<kernel::Shared>(lines) +
           wrong_wide_lines<kernel::Sole>(lines) + wrong_wide_lines<kernel::Shared>(lines);
}

}  // namespace TH_SNAPSHOT_LEVEL
}  // namespace th_test
