// The engine's loops at every instruction-set level, on a small index: each level against the
// oracle, and each level finds what another one inserted. Over 400 lines: all tests drive the same
// small index.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "cpu/engine.hpp"
#include "cpu/settle.hpp"
#include "cpu/shard_engine.hpp"
#include "runtime/memory.hpp"
#include "support/batches.hpp"
#include "tensorhash/step/hash.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::cpu {
#if defined(TH_HAS_LEVEL_v2)
IndexLoops const& index_loops_v2(std::uint32_t key_bytes, std::uint32_t float_bytes);
FindInShards find_in_shards_v2(std::uint32_t key_bytes, std::uint32_t float_bytes);
#endif
#if defined(TH_HAS_LEVEL_v3)
IndexLoops const& index_loops_v3(std::uint32_t key_bytes, std::uint32_t float_bytes);
FindInShards find_in_shards_v3(std::uint32_t key_bytes, std::uint32_t float_bytes);
#endif
#if defined(TH_HAS_LEVEL_v4)
IndexLoops const& index_loops_v4(std::uint32_t key_bytes, std::uint32_t float_bytes);
FindInShards find_in_shards_v4(std::uint32_t key_bytes, std::uint32_t float_bytes);
#endif
#if defined(TH_HAS_LEVEL_generic)
IndexLoops const& index_loops_generic(std::uint32_t key_bytes, std::uint32_t float_bytes);
FindInShards find_in_shards_generic(std::uint32_t key_bytes, std::uint32_t float_bytes);
#endif
}  // namespace tensorhash::cpu

namespace th_test {
namespace {

namespace cpu = tensorhash::cpu;
namespace step = tensorhash::step;

struct Level {
    std::string name;
    cpu::IndexLoops const& (*index_loops)(std::uint32_t, std::uint32_t);
    cpu::FindInShards (*find_in_shards)(std::uint32_t, std::uint32_t);
};

std::vector<Level> levels() {
    std::vector<Level> out;
#if defined(TH_HAS_LEVEL_v2)
    out.push_back({"v2", cpu::index_loops_v2, cpu::find_in_shards_v2});
#endif
#if defined(TH_HAS_LEVEL_v3)
    if (cpu::has_v3()) out.push_back({"v3", cpu::index_loops_v3, cpu::find_in_shards_v3});
#endif
#if defined(TH_HAS_LEVEL_v4)
    if (cpu::has_v4()) out.push_back({"v4", cpu::index_loops_v4, cpu::find_in_shards_v4});
#endif
#if defined(TH_HAS_LEVEL_generic)
    out.push_back({"generic", cpu::index_loops_generic, cpu::find_in_shards_generic});
#endif
    return out;
}

/// A small index with a key buffer, driven directly as a table would. The test's keys fill many
/// buckets, so that some keys must probe on.
struct Bench {
    std::size_t buckets;
    std::uint32_t width, float_bytes;
    tensorhash::runtime::Block memory{buckets * 64, tensorhash::runtime::Fill::Zero};
    std::vector<unsigned char> keys;
    std::uint32_t top = 0;

    explicit Bench(KeyKind const& kind)
        : buckets(kind.width() <= 8 ? 128 : 64), width(static_cast<std::uint32_t>(kind.width())),
          float_bytes(kind.element.dtype == Dtype::Float32   ? 4
                      : kind.element.dtype == Dtype::Float64 ? 8
                                                             : 0),
          keys(buckets * 8 * kind.width()) {}

    step::IndexView view() { return {memory.data(), buckets, keys.data(), width, float_bytes}; }

