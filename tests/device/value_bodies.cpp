// Bodies that scan, list, move and join rows, each against a plain loop.
// Over 400 lines: one test per body, with helpers that all share.
#include "device/reduce.hpp"
#include "device/segments.hpp"
#include "device/values.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "device/lives.hpp"
#include "support/reduce_oracle.hpp"

namespace th_test {
namespace {

namespace device = tensorhash::device;
using Bytes = std::vector<unsigned char>;

Bytes random_bytes(Random& random, std::size_t count) {
    Bytes bytes(count);
    std::generate(bytes.begin(), bytes.end(),
                  [&] { return static_cast<unsigned char>(random.next()); });
    return bytes;
}

template <class Count>
void expect_scan(std::uint64_t seed) {
    Random random(seed);
    TestQueue queue({.seed = seed});
    for (std::uint64_t const size : {1u, 31u, 33u, 127u, 128u, 129u, 700u}) {
        std::vector<Count> counts(size);
        for (Count& count : counts) {
            count = static_cast<Count>(random.next()) >> (sizeof(Count) == 4 ? 23 : 8);
        }
        OnDevice<Count> const scanned(queue, counts.data(), size);
        OnDevice<Count> const total(queue, 1);
        queue.scan(scanned.data(), size, total.data());
        EXPECT_EQ(total.read()[0], std::accumulate(counts.begin(), counts.end(), Count{0}));
        std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), Count{0});
        EXPECT_EQ(scanned.read(), counts) << size;
    }
}

TEST(Scan, adds_up_the_counts_before) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        expect_scan<std::uint32_t>(seed);
        expect_scan<std::uint64_t>(seed);
    }
}

template <class Choice>
std::vector<std::uint32_t> list(TestQueue& queue, Choice const& choice, std::uint64_t first,
                                std::uint64_t rows, std::uint64_t limit) {
    OnDevice<std::uint32_t> const counts(queue, device::segments_of(rows));
    OnDevice<std::uint32_t> const out(queue, limit);
    OnDevice<std::uint32_t> const total(queue, 1);
    queue.fill(total.data(), 0, 4);
    queue.launch(rows, device::CountChosen<Choice>{choice, first, rows, counts.data()});
    queue.scan(counts.data(), device::segments_of(rows), total.data());
    queue.launch(rows,
                 device::ListChosen<Choice>{choice, first, rows, counts.data(), limit, out.data()});
    return out.read(std::min<std::uint64_t>(limit, total.read()[0]));
}

TEST(Listing, lists_live_rows_in_order_up_to_a_limit) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        Random random(seed);
        TestQueue queue({.seed = seed});
        for (std::uint64_t const rows : {1u, 32u, 255u, 256u, 257u, 3000u}) {
            Bytes const bits = random_bytes(random, (rows + 31) / 32 * 4);
            OnDevice<std::uint32_t> const live(queue, bits.data(), bits.size() / 4);
            std::uint64_t const first = random.below(rows);
            std::uint64_t const limit = 1 + random.below(rows);
            std::vector<std::uint32_t> wanted;
            for (std::uint64_t i = first; i < rows && wanted.size() < limit; ++i) {
                if ((bits[i / 8] >> (i % 8) & 1) != 0) {
                    wanted.push_back(static_cast<std::uint32_t>(i));
                }
            }
            EXPECT_EQ(list(queue, device::IsLive{live.data()}, first, rows - first, limit), wanted);
        }
    }
}

TEST(Listing, lists_rows_of_a_mask) {
    TestQueue queue;
    Bytes const mask{0, 1, 1, 0, 2, 1};
    OnDevice<unsigned char> const rows(queue, mask.data(), mask.size());
    EXPECT_EQ(list(queue, device::MaskIs{rows.data(), 1}, 0, 6, 6),
              (std::vector<std::uint32_t>{1, 2, 5}));
    EXPECT_EQ(list(queue, device::MaskIs{rows.data(), 0}, 0, 6, 6),
              (std::vector<std::uint32_t>{0, 3}));
}

