// The match tests, included once per instruction-set level inside a region compiled for that level.
// Plain code only: nothing of the standard library may be compiled twice.

namespace th_test {
namespace TH_SNAPSHOT_LEVEL {

namespace step = tensorhash::step::TH_ISA;

inline std::uint64_t next_word(std::uint64_t& state) { return step::mix(state++); }

/// Fills a bucket with marks, the wanted word, words that differ from it in one half, and noise.
template <class Bucket>
void fill(Bucket& bucket, std::uint64_t* words, std::uint32_t lanes, std::uint64_t wanted,
          std::uint64_t& state) {
    (void)bucket;
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

/// The number of buckets with a result that differs from the naive one.
template <class Access>
int wrong_narrow_buckets(int buckets) {
    int wrong = 0;
    std::uint64_t state = 1;
    for (int i = 0; i < buckets; ++i) {
        step::NarrowBucket bucket{};
        std::uint64_t wanted = next_word(state);
        fill(bucket, bucket.words, step::NarrowBucket::kLanes, wanted, state);
        step::NarrowSnapshot<Access> seen(bucket);
        auto is = [](std::uint64_t word) { return [word](std::uint64_t w) { return w == word; }; };
        wrong +=
            seen.with_word(wanted) != naive(bucket.words, step::NarrowBucket::kLanes, is(wanted)) ||
            seen.empty() != naive(bucket.words, step::NarrowBucket::kLanes, is(0)) ||
            seen.erased() != naive(bucket.words, step::NarrowBucket::kLanes, is(1));
    }
    return wrong;
}

template <class Access>
int wrong_wide_buckets(int buckets) {
    int wrong = 0;
    std::uint64_t state = 2;
    for (int i = 0; i < buckets; ++i) {
        step::WideBucket bucket{};
        std::uint64_t wanted = next_word(state);
        fill(bucket, bucket.slots, step::WideBucket::kLanes, wanted, state);
        step::WideSnapshot<Access> seen(bucket);
        auto is = [](std::uint64_t word) { return [word](std::uint64_t w) { return w == word; }; };
        constexpr std::uint64_t kOverflow = step::WideBucket::kOverflow;
        auto is_overflow = [](std::uint64_t w) { return (w & kOverflow) != 0; };
        auto same_high = [wanted](std::uint64_t w) { return (w ^ wanted) >> 32 == 0; };
        wrong += seen.with_fingerprint(wanted) !=
                     naive(bucket.slots, step::WideBucket::kLanes, same_high) ||
                 seen.has_fingerprint(wanted) != (seen.with_fingerprint(wanted) != 0) ||
                 seen.empty() != naive(bucket.slots, step::WideBucket::kLanes, is(0)) ||
                 seen.erased() != naive(bucket.slots, step::WideBucket::kLanes, is(1)) ||
                 seen.overflow_bits() != naive(bucket.slots, step::WideBucket::kLanes, is_overflow);
        // Overflow bits on some lanes must not change the other results.
        std::uint64_t const plain = wanted & ~kOverflow;
        for (auto& slot : bucket.slots) slot &= ~kOverflow;
        step::WideBucket overflowed = bucket;
        for (auto& slot : overflowed.slots) slot |= next_word(state) & kOverflow;
        step::WideSnapshot<Access> const without(bucket);
        auto const alone = step::WideSnapshot<Access>(overflowed).without_overflow();
        wrong += alone.with_fingerprint(plain) != without.with_fingerprint(plain) ||
                 alone.empty() != without.empty() || alone.erased() != without.erased() ||
                 alone.overflow_bits() != 0;
    }
    return wrong;
}

int wrong_buckets(int buckets);
int wrong_buckets(int buckets) {
    return wrong_narrow_buckets<step::Exclusive>(buckets) +
           wrong_narrow_buckets<step::Shared>(buckets) +
           wrong_wide_buckets<step::Exclusive>(buckets) + wrong_wide_buckets<step::Shared>(buckets);
}

}  // namespace TH_SNAPSHOT_LEVEL
}  // namespace th_test