    OracleLocated insert(cpu::IndexLoops const& run, bool shared, Rows const& rows) {
        OracleLocated out = answers(rows);
        std::vector<std::uint32_t> positions(rows.count), buf_indices(rows.count);
        step::BatchView batch{bytes(rows), top, positions.data(), buf_indices.data(),
                              out.mask.data()};
        cpu::ClaimCount count =
            (shared ? run.shared : run.exclusive).claim(view(), batch, 0, rows.count);
        cpu::settle(batch, 0, rows.count);
        EXPECT_EQ(std::count(out.mask.begin(), out.mask.end(), 1),
                  static_cast<std::ptrdiff_t>(count.claimed));
        run.publish(view(), batch, 0, rows.count, 0, nullptr, 0);
        std::uint32_t const base = top;
        for (std::size_t row = 0; row < rows.count; ++row) {
            if (out.mask[row]) {
                std::memcpy(&keys[std::size_t{buf_indices[row]} * width], rows[row].data(), width);
                ++top;
            } else if (buf_indices[row] >= base) {
                buf_indices[row] = buf_indices[buf_indices[row] - base];
            }
        }
        out.indices.assign(buf_indices.begin(), buf_indices.end());
        return out;
    }

    OracleLocated find(cpu::IndexLoops const& run, Rows const& rows) {
        OracleLocated out = answers(rows);
        std::vector<std::uint32_t> buf_indices(rows.count);
        run.find(view(), {bytes(rows), top, nullptr, buf_indices.data(), out.mask.data()}, 0,
                 rows.count);
        out.indices.assign(buf_indices.begin(), buf_indices.end());
        return out;
    }

    std::vector<std::uint8_t> erase(cpu::IndexLoops const& run, bool shared, Rows const& rows) {
        OracleLocated out = answers(rows);
        std::vector<std::uint32_t> positions(rows.count), buf_indices(rows.count);
        step::BatchView batch{bytes(rows), top, positions.data(), buf_indices.data(),
                              out.mask.data()};
        (shared ? run.shared : run.exclusive).erase(view(), batch, 0, rows.count);
        return out.mask;
    }

    /// As if one thread had erased the second half before another one erased the first: keys that
    /// are in both go to the wrong row until they are decided again.
    std::vector<std::uint8_t> erase_backwards(cpu::IndexLoops const& run, Rows const& rows) {
        OracleLocated out = answers(rows);
        std::vector<std::uint32_t> positions(rows.count), buf_indices(rows.count), all(rows.count);
        step::BatchView batch{bytes(rows), top, positions.data(), buf_indices.data(),
                              out.mask.data()};
        std::size_t const half = rows.count / 2;
        cpu::ReleaseCount const second = run.shared.erase(view(), batch, half, rows.count);
        cpu::ReleaseCount const first = run.shared.erase(view(), batch, 0, half);
        std::iota(all.begin(), all.end(), 0u);
        cpu::RowList const list{all.data(), rows.count};
        cpu::ReleaseCount const undone = run.put_back(view(), batch, list);
        EXPECT_EQ(undone.released, first.released + second.released);
        EXPECT_EQ(undone.to_erased, first.to_erased + second.to_erased);
        run.find_put_back(view(), batch, list);
        run.mark(view(), batch, list);
        cpu::ReleaseCount const again = run.release_marked(view(), batch, list);
        EXPECT_EQ(again.released, undone.released);  // no two rows took one entry
        EXPECT_EQ(again.to_erased, undone.to_erased);
        return out.mask;
    }