/// Row sizes of all pieces, and sizes of several pieces.
constexpr std::size_t kRowBytes[] = {1, 2, 3, 4, 8, 12, 16, 20, 48, 100};

TEST(Values, gather_copies_rows_and_fills_missing_ones) {
    Random random(5);
    for (std::size_t const bytes : kRowBytes) {
        TestQueue queue({.seed = bytes});
        Bytes const from = random_bytes(random, 50 * bytes);
        Bytes const defaults = random_bytes(random, 90 * bytes);
        std::vector<std::uint32_t> indices(90);
        std::vector<std::uint32_t> places(90);
        for (std::size_t i = 0; i < 90; ++i) {
            indices[i] = random.one_in(4) ? ~0u : static_cast<std::uint32_t>(random.below(50));
            places[i] = static_cast<std::uint32_t>(89 - i);
        }
        OnDevice<unsigned char> const source(queue, from.data(), from.size());
        OnDevice<unsigned char> const missing(queue, defaults.data(), defaults.size());
        OnDevice<std::uint32_t> const wanted_rows(queue, indices.data(), 90);
        OnDevice<std::uint32_t> const wanted_places(queue, places.data(), 90);
        OnDevice<unsigned char> const out(queue, 90 * bytes);
        device::PieceGrid const grid{90, bytes, device::piece_of(bytes)};
        for (int form = 0; form < 3; ++form) {
            bool const placed = form == 2;
            queue.launch(grid.size(), device::GatherRows{source.data(), wanted_rows.data(),
                                                         placed ? wanted_places.data() : nullptr,
                                                         form == 0 ? nullptr : missing.data(),
                                                         form == 1 ? bytes : 0, out.data(), grid});
            Bytes const got = out.read();
            for (std::size_t i = 0; i < 90; ++i) {
                Bytes wanted(bytes, 0);
                if (indices[i] != ~0u) {
                    std::memcpy(wanted.data(), from.data() + indices[i] * bytes, bytes);
                } else if (form != 0) {
                    std::memcpy(wanted.data(), defaults.data() + (form == 1 ? i * bytes : 0),
                                bytes);
                }
                std::size_t const at = placed ? places[i] : i;
                EXPECT_EQ(std::memcmp(got.data() + at * bytes, wanted.data(), bytes), 0)
                    << bytes << " bytes, row " << i;
            }
        }
    }
}

TEST(Values, scatter_writes_the_rows_of_the_mask) {
    Random random(6);
    for (std::size_t const bytes : kRowBytes) {
        TestQueue queue({.seed = bytes});
        Bytes const before = random_bytes(random, 60 * bytes);
        Bytes const values = random_bytes(random, 40 * bytes);
        std::vector<std::uint32_t> indices(40);
        std::vector<std::uint32_t> order(40);
        Bytes mask(40);
        for (std::uint32_t i = 0; i < 40; ++i) {
            indices[i] = (i * 7 + 3) % 60;
            order[i] = 39 - i;
            mask[i] = random.one_in(3) ? 0 : 1;
        }
        OnDevice<std::uint32_t> const where(queue, indices.data(), 40);
        OnDevice<std::uint32_t> const from_row(queue, order.data(), 40);
        OnDevice<unsigned char> const chosen(queue, mask.data(), 40);
        OnDevice<unsigned char> const from(queue, values.data(), values.size());
        device::PieceGrid const grid{40, bytes, device::piece_of(bytes)};
        for (int form = 0; form < 3; ++form) {
            OnDevice<unsigned char> const to(queue, before.data(), before.size());
            queue.launch(grid.size(),
                         device::ScatterRows{to.data(), where.data(), chosen.data(),
                                             form == 2 ? nullptr : from.data(), bytes,
                                             form == 1 ? from_row.data() : nullptr, grid});
            Bytes wanted = before;
            for (std::size_t i = 0; i < 40; ++i) {
                if (mask[i] != 0) {
                    std::size_t const row = form == 1 ? order[i] : i;
                    Bytes const zeros(bytes, 0);
                    std::memcpy(wanted.data() + indices[i] * bytes,
                                form == 2 ? zeros.data() : values.data() + row * bytes, bytes);
                }
            }
            EXPECT_EQ(to.read(), wanted) << bytes << " bytes, form " << form;
        }
    }
}

