"""Bugs in the choice of buckets, in growth, shrinking and erasure. report.md has no rows for them until they run."""

from __future__ import annotations

from mutants import ENGINE, Edit, Mutant

INDEX_MUTANTS = [
    Mutant(
        "the home of the largest hash lies past the last bucket",
        "*Rule07*:*Rule03*",
        [
            Edit(
                "include/tensorhash/step/bucket.hpp",
                "return bits * bucket_count >> 32;",
                "return (std::uint64_t{bits} + 1) * bucket_count >> 32;",
            )
        ],
    ),
    Mutant(
        "a growing index overwrites buckets that it has not read",
        "*Rule03*",
        [
            Edit(
                "src/index/bucket_index_spread.cpp",
                "while (to.first_after(from, begin) < left) {",
                "while (begin > left * 3 / 4) {",
            ),
            Edit(
                "src/index/bucket_index_spread.cpp",
                "std::uint64_t begin = left * buckets_ / buckets;",
                "std::uint64_t begin = left / 2;",
            ),
        ],
    ),
    Mutant(
        "shrink_to_fit drops the last entry",
        "*Rule03*",
        [
            Edit(
                "src/table/shrink.cpp",
                "std::uint64_t const end = end_of(live_);",
                "std::uint64_t const end = end_of(live_) - (size() > 0 ? 1 : 0);",
            )
        ],
    ),
    Mutant(
        "a row erases a wide key that an earlier row has erased",
        "*Rule02*:*Rule01*",
        [
            Edit(
                "src/cpu/erase_loops.hpp",
                "index.ticket(at.position) == step::to_ticket(at.buf_index)) {",
                "true) {",
            )
        ],
    ),
    Mutant(
        "entries that two threads erased are not put back",
        "*Contested*",
        [
            Edit(
                "src/table/contested.cpp",
                "index.put_back(key_buffer, rows, list);",
                "",
            )
        ],
    ),
    Mutant(
        "of equal keys in one erase the faster thread's row is True",
        "*Contested*",
        [
            Edit(
                "src/table/contested.cpp",
                "if (!choose_candidates(batch)) {",
                "if (choose_candidates(batch)) {",
            )
        ],
    ),
    Mutant(
        "rows that were tried before growth keep their claims",
        "*Rule03*:*Rule01*",
        [
            Edit(
                "src/table/insert.cpp",
                "            index_.release_claims(key_buffer(), batch, done);\n            return is_tight",
                "            return is_tight",
            )
        ],
    ),
    Mutant(
        "a row that lost takes the answer of a row that lost too",
        "EngineLevels*",
        [
            Edit(
                ENGINE,
                "if (answer == met && batch.mask[met - batch.base] == 0) {",
                "if (answer == kNotFound) {",
            )
        ],
    ),
    Mutant(
        "a table that shrank and grew shows erased entries",
        "Rule03Views*",
        [
            Edit(
                "src/table/shrink.cpp",
                "runtime::zero_bytes(column.block->data() + used, column.block->bytes() - used);",
                "",
            )
        ],
    ),
]