    static OracleLocated answers(Rows const& rows) {
        return {{}, std::vector<std::uint8_t>(rows.count)};
    }
    static unsigned char const* bytes(Rows const& rows) {
        return reinterpret_cast<unsigned char const*>(rows.bytes.data());
    }
};

// Another thread has taken the key's slot but not yet set its ticket: rows that meet it stay
// undecided and join later.
TEST(EngineLevels, rows_that_meet_a_slot_without_a_ticket_join_after_all_claims) {
    for (Level const& level : levels()) {
        SCOPED_TRACE(level.name);
        KeyKind const kind{"int64", {Dtype::Int64, {}}};
        Bench bench(kind);
        cpu::IndexLoops const& run = level.index_loops(8, 0);
        std::uint64_t const keys[] = {7, 8, 7, 7};
        std::uint64_t const word = step::mix(7);
        std::uint64_t const home = step::NarrowBucket::home(word, bench.buckets);
        auto& bucket = reinterpret_cast<step::NarrowBucket*>(bench.memory.data())[home];
        bucket.words[0] = word;

        std::uint32_t positions[4];
        std::uint32_t buf_indices[4];
        unsigned char mask[4];
        step::BatchView const batch{reinterpret_cast<unsigned char const*>(keys), 100, positions,
                                    buf_indices, mask};
        cpu::ClaimCount const count = run.shared.claim(bench.view(), batch, 0, 4);
        EXPECT_EQ(count.claimed, 1u);
        EXPECT_EQ(count.undecided, 3u);
        EXPECT_EQ(bucket.tickets[0], step::kNoTicket);

        bucket.tickets[0] = step::to_ticket(102);  // the other thread had row 2
        mask[2] = 1;
        EXPECT_EQ(run.join_late(bench.view(), batch, 2, 4), 0u);  // any order of ranges
        EXPECT_EQ(run.join_late(bench.view(), batch, 0, 2), 1u);
        EXPECT_EQ(bucket.tickets[0], step::to_ticket(100));
        cpu::settle(batch, 0, 4);
        run.follow(bench.view(), batch, 0, 4);
        EXPECT_EQ(std::vector(mask, mask + 4), (std::vector<unsigned char>{1, 1, 0, 0}));
        EXPECT_EQ(std::vector(buf_indices, buf_indices + 4),
                  (std::vector<std::uint32_t>{100, 101, 100, 100}));
    }
}

// Rows are claimed part by part. A part settles its own rows only.
TEST(EngineLevels, a_later_part_of_a_batch_settles_the_rows_that_overtook) {
    for (Level const& level : levels()) {
        SCOPED_TRACE(level.name);
        Bench bench({"int64", {Dtype::Int64, {}}});
        cpu::IndexLoops const& run = level.index_loops(8, 0);
        std::vector<std::uint64_t> keys(40);
        std::iota(keys.begin(), keys.end(), 100u);
        keys[30] = keys[20] = keys[11];
        std::vector<std::uint32_t> positions(40), buf_indices(40);
        std::vector<std::uint8_t> mask(40);
        step::BatchView const batch{reinterpret_cast<unsigned char const*>(keys.data()), 0,
                                    positions.data(), buf_indices.data(), mask.data()};
        run.shared.claim(bench.view(), batch, 0, 9);
        std::vector<std::uint32_t> const before = positions;
        for (auto const& [begin, end] : {std::pair{25u, 40u}, {17u, 25u}, {9u, 17u}}) {
            run.shared.claim(bench.view(), batch, begin, end);
        }
        std::uint32_t const slot = positions[30];
        cpu::settle(batch, 9, 40);
        for (std::size_t row = 0; row < 40; ++row)
            EXPECT_EQ(mask[row], row == 20 || row == 30 ? 0 : 1) << row;
        EXPECT_EQ(positions[11], slot);
        EXPECT_EQ(positions[20], slot);
        EXPECT_TRUE(std::equal(before.begin(), before.begin() + 9, positions.begin()));
    }
}

// A thread claims later rows of a key first, and another one follows them before the row that they
// met: they must take the winner's index from the slot.
TEST(EngineLevels, rows_that_met_a_row_that_lost_get_the_index_of_the_winner) {
    for (Level const& level : levels()) {
        SCOPED_TRACE(level.name);
        KeyKind const kind{"int64", {Dtype::Int64, {}}};
        Bench bench(kind);
        cpu::IndexLoops const& run = level.index_loops(8, 0);
        std::uint64_t const keys[] = {7, 7, 7, 7};
        std::uint32_t positions[4];
        std::uint32_t buf_indices[4];
        unsigned char mask[4];
        step::BatchView const batch{reinterpret_cast<unsigned char const*>(keys), 100, positions,
                                    buf_indices, mask};
        run.shared.claim(bench.view(), batch, 2, 4);
        run.shared.claim(bench.view(), batch, 0, 2);
        cpu::settle(batch, 0, 4);
        std::uint32_t const freed = 42;
        run.publish(bench.view(), batch, 0, 4, 0, &freed + 1, 1);
        run.follow(bench.view(), batch, 3, 4);
        run.follow(bench.view(), batch, 0, 3);
        EXPECT_EQ(std::vector(buf_indices, buf_indices + 4), std::vector<std::uint32_t>(4, 42));
        EXPECT_EQ(std::vector(mask, mask + 4), (std::vector<unsigned char>{1, 0, 0, 0}));
    }
}

/// A key of 16 bytes with this home bucket of 64 and this fingerprint; others have another
/// `number`.
void append_key(std::string& keys, std::uint64_t home, std::uint64_t fingerprint,
                std::uint64_t number) {
    step::HashSecret const secret;
    std::uint64_t const hash = (fingerprint << 32 | home << 26) << 1;
    std::uint64_t const last =
        step::unavalanche(hash, secret) ^ step::fold_in(secret.start, number, secret);
    keys.append(reinterpret_cast<char const*>(&number), 8);
    keys.append(reinterpret_cast<char const*>(&last), 8);
}

// Rows that probably meet an earlier one take a candidate half way. A row that was late for long
// must not keep the rows with a candidate from asking whether it is right.
TEST(EngineLevels, a_candidate_is_never_taken_for_the_rows_own_index) {
    for (Level const& level : levels())
        for (bool const shared : {false, true}) {
            SCOPED_TRACE(level.name + (shared ? " shared" : " exclusive"));
            KeyKind const kind{"u8x16", {Dtype::UInt8, {16}}};
            Bench bench(kind);
            cpu::IndexLoops const& run = level.index_loops(16, 0);
            std::string there;
            for (std::uint64_t i = 0; i < 9; ++i) append_key(there, 5, 100 + i, i);  // 5 is full
            append_key(there, 20, 300, 20);
            append_key(there, 30, 400, 30);
            bench.insert(run, shared, Rows{16, 11, there});

            std::string keys;
            append_key(keys, 5, 108, 8);  // late
            for (int i = 0; i < 400; ++i) append_key(keys, 20, 300, 20);
            for (std::uint64_t i = 0; i < 31; ++i) append_key(keys, 5, 500 + i, 50 + i);  // late
            append_key(keys, 30, 400, 31);  // its candidate has another key
            std::size_t const last = 432;
            std::vector<std::uint32_t> positions(last + 1), buf_indices(last + 1);
            std::vector<unsigned char> mask(last + 1);
            step::BatchView const batch{reinterpret_cast<unsigned char const*>(keys.data()),
                                        bench.top, positions.data(), buf_indices.data(),
                                        mask.data()};
            auto const claim = (shared ? run.shared : run.exclusive).claim;
            ASSERT_EQ(claim(bench.view(), batch, 0, last + 1).claimed, 32u);
            EXPECT_EQ(mask[last], 1);
            EXPECT_EQ(buf_indices[last], bench.top + last);
            EXPECT_EQ(buf_indices[0], 8u);
            EXPECT_EQ(buf_indices[200], 9u);
        }
}

TEST(EngineLevels, every_level_agrees_with_the_oracle_and_with_every_other) {
    for (Level const& writer : levels())
        for (Level const& reader : levels())
            for (KeyKind const& kind : all_kinds())
                for (bool shared : {false, true}) {
                    SCOPED_TRACE(writer.name + " " + reader.name + " " + kind.name +
                                 (shared ? " shared" : " exclusive"));
                    Bench bench(kind);
                    Oracle oracle(0, kind.element, {});
                    auto rows = [&](Ids const& ids) {
                        return rows_of(make_keys(kind.element, ids), kind.element);
                    };
                    cpu::IndexLoops const& write =
                        writer.index_loops(bench.width, bench.float_bytes);
                    cpu::IndexLoops const& read =
                        reader.index_loops(bench.width, bench.float_bytes);
                    Rows first = rows(random_ids(800, 450, 1));  // fewer keys than slots
                    OracleLocated got = bench.insert(write, shared, first),
                                  want = oracle.insert(first, {});
                    ASSERT_EQ(got.indices, want.indices);
                    ASSERT_EQ(got.mask, want.mask);
                    Rows gone = rows(random_ids(300, 600, 2));
                    ASSERT_EQ(bench.erase(write, shared, gone), oracle.erase(gone));
                    Rows more = rows(random_ids(300, 600, 3));
                    ASSERT_EQ(bench.erase_backwards(write, more), oracle.erase(more));
                    Rows all = rows(sequence(700));
                    got = bench.find(read, all);
                    want = oracle.find(all);
                    ASSERT_EQ(got.indices, want.indices);
                    ASSERT_EQ(got.mask, want.mask);
                }
}

// The two keys whose words are the marks of free slots have tickets of their own.
TEST(EngineLevels, every_level_tells_the_keys_of_the_marks_from_free_slots) {
    for (Level const& level : levels()) {
        SCOPED_TRACE(level.name);
        Bench bench({"int64", {Dtype::Int64, {}}});
        cpu::IndexLoops const& run = level.index_loops(8, 0);
        std::vector<std::uint64_t> words(40, 5);
        words[3] = step::unmix(0);
        words[20] = step::unmix(1);
        Rows const rows{
            8, words.size(), {reinterpret_cast<char const*>(words.data()), 8 * words.size()}};
        std::vector<std::int32_t> want(words.size(), -1);
        EXPECT_EQ(bench.find(run, rows).indices, want);
        bench.insert(run, false, rows);
        want.assign(words.size(), 0);
        want[3] = 1;
        want[20] = 2;
        EXPECT_EQ(bench.find(run, rows).indices, want);
    }
}

/// Bytes that end where unreadable memory begins, so that a read past them is a crash.
class BytesBeforeGuard {
public:
    explicit BytesBeforeGuard(std::vector<unsigned char> const& bytes)
        : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
          size_((bytes.size() + page_ - 1) / page_ * page_),
          memory_(static_cast<unsigned char*>(mmap(nullptr, size_ + page_, PROT_READ | PROT_WRITE,
                                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          data_(memory_ + size_ - bytes.size()) {
        std::copy(bytes.begin(), bytes.end(), data_);
        EXPECT_EQ(mprotect(memory_ + size_, page_, PROT_NONE), 0);
    }
    BytesBeforeGuard(BytesBeforeGuard const&) = delete;
    BytesBeforeGuard& operator=(BytesBeforeGuard const&) = delete;
    ~BytesBeforeGuard() { munmap(memory_, size_ + page_); }
    unsigned char const* data() const { return data_; }

private:
    std::size_t page_, size_;
    unsigned char* memory_;
    unsigned char* data_;
};

// A level may hash several rows at once, wherever a range begins and ends.
TEST(EngineLevels, every_level_finds_ranges_of_any_rows_and_reads_no_other_row) {
    for (Level const& level : levels())
        for (KeyKind const& kind : all_kinds()) {
            SCOPED_TRACE(level.name + " " + kind.name);
            Bench bench(kind);
            cpu::IndexLoops const& run = level.index_loops(bench.width, bench.float_bytes);
            auto const rows = [&](Ids const& ids) {
                return rows_of(make_keys(kind.element, ids), kind.element);
            };
            bench.insert(run, false, rows(random_ids(300, 400, 1)));
            for (std::size_t count : {1, 7, 8, 9, 130, 150, 301}) {
                Rows const asked = rows(random_ids(count, 500, 2));
                OracleLocated const want =
                    bench.find(cpu::index_loops(bench.width, bench.float_bytes), asked);
                BytesBeforeGuard const keys(
                    {Bench::bytes(asked), Bench::bytes(asked) + count * bench.width});
                for (std::size_t begin = 0; begin < std::min<std::size_t>(count, 10); ++begin) {
                    std::vector<std::uint32_t> buf_indices(count, 12345);
                    std::vector<std::uint8_t> mask(count, 99);
                    run.find(bench.view(),
                             {keys.data(), bench.top, nullptr, buf_indices.data(), mask.data()},
                             begin, count);
                    for (std::size_t row = 0; row < count; ++row) {
                        ASSERT_EQ(mask[row], row < begin ? 99 : want.mask[row])
                            << begin << " " << row;
                        ASSERT_EQ(static_cast<std::int32_t>(buf_indices[row]),
                                  row < begin ? 12345 : want.indices[row]);
                    }
                }
            }
        }
}

TEST(EngineLevels, every_level_finds_each_row_in_the_index_of_its_shard) {
    for (Level const& level : levels())
        for (KeyKind const& kind : all_kinds()) {
            SCOPED_TRACE(level.name + " " + kind.name);
            Bench shards[] = {Bench(kind), Bench(kind), Bench(kind)};
            std::vector<step::IndexView> indices;
            for (std::size_t s = 0; s < 3; ++s) {
                cpu::IndexLoops const& write =
                    level.index_loops(shards[s].width, shards[s].float_bytes);
                shards[s].insert(
                    write, false,
                    rows_of(make_keys(kind.element, random_ids(400, 500, s)), kind.element));
                indices.push_back(shards[s].view());
            }
            Rows const asked =
                rows_of(make_keys(kind.element, random_ids(900, 600, 7)), kind.element);
            std::vector<std::int32_t> shard_of_row(asked.count);
            for (std::size_t row = 0; row < asked.count; ++row)
                shard_of_row[row] = static_cast<std::int32_t>(row * 7 % 3);
            std::vector<std::int64_t> global(asked.count);
            std::vector<std::uint8_t> mask(asked.count, 9);
            level.find_in_shards(shards[0].width, shards[0].float_bytes)(
                {indices.data(), shard_of_row.data(), Bench::bytes(asked), global.data(),
                 mask.data()},
                0, asked.count);
            OracleLocated found[3];
            for (std::size_t s = 0; s < 3; ++s)
                found[s] = shards[s].find(level.index_loops(shards[s].width, shards[s].float_bytes),
                                          asked);
            for (std::size_t row = 0; row < asked.count; ++row) {
                OracleLocated const& wanted = found[shard_of_row[row]];
                ASSERT_EQ(mask[row], wanted.mask[row]);
                ASSERT_EQ(global[row], mask[row] == 0 ? -1
                                                      : std::int64_t{shard_of_row[row]} << 32 |
                                                            wanted.indices[row]);
            }
        }
}

TEST(EngineLevels, the_best_level_of_the_processor_is_in_use) {
#if defined(__x86_64__)
    std::ifstream cpuinfo("/proc/cpuinfo");
    std::string line;
    while (std::getline(cpuinfo, line) && line.rfind("flags", 0) != 0) {
    }
    if (!cpuinfo) GTEST_SKIP() << "/proc/cpuinfo does not say what the processor has";
    std::istringstream words(line);
    std::vector<std::string> const flags(std::istream_iterator<std::string>(words), {});
    auto const has_all = [&](std::vector<std::string> const& parts) {
        return std::all_of(parts.begin(), parts.end(), [&](std::string const& part) {
            return std::count(flags.begin(), flags.end(), part) == 1;
        });
    };
    bool const v3 = has_all({"avx2", "bmi1", "bmi2", "fma", "f16c", "abm", "movbe"});
    bool const v4 = v3 && has_all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
    EXPECT_EQ(cpu::has_v3(), v3) << line;
    EXPECT_EQ(cpu::has_v4(), v4) << line;
    std::string best = v3 ? "x86-64-v3" : "x86-64-v2";
#if defined(TH_HAS_LEVEL_v4)
    if (v4) best = "x86-64-v4";
#endif
    char const* const wanted = std::getenv("TENSORHASH_ISA");
    bool const is_lower = wanted != nullptr && (wanted == std::string("x86-64-v2") ||
                                                wanted == std::string("x86-64-v3"));
    EXPECT_EQ(tensorhash::instruction_set(), is_lower ? std::min<std::string>(wanted, best) : best);
#else
    EXPECT_STREQ(tensorhash::instruction_set(), "generic");
#endif
}

}  // namespace
}  // namespace th_test