void expect_strided_copy(std::uint64_t seed) {
    TestQueue queue({.seed = seed});
    std::vector<std::int32_t> numbers(4 * 5 * 6);
    std::iota(numbers.begin(), numbers.end(), 0);
    OnDevice<std::int32_t> const from(queue, numbers.data(), numbers.size());
    OnDevice<std::int32_t> const to(queue, 6 * 4 * 2 * 3);
    // array[::-1, 1:4:2, :] transposed to (2, 0, 1), with a repeated axis of stride 0 at the end.
    auto const* const begin = reinterpret_cast<unsigned char const*>(from.data() + 3 * 30 + 6);
    device::CopyStrided copy{begin,
                             reinterpret_cast<unsigned char*>(to.data()),
                             6 * 4 * 2 * 3,
                             4,
                             4,
                             4,
                             {6, 4, 2, 3},
                             {4, -120, 48, 0}};
    queue.launch(copy.elements, copy);
    std::vector<std::int32_t> wanted;
    for (int z = 0; z < 6; ++z) {
        for (int x = 3; x >= 0; --x) {
            for (int y = 1; y < 4; y += 2) {
                wanted.insert(wanted.end(), 3, x * 30 + y * 6 + z);
            }
        }
    }
    EXPECT_EQ(to.read(), wanted) << "seed " << seed;
}

TEST(Values, strided_copies_follow_all_axes) {
    for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
        expect_strided_copy(seed);
    }
}

TEST(Values, the_last_row_of_each_entry_owns_it) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        Random random(seed);
        TestQueue queue({.seed = seed});
        std::vector<std::uint32_t> indices(300);
        std::vector<std::size_t> last(20, 300);
        for (std::size_t i = 0; i < indices.size(); ++i) {
            indices[i] = random.one_in(9) ? ~0u : static_cast<std::uint32_t>(random.below(20));
            if (indices[i] != ~0u) {
                last[indices[i]] = i;
            }
        }
        OnDevice<std::uint32_t> const rows(queue, indices.data(), 300);
        OnDevice<std::uint32_t> const owners(queue, 20);
        OnDevice<unsigned char> const mask(queue, 300);
        queue.launch(300, device::ForgetOwners{rows.data(), owners.data(), 300});
        queue.launch(300, device::RaiseOwners{rows.data(), owners.data(), 300});
        queue.launch(300, device::ChooseOwners{rows.data(), owners.data(), mask.data(), 300});
        Bytes const got = mask.read();
        for (std::size_t i = 0; i < 300; ++i) {
            bool const is_last = indices[i] != ~0u && last[indices[i]] == i;
            EXPECT_EQ(got[i], is_last ? 1 : 0) << "seed " << seed << ", row " << i;
        }
    }
}

/// Every NaN becomes the same one: compilers swap the terms of a sum, and then another NaN stays.
template <class Word>
Bytes with_one_nan(Bytes bytes, Word infinity) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
        Word word;
        std::memcpy(&word, bytes.data() + at, sizeof word);
        if (static_cast<Word>(word << 1) > static_cast<Word>(infinity << 1)) {
            std::memset(bytes.data() + at, 0xff, sizeof word);
        }
    }
    return bytes;
}
Bytes with_one_nan(Dtype dtype, Bytes bytes) {
    switch (dtype) {
        case Dtype::Float16:
            return with_one_nan(std::move(bytes), std::uint16_t{0x7c00});
        case Dtype::BFloat16:
            return with_one_nan(std::move(bytes), std::uint16_t{0x7f80});
        case Dtype::Float32:
            return with_one_nan(std::move(bytes), std::uint32_t{0x7f800000});
        case Dtype::Float64:
            return with_one_nan(std::move(bytes), std::uint64_t{0x7ff0000000000000});
        default:
            return bytes;
    }
}

