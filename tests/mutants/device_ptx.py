"""Planted bugs in device code that the PTX interpreter must notice (step `test-ptx`).

Most are races. Fibers change at atomic operations only, so they cannot see a plain access that
should be atomic.
"""

from __future__ import annotations

from mutants import INSERT, PROBE, Edit, Mutant

ATOMIC_INDEX = (
    "typename step::IndexOf<Reader, step::Shared>::type const index(view); "
    "BatchView const b = with_base(batch, state);"
)
PLAIN_INDEX = ATOMIC_INDEX.replace("step::Shared", "step::Exclusive")
DEVICE_ERASE = "src/device/erase.hpp"
DEVICE_INSERT = "src/device/insert.hpp"
SEGMENTS = "src/device/segments.hpp"
VALUES = "src/device/values.hpp"


def ptx(name: str, tests: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(f"PTX: {name}", tests, [Edit(file, old, new)], "test-ptx")


PTX_MUTANTS = [
    # Races: plain accesses.
    ptx(
        "claims load and store plainly",
        "*TableLives*",
        DEVICE_INSERT,
        f"{ATOMIC_INDEX} ClaimCounts counts;",
        f"{PLAIN_INDEX} ClaimCounts counts;",
    ),
    ptx(
        "the first ticket is a plain store",
        "*TableLives*",
        INSERT,
        "Access::store(&index.buckets[slot.bucket].tickets[slot.lane], mine);",
        "index.buckets[slot.bucket].tickets[slot.lane] = mine;",
    ),
    ptx(
        "slots are released with plain stores",
        "*TableLives*",
        DEVICE_ERASE,
        f"{ATOMIC_INDEX} bool const repeats",
        f"{PLAIN_INDEX} bool const repeats",
    ),
    ptx(
        "live bits are cleared without an exchange",
        "*TableLives*",
        DEVICE_ERASE,
        "repeats |= (fetch_and(&live[buf_index / 32], ~bit) & bit) == 0;",
        "repeats |= (live[buf_index / 32] & bit) == 0; live[buf_index / 32] &= ~bit;",
    ),
    ptx(
        "live bits of reused indices are set without an exchange",
        "*TableLives*",
        DEVICE_INSERT,
        "fetch_or(&live[buf_index / 32], 1u << (buf_index % 32));",
        "live[buf_index / 32] |= 1u << (buf_index % 32);",
    ),
    ptx(
        "live bits of fresh indices are set without an exchange",
        "*TableLives*",
        DEVICE_INSERT,
        "fetch_or(&live[word], bits);",
        "live[word] |= bits;",
    ),
    ptx(
        "flags are raised with plain stores",
        "*TableLives*:HostPart*",
        "src/device/counters.hpp",
        "step::Shared::store(flag, 1u);",
        "*flag = 1u;",
    ),
    ptx(
        "owners are forgotten with plain stores",
        "Values*",
        VALUES,
        "step::Shared::store(&owners[indices[row]], 0u);",
        "owners[indices[row]] = 0u;",
    ),
    ptx(
        "rows mark slots with plain accesses",
        "*TableLives*",
        DEVICE_ERASE,
        f"{ATOMIC_INDEX} for_rows(rows, [&](std::uint64_t row) {{ if (b.mask[row] != 0) {{",
        f"{PLAIN_INDEX} for_rows(rows, [&](std::uint64_t row) {{ if (b.mask[row] != 0) {{",
    ),
    ptx(
        "claims are released with plain stores",
        "DeviceTable*",
        DEVICE_ERASE,
        f"{ATOMIC_INDEX} std::uint32_t to_erased = 0; for_rows",
        f"{PLAIN_INDEX} std::uint32_t to_erased = 0; for_rows",
    ),
    ptx(
        "entries are placed with plain stores",
        "*TableLives*",
        "src/device/rebuild.hpp",
        "typename step::IndexOf<Reader, step::Shared>::type const index(view);",
        "typename step::IndexOf<Reader, step::Exclusive>::type const index(view);",
    ),
    ptx(
        "flat claims load and store plainly",
        "*Flat*",
        "src/device/flat.hpp",
        "step::flat_claim<step::Shared>(table, key,",
        "step::flat_claim<step::Exclusive>(table, key,",
    ),
    ptx(
        "integers are joined without atomic operations",
        "Joins*",
        "src/device/reduce.hpp",
        "fetch_max(at, value);",
        "*at = *at < value ? value : *at;",
    ),
    # Races: order.
    ptx(
        "rows that lost read their winner's index while it is published",
        "*TableLives*",
        DEVICE_INSERT,
        "[&](std::uint64_t row, bool is_row) { return is_row && b.mask[row] != 0; },",
        "[&](std::uint64_t row, bool is_row) {"
        " if (is_row && b.mask[row] == 0 && b.buf_indices[row] >= b.base) {"
        " b.buf_indices[row] = b.buf_indices[b.buf_indices[row] - b.base]; }"
        " return is_row && b.mask[row] != 0; },",
    ),
    ptx(
        "the scan reads before all warps have written",
        "Scan*",
        SEGMENTS,
        "sync_block(); Count below = 0;",
        "Count below = 0;",
    ),
    ptx(
        "the scan writes again while other warps still read",
        "Scan*",
        SEGMENTS,
        "sync_block(); if (at < size) {",
        "if (at < size) {",
    ),
    ptx(
        "a tile loads tickets as 8-byte words",
        "*TableLives*",
        "src/device/tiles.hpp",
        "device::TileWords<N, Access, NarrowBucket::kLanes> words_;",
        "device::TileWords<N, Access, 8> words_;",
    ),
    # Memory.
    ptx(
        "the scan reads counts that were never written",
        "HostPart*",
        DEVICE_INSERT,
        "for_rows(segments_of(rows), [&](std::uint64_t segment) { counts[segment] = 0; });",
        "",
    ),
    ptx(
        "one row too many",
        "*TableLives*",
        "src/device/grid.hpp",
        "row < rows; row += Thread::grid_size()",
        "row <= rows; row += Thread::grid_size()",
    ),
    ptx(
        "a batch is finished in a corrupt index",
        "HostPart*",
        DEVICE_INSERT,
        "if (state->broken != 0) { return for_rows(rows,",
        "if (false) { return for_rows(rows,",
    ),
    # Loops and masks.
    ptx(
        "probes have no bound",
        "HostPart*",
        PROBE,
        "if (next_bucket(index, bucket) == home) {",
        "if (false) {",
    ),
    ptx(
        "only the lanes that claimed add up their counts",
        "*TableLives*",
        DEVICE_INSERT,
        "counts.write(b, row, c, &state->broken); }); counts.add_to(state);",
        "counts.write(b, row, c, &state->broken); }); "
        "if (counts.claimed != 0) { counts.add_to(state); }",
    ),
]
