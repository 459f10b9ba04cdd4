"""The mutants: planted bugs, and the tests that must notice them.

Each is small enough that the code still compiles and mostly works. The code to replace occurs once
in its file, apart from white space. If the source changed, the run says so: update the mutant here.

Over 400 lines, because it is one table.
"""

from typing import NamedTuple


class Edit(NamedTuple):
    file: str
    old: str
    new: str


class Mutant(NamedTuple):
    name: str
    tests: str  # a GoogleTest filter
    edits: list[Edit]
    step: str = "test-cpp"  # the step of `make test` that must notice
    part: str = ""  # of the step's program; empty: all of it

    @property
    def program(self) -> str:
        """The test program to build and run."""
        return "_".join([PROGRAMS.get(self.step, "tensorhash_tests"), *filter(None, [self.part])])


# Steps that notice bugs, and the CMake preset that each builds.
STEPS = {
    "test-cpp": "release",
    "test-asan": "asan",
    "test-tsan": "tsan",
    "test-device": "release",
    "test-ptx": "release",
}
# The test program of a step, unless it is tensorhash_tests.
PROGRAMS = {"test-device": "tensorhash_device_tests", "test-ptx": "tensorhash_ptx_tests"}
# What a planted bug makes necessary to build again, unless it is the program. The program of
# test-ptx reads the device code when it starts.
REBUILT = {"test-ptx": "tensorhash_bodies_ptx"}


INSERT = "include/tensorhash/step/insert.hpp"
PROBE = "include/tensorhash/step/probe.hpp"
ENGINE = "src/cpu/engine.cpp"