/// Rows of three elements joined with what is stored, by the body and by the oracle.
template <class Stored>
struct JoinCase {
    Dtype dtype;
    tensorhash::Reduce reduce;
    std::uint64_t seed;
    static constexpr std::uint32_t kElements = 3;
    static constexpr std::size_t kRows = 200;
    static constexpr std::size_t kEntries = 17;

    /// Any bits, NaNs too.
    Bytes draw(Random& random, std::size_t rows) const {
        Bytes bytes = random_bytes(random, rows * kElements * sizeof(Stored));
        make_legal(reinterpret_cast<char*>(bytes.data()), bytes.size(), dtype);
        return bytes;
    }

    template <class Launch>
    void expect_like_oracle(Launch const& launch) const {
        Random random(seed);
        TestQueue queue({.seed = seed});
        Bytes stored = draw(random, kEntries);
        Bytes values = draw(random, kRows);
        std::vector<std::uint32_t> indices(kRows);
        Bytes mask(kRows);
        for (std::size_t i = 0; i < kRows; ++i) {
            indices[i] = static_cast<std::uint32_t>(random.below(kEntries));
            mask[i] = random.one_in(5) ? 1 : 0;
        }
        OnDevice<Stored> const on_device(queue, stored.data(), kEntries * kElements);
        OnDevice<Stored> const rows(queue, values.data(), kRows * kElements);
        OnDevice<std::uint32_t> const where(queue, indices.data(), kRows);
        OnDevice<unsigned char> const done(queue, mask.data(), kRows);
        launch(
            queue,
            device::Joined<Stored>{on_device.data(), rows.data(), nullptr, done.data(), kElements},
            where);
        std::size_t const bytes = kElements * sizeof(Stored);
        for (std::size_t i = 0; i < kRows; ++i) {
            if (mask[i] == 0) {
                reduce_row(dtype, reduce,
                           reinterpret_cast<char*>(stored.data()) + indices[i] * bytes,
                           reinterpret_cast<char const*>(values.data()) + i * bytes, bytes);
            }
        }
        EXPECT_EQ(with_one_nan(dtype, on_device.template read<unsigned char>()),
                  with_one_nan(dtype, stored))
            << "dtype " << static_cast<int>(dtype) << ", reduce " << static_cast<int>(reduce)
            << ", seed " << seed;
    }
};

template <class Type, class Op>
void expect_in_order(Dtype dtype, tensorhash::Reduce reduce) {
    using Stored = typename Type::Stored;
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        JoinCase<Stored>{dtype, reduce, seed}.expect_like_oracle(
            [](TestQueue& queue, device::Joined<Stored> const& joined,
               OnDevice<std::uint32_t> const& indices) {
                constexpr std::size_t kRows = JoinCase<Stored>::kRows;
                std::vector<std::uint32_t> rows(kRows);
                std::iota(rows.begin(), rows.end(), 0u);
                OnDevice<std::uint32_t> const sorted(queue, rows.data(), kRows);
                queue.sort_pairs(indices.data(), sorted.data(), kRows, 5);
                queue.launch(kRows * 3, device::JoinInOrder<Type, Op>{joined, indices.data(),
                                                                      sorted.data(), kRows});
            });
    }
}

template <class T, class Op>
void expect_atomic(Dtype dtype, tensorhash::Reduce reduce) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        JoinCase<T>{dtype, reduce, seed}.expect_like_oracle(
            [](TestQueue& queue, device::Joined<T> const& joined,
               OnDevice<std::uint32_t> const& indices) {
                constexpr std::size_t kRows = JoinCase<T>::kRows;
                queue.launch(kRows * 3,
                             device::JoinAtomically<T, Op>{joined, indices.data(), kRows});
            });
    }
}

template <class Op>
void expect_joins(tensorhash::Reduce reduce) {
    using namespace tensorhash;
    expect_in_order<Plain<bool>, Op>(Dtype::Bool, reduce);
    expect_in_order<Plain<std::int8_t>, Op>(Dtype::Int8, reduce);
    expect_in_order<Plain<std::uint8_t>, Op>(Dtype::UInt8, reduce);
    expect_in_order<Plain<std::int16_t>, Op>(Dtype::Int16, reduce);
    expect_in_order<Plain<std::uint16_t>, Op>(Dtype::UInt16, reduce);
    expect_in_order<Half, Op>(Dtype::Float16, reduce);
    expect_in_order<BrainHalf, Op>(Dtype::BFloat16, reduce);
    expect_in_order<Plain<float>, Op>(Dtype::Float32, reduce);
    expect_in_order<Plain<double>, Op>(Dtype::Float64, reduce);
    auto const expect_integers = [&](auto number, Dtype dtype) {
        using T = decltype(number);
        if constexpr (std::is_same_v<Op, JoinProd>) {
            expect_in_order<Plain<T>, Op>(dtype, reduce);
        } else {
            expect_atomic<T, Op>(dtype, reduce);
        }
    };
    expect_integers(std::int32_t{}, Dtype::Int32);
    expect_integers(std::uint32_t{}, Dtype::UInt32);
    expect_integers(std::int64_t{}, Dtype::Int64);
    expect_integers(std::uint64_t{}, Dtype::UInt64);
}

TEST(Joins, sums_have_the_bits_of_the_oracle) {
    expect_joins<tensorhash::JoinSum>(tensorhash::Reduce::Sum);
}
TEST(Joins, minima_have_the_bits_of_the_oracle) {
    expect_joins<tensorhash::JoinMin>(tensorhash::Reduce::Min);
}
TEST(Joins, maxima_have_the_bits_of_the_oracle) {
    expect_joins<tensorhash::JoinMax>(tensorhash::Reduce::Max);
}

TEST(Joins, products_have_the_bits_of_the_oracle) {
    expect_joins<tensorhash::JoinProd>(tensorhash::Reduce::Prod);
}

/// Each case: the bits that are stored, those of the row, and those that they make on x86.
template <class Op, class Float, class Bits>
void expect_bits(std::vector<std::array<Bits, 3>> const& cases) {
    std::vector<Bits> stored, row, wanted;
    std::vector<std::uint32_t> numbers;
    for (auto const& one : cases) {
        numbers.push_back(static_cast<std::uint32_t>(stored.size()));
        stored.push_back(one[0]);
        row.push_back(one[1]);
        wanted.push_back(one[2]);
        EXPECT_EQ(std::bit_cast<Bits>(device::join_like_x86<Op>(std::bit_cast<Float>(one[0]),
                                                                std::bit_cast<Float>(one[1]))),
                  one[2]);
    }
    std::size_t const count = cases.size();
    Bytes const none(count, 0);
    TestQueue queue;
    OnDevice<Float> const on_device(queue, stored.data(), count);
    OnDevice<Float> const rows(queue, row.data(), count);
    OnDevice<unsigned char> const done(queue, none.data(), count);
    OnDevice<std::uint32_t> const order(queue, numbers.data(), count);
    queue.launch(count, device::JoinInOrder<tensorhash::Plain<Float>, Op>{
                            {on_device.data(), rows.data(), nullptr, done.data(), 1},
                            order.data(),
                            order.data(),
                            count});
    EXPECT_EQ(on_device.template read<Bits>(), wanted);
}

TEST(Joins, sums_and_products_of_infinities_and_nans_are_those_of_x86) {
    using Words = std::vector<std::array<std::uint32_t, 3>>;
    expect_bits<tensorhash::JoinSum, float>(Words{{0x7f800000u, 0xff800000u, 0xffc00000u},
                                                  {0x7fc12345u, 0xffc00001u, 0x7fc12345u},
                                                  {0x3f800000u, 0xffc00001u, 0xffc00001u}});
    expect_bits<tensorhash::JoinProd, float>(Words{{0, 0x7f800000u, 0xffc00000u}});
    expect_bits<tensorhash::JoinSum, double>(std::vector<std::array<std::uint64_t, 3>>{
        {0x7ff0000000000000ull, 0xfff0000000000000ull, 0xfff8000000000000ull}});
}

}  // namespace
}  // namespace th_test