MUTANTS = [
    Mutant(
        "the first thread wins, not the earliest row",
        "*Rule01*",
        [
            Edit(
                "include/tensorhash/step/atomic.hpp",
                "while (seen < value && !cas(p, seen, value)) {",
                "while (seen == 0 && !cas(p, seen, value)) {",
            )
        ],
    ),
    Mutant(
        "insert overwrites existing values",
        "*Rule01*",
        [
            Edit(
                "src/map/hash_map.cpp",
                "impl_->table->insert({rows, columns, out});",
                "impl_->table->insert_or_assign({rows, columns, out});",
            )
        ],
    ),
    Mutant(
        "find ignores the overflow bit of one class",
        "*Rule07*:*Rule01*:OverflowBits*",
        [
            Edit(
                "include/tensorhash/step/find.hpp",
                "(ticket_or_overflow & missing) >> NarrowBucket::class_of(hash) & 1",
                "(ticket_or_overflow & missing & 0x7fffffffu) >> NarrowBucket::class_of(hash) & 1",
            )
        ],
    ),
    Mutant(
        "a tombstone is taken before the probe reaches its end",
        "*Rule07*:*Rule01*",
        [
            Edit(
                PROBE,
                "if (empty != 0) { return free;",
                "if (free.found != Found::Unknown) { return free;",
            )
        ],
    ),
    Mutant(
        "a matching fingerprint counts as the key",
        "*Rule07*",
        [
            Edit(
                PROBE,
                "if (is_key && reader.equal(key_of(slot_ticket(slot), c), c.wanted)) {",
                "if (is_key) {",
            )
        ],
    ),
    Mutant(
        "wide keys mark no overflow bits in buckets that they probe past",
        "OverflowBits*",
        [
            Edit(
                "include/tensorhash/step/insert.hpp",
                "(expected & WideBucket::kOverflow))) { mark_overflow(index, hash, home, slot.bucket);",
                "(expected & WideBucket::kOverflow))) {",
            )
        ],
    ),
    Mutant(
        "a reused slot loses the overflow bit of its lane",
        "OverflowBits*",
        [
            Edit(
                "include/tensorhash/step/insert.hpp",
                "to_slot(hash, mine) | (expected & WideBucket::kOverflow)",
                "to_slot(hash, mine)",
            )
        ],
    ),
    Mutant(
        "a row that joins clears the overflow bit of its lane",
        "OverflowBits*",
        [
            Edit(
                "include/tensorhash/step/insert.hpp",
                "Access::cas(at, seen, to_slot(seen, mine))",
                "Access::cas(at, seen, to_slot(hash, mine))",
            )
        ],
    ),
    Mutant(
        "an erased slot loses the overflow bit of its lane",
        "OverflowBits*",
        [
            Edit(
                "include/tensorhash/step/erase.hpp",
                "WideBucket::kErased | overflow",
                "WideBucket::kErased",
            )
        ],
    ),
    Mutant(
        "every erased slot becomes empty",
        "OverflowBits*",
        [
            Edit(
                "include/tensorhash/step/erase.hpp",
                "index.overflow_bits(bucket) == 0",
                "true",
            ),
            Edit(
                "include/tensorhash/step/erase.hpp",
                "unpredictable(overflow != 0 ? 1 : 0)",
                "unpredictable(0)",
            ),
        ],
    ),
    Mutant(
        "narrow keys mark no overflow bits when an index is rebuilt",
        "OverflowBits*",
        [
            Edit(
                "include/tensorhash/step/insert.hpp",
                "index.set_ticket(to_position(bucket, lane), to_ticket(buf_index)); "
                "mark_overflow(index, hash, home, bucket);",
                "index.set_ticket(to_position(bucket, lane), to_ticket(buf_index));",
            )
        ],
    ),
    Mutant(
        "a growing index marks no overflow bits",
        "*Rule03*:*Rule01*",
        [
            Edit(
                "src/index/bucket_index_spread.cpp",
                "if (NarrowBucket::has_overflow_bits(at)) {",
                "if (at > buckets.count) {",
            )
        ],
    ),
    Mutant(
        "the key that mixes to the tombstone mark has no side entry",
        "*Rule05*",
        [
            Edit(
                PROBE,
                "return hash <= NarrowBucket::kErased;",
                "return hash < NarrowBucket::kErased;",
            )
        ],
    ),
    Mutant(
        "-0 and +0 are two keys",
        "*Rule05*",
        [
            Edit(
                "include/tensorhash/step/key.hpp",
                "magnitude = bits & 0x7fffffffu; if (magnitude == 0) { return 0;",
                "magnitude = bits & 0x7fffffffu; if (magnitude == 0) { return bits;",
            )
        ],
    ),
    Mutant(
        "freed indices are a queue",
        "*Rule01*",
        [
            Edit(
                ENGINE,
                "free_top[-1 - static_cast<std::ptrdiff_t>(rank)]",
                "free_top[static_cast<std::ptrdiff_t>(rank) - static_cast<std::ptrdiff_t>(reusable)]",
            )
        ],
    ),
    Mutant(
        "activate does not zero a recycled entry",
        "*Rule09*",
        [
            Edit(
                "src/table/insert.cpp",
                "std::memset(column.row(batch.buf_indices[row]), 0, column.row_bytes);",
                "(void)column;",
            )
        ],
    ),
    Mutant(
        "growth counts rows, not distinct keys",
        "*Rule03*",
        [
            Edit(
                "src/table/growth.cpp",
                "std::uint64_t const needed = top_ + insertion.counts.claimed "
                "- insertion.counts.reused;",
                "std::uint64_t const needed = top_ + insertion.rows;",
            )
        ],
    ),
    Mutant(
        "every thread accumulates every row",
        "*Rule01Accumulate*",
        [
            Edit(
                "src/table/row_order.hpp",
                "return row_order_part(buf_indices[row], parts) == part;",
                "return part < parts;",
            )
        ],
    ),
    Mutant(
        "strides are ignored",
        "*Rule05*",
        [
            Edit(
                "src/tensor/tensor.cpp",
                "return is_contiguous() ? *this : clone();",
                "return *this;",
            )
        ],
    ),
    Mutant(
        "a writer does not wait for readers",
        "*Rule08*",
        [
            Edit(
                "src/runtime/lock.hpp",
                "writers_turn_.wait(guard, [&] { return !writing_ && readers_ == 0; });",
                "writers_turn_.wait(guard, [&] { return !writing_; });",
            )
        ],
    ),
    Mutant(
        "a wrong checksum is not noticed",
        "SaveAndLoadDamage.every_*",
        [
            Edit(
                "src/io/format.cpp",
                "if (checksum.value() != stored) {",
                "if (checksum.value() == stored + 1) {",
            )
        ],
    ),
    Mutant(
        "the capacity that a file claims is always allocated",
        "UntrustedFiles.*",
        [
            Edit(
                "src/io/format.cpp",
                "return memory_of(images) <= limit;",
                "return memory_of(images) >= 1;",
            )
        ],
    ),
    Mutant(
        "bools from a file are not normalised to 0 or 1",
        "UntrustedFiles.*",
        [
            Edit(
                "src/table/image.cpp",
                "if (element.dtype == Dtype::Bool) {",
                "if (element.dtype == Dtype::Undefined) {",
            )
        ],
    ),
    Mutant(
        "a bounded table accepts any clock",
        "ClockAndUses*",
        [
            # Both the reader of files and validate() check it.
            Edit(
                "src/table/bounded_batch.cpp",
                "if (ledger.clock > kLastCount || ledger.uses > kLastCount) {",
                "if (ledger.clock > kLastCount && ledger.uses > kLastCount) {",
            ),
            Edit(
                "src/io/bounded_format.cpp",
                "if (head.clock > table::kLastCountOfFile || head.uses > table::kLastCountOfFile) {",
                "if (head.clock > table::kLastCountOfFile && head.uses > table::kLastCountOfFile) {",
            ),
        ],
    ),
    Mutant(
        "a save removes the file that another save is writing",
        "*ReplacingFiles*",
        [
            Edit(
                "src/io/replacement.cpp",
                "::flock(file.get(), LOCK_EX | LOCK_NB) == 0",
                "::flock(file.get(), LOCK_EX | LOCK_NB) <= 0",
            )
        ],
    ),
    Mutant(
        "an entry used since it was queued is evicted all the same",
        "*Bounded*",
        [
            Edit(
                "src/table/victims.hpp",
                "return rank_of(item.buf_index) != item.rank;",
                "return item.buf_index >= count && rank_of(0) != item.rank;",
            )
        ],
    ),
    Mutant(
        "a later low score is forgotten",
        "*Bounded*",
        [Edit("src/table/victims.hpp", "if (rank < bound_) {", "if (rank < kNothing) {")],
    ),
    Mutant(
        "an evicted key is still taken for present",
        "*Bounded*",
        [
            Edit(
                "src/table/evict.cpp",
                "where_[visit.distinct] = kNotFound;",
                "visited_.push_back(lowest.buf_index);",
            )
        ],
    ),
    Mutant(
        "Adam treats every step as the first",
        "*Update*",
        [
            Edit(
                "src/table/steps.cpp",
                "++*row.value<std::int64_t>(3)",
                "*row.value<std::int64_t>(3) = 1",
            )
        ],
    ),
    Mutant(
        "of equal coordinates the first thread wins",
        "*PackedTable*:*CoordIndex*:FlatIndexSlots*",
        [
            Edit(
                "include/tensorhash/step/flat.hpp",
                "while (row < there &&",
                "while (there == kNoRow &&",
            )
        ],
    ),
    Mutant(
        "a coordinate out of range wraps around",
        "*PackedKey*:*PackedTable*",
        [
            Edit(
                "include/tensorhash/step/packed_key.hpp",
                "return over == 0 ? key : kEmptyKey;",
                "return over == 1 ? kEmptyKey : key;",
            )
        ],
    ),
    Mutant(
        "an empty slot hides a later key of its bucket",
        "*PackedTable*:*CoordIndex*",
        [
            Edit(
                "include/tensorhash/step/flat.hpp",
                "answer.with_key != 0 ? answer.with_key : answer.empty;",
                "answer.with_key | answer.empty;",
            )
        ],
    ),
    Mutant(
        "a batch that does not fit stays half inserted",
        "*PackedTable*:*CoordIndex*",
        [
            Edit(
                "src/index/flat_index.cpp",
                "drop_from(first_row); return false;",
                "return false;",
            )
        ],
    ),
    Mutant(
        "the vector-key table keeps the largest row, not the smallest",
        "*VectorTable*",
        [
            Edit(
                "include/tensorhash/step/vector_key.hpp",
                "while (row < vector_row(seen) &&",
                "while (row > vector_row(seen) &&",
            )
        ],
    ),
    Mutant(
        "a shard reads values of rows that are not its own",
        "*Sharded*",
        [
            Edit(
                "src/sharded/grouped.cpp",
                "order_ ? order_->of(shard) : nullptr};",
                "nullptr};",
            )
        ],
    ),
    Mutant(
        "evicted entries of a sharded table come shard by shard",
        "*ShardedBound*",
        [
            Edit(
                "src/sharded/bounded.cpp",
                "places_[shard_of[row]][eviction[row]] = count_++;",
                "places_[shard_of[row]][eviction[row]] = eviction[row]; ++count_;",
            )
        ],
    ),
    Mutant(
        "all indices use the published hash, whatever their seed",
        "Rule07Flooding*",
        [
            Edit(
                "src/index/bucket_index.cpp",
                "secret_(step::secret_of(seed))",
                "secret_()",
            )
        ],
    ),
    Mutant(
        "a flip of the top bit passes from word to word",
        "Rule07Flooding*",
        [
            Edit(
                "include/tensorhash/step/hash.hpp",
                "return (x << 32 | x >> 32) * secret.second;",
                "return x << 32 | x >> 32;",
            )
        ],
    ),
    Mutant(
        "packed coordinates use the published hash, whatever their seed",
        "Rule07Flooding*",
        [
            Edit(
                "src/coords/tables/coord_index.cpp",
                "rules.published_hash ? step::HashSecret{} : step::secret_of(seed_)",
                "step::HashSecret{}",
            )
        ],
    ),
    Mutant(
        "a table forgets its seed when it is compacted",
        "Rule07Flooding*",
        [
            Edit(
                "src/table/entries.cpp",
                "compacted.index.emplace(format_, index_.buckets(), seed());",
                "compacted.index.emplace(format_, index_.buckets(), 0);",
            )
        ],
    ),
    Mutant(
        "keys are claimed in memory that the caller may change",
        "*Rule08ChangingInput*",
        [
            Edit(
                "src/table/insert.cpp",
                "source == KeySource::Private ? keys : keep_keys(insertion, keys);",
                "keys;",
            )
        ],
    ),
    Mutant(
        "the policy sees other keys than the shards",
        "*Rule08ChangingInput*",
        [
            Edit(
                "src/sharded/sharded_map.cpp",
                "batch.tensor = batch.tensor.clone();",
                "",
            )
        ],
    ),
    Mutant(
        "rows that add no key are left behind the table's keys",
        "*Rule09*",
        [
            Edit(
                "src/table/insert.cpp",
                "runtime::zero_bytes(keys_.row(top_ + end), (insertion.rows - end) * keys_.row_bytes);",
                "",
            )
        ],
    ),
    Mutant(
        "chunks of new keys are not moved together",
        "*Rule01Large*",
        [
            Edit(
                "src/table/insert.cpp",
                "if (end != chunks.begin(chunk)) {",
                "if (false) {",
            )
        ],
    ),
]
