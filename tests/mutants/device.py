"""Planted bugs in the kernel bodies of src/device, in the device form of the steps, and in the host
part of a device's tables.

Each names the tests that must notice it. Those of bodies run on interpreted PTX (step `test-ptx`):
only the PTX is compiled again, which takes seconds. Those of the host part run on the fiber
emulator (step `test-device`), and only the file with their tests is compiled again.

Over 400 lines, because it is one table.
"""

from __future__ import annotations

from mutants import INSERT, PROBE, Edit, Mutant

COORD_ROWS = "src/device/coord_rows.hpp"
CORE = "src/device/core.hpp"
DEVICE_ERASE = "src/device/erase.hpp"
DEVICE_FIND = "src/device/find.hpp"
DEVICE_INSERT = "src/device/insert.hpp"
ERASE = "include/tensorhash/step/erase.hpp"
EXPAND = "src/device/expand.hpp"
FLAT = "src/device/flat.hpp"
JOINS = "src/device/reduce.hpp"
MAPS = "src/device/kernel_map.hpp"
REBUILD = "src/device/rebuild.hpp"
ROUTE = "src/device/route.hpp"
ROW_INDEX = "src/device/row_index.hpp"
SEGMENTS = "src/device/segments.hpp"
STATE_TESTS = "*TableLives*:HostPart*"
TILES = "src/device/tiles.hpp"
UPDATE = "src/device/update.hpp"
VALUES = "src/device/values.hpp"


# The file of tests/device that has these tests.
PARTS = {
    "HostPart*": "host_part",
    "*DeviceTable*": "table_backend",
    "*DeviceKernelMap*": "kernel_maps",
    "DeviceRouting*": "routing",
    "DeviceRadius*": "radius",
}


def body(name: str, tests: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(f"body: {name}", tests, [Edit(file, old, new)], "test-ptx")


def host(name: str, tests: str, file: str, old: str, new: str) -> Mutant:
    edits = [Edit(file, old, new)]
    return Mutant(f"device: {name}", tests, edits, "test-device", PARTS[tests])


DEVICE_MUTANTS = [
    # Lookups.
    body(
        "find trusts the home bucket",
        STATE_TESTS,
        "include/tensorhash/step/find.hpp",
        "return find_at_home(index, hash, index.home(hash), at) ? at : find(index, hash, batch, row);",
        "return find_at_home(index, hash, index.home(hash), at), at;",
    ),
    body(
        "a tile answers only its first row",
        "*TableLives*",
        DEVICE_FIND,
        "work(first + turn, Lanes::shuffle(my_hash, turn), turn == Lanes::rank());",
        "work(first + turn, Lanes::shuffle(my_hash, turn), turn == 0);",
    ),
    body(
        "one row too many",
        "*TableLives*",
        "src/device/grid.hpp",
        "row < rows; row += Thread::grid_size()",
        "row <= rows; row += Thread::grid_size()",
    ),
    body(
        "present rows count as missing",
        STATE_TESTS,
        DEVICE_FIND,
        "here += mask[row] == 0 ? 1 : 0;",
        "here += mask[row] != 0 ? 1 : 0;",
    ),
    # A probe without end is an error, not a hang.
    body(
        "a lookup without end is not reported",
        "HostPart*",
        DEVICE_FIND,
        "if (lost) {",
        "if (false) {",
    ),
    body(
        "a claim without end is not reported",
        "HostPart*",
        DEVICE_INSERT,
        "if (c.claimed == step::Claimed::Beyond) {",
        "if (false) {",
    ),
    host(
        "the host does not look at the flag of a probe without end",
        "HostPart*",
        CORE,
        "if (now.broken != 0) {",
        "if (false) {",
    ),
    body(
        "probes have no bound",
        "HostPart*",
        PROBE,
        "if (next_bucket(index, bucket) == home) {",
        "if (false) {",
    ),
    body(
        "a corrupt index still gives rows their indices",
        "HostPart*",
        DEVICE_INSERT,
        "b.buf_indices[row] = step::kNotFound;",
        "",
    ),
    # Claims.
    body(
        "undecided rows never join",
        "*TableLives*",
        DEVICE_INSERT,
        "if (state->undecided == 0 || state->broken != 0) {",
        "if (true) {",
    ),
    body(
        "undecided rows are not counted",
        "*TableLives*",
        DEVICE_INSERT,
        "undecided += c.claimed == step::Claimed::Undecided ? 1 : 0;",
        "undecided += 0;",
    ),
    body(
        "a row joins before the first ticket is there",
        "*TableLives*",
        INSERT,
        "if (Access::kShared && Access::load(ticket) == kNoTicket) {",
        "if (false) {",
    ),
    body(
        "a lost exchange counts as won",
        "*TableLives*",
        INSERT,
        "if (expected != hash) { continue;",
        "if (false) { continue;",
    ),
    body(
        "narrow claims check, then store",
        "*TableLives*",
        INSERT,
        "if (Access::cas(word, expected, hash)) {",
        "if (Access::load(word) == expected && (Access::store(word, hash), true)) {",
    ),
    body(
        "wide claims check, then store",
        "*TableLives*",
        INSERT,
        "if (Access::cas(at, expected, to_slot(hash, mine) | (expected & WideBucket::kOverflow))) {",
        "if (Access::load(at) == expected && (Access::store(at, to_slot(hash, mine) | "
        "(expected & WideBucket::kOverflow)), true)) {",
    ),
    body(
        "a later row takes a wide slot",
        "*TableLives*",
        INSERT,
        "while (slot_ticket(seen) < mine && !Access::cas(at, seen, to_slot(seen, mine))) {",
        "while (slot_ticket(seen) > mine && !Access::cas(at, seen, to_slot(seen, mine))) {",
    ),
    body(
        "an erased slot is taken at once",
        "*TableLives*",
        PROBE,
        "if (empty != 0) { return free; }",
        "if (free.found != Found::Unknown) { return free; }",
    ),
    body(
        "keys leave no overflow bits",
        "*TableLives*",
        PROBE,
        "index.mark_overflow(bucket, hash);",
        "",
    ),
    body(
        "wide hashes have 64 bits",
        "*TableLives*",
        PROBE,
        "return reader.hash(keys + row * reader.bytes(), secret) >> 1;",
        "return reader.hash(keys + row * reader.bytes(), secret);",
    ),
    body(
        "lanes of a tile look for themselves",
        "*TableLives*",
        TILES,
        "seen = Access::load(p); } return Lanes::shuffle(seen, 0);",
        "seen = Access::load(p); } return Access::load(p);",
    ),
    body(
        "only the lanes that claimed add up their counts",
        "*TableLives*",
        DEVICE_INSERT,
        "counts.write(b, row, c, &state->broken); }); counts.add_to(state);",
        "counts.write(b, row, c, &state->broken); }); "
        "if (counts.claimed != 0) { counts.add_to(state); }",
    ),
    # Settling and publishing.
    body(
        "rows that lost count as winners",
        "*TableLives*",
        DEVICE_INSERT,
        "return is_row && step::settle(index, b, row);",
        "return is_row && (step::settle(index, b, row) || true);",
    ),
    body(
        "freed indices come from the bottom of the stack",
        "*TableLives*",
        DEVICE_INSERT,
        "free[reusable - 1 - rank]",
        "free[rank]",
    ),
    body(
        "rows that lost keep their winner's row",
        "*TableLives*",
        DEVICE_INSERT,
        "if (buf_index >= b.base) {",
        "if (false) {",
    ),
    body(
        "live bits beyond the last fresh index are set",
        "*TableLives*",
        DEVICE_INSERT,
        "bits &= ~0u >> (31 - (end - 1) % 32);",
        "bits &= ~0u;",
    ),
    body(
        "reused indices do not become live",
        "*TableLives*",
        DEVICE_INSERT,
        "fetch_or(&live[buf_index / 32], 1u << (buf_index % 32));",
        "",
    ),
    body(
        "reused indices stay on the stack",
        "*TableLives*",
        DEVICE_INSERT,
        "state->free -= reused;",
        "",
    ),
    host(
        "a failed insert leaves its claims in the state",
        "HostPart*",
        CORE,
        "queue_->launch(1, ForgetClaims{state()}); throw;",
        "throw;",
    ),
    host(
        "a cancelled insert keeps its slots",
        "*DeviceTable*",
        CORE,
        "index_.release_claims(keys_data(), insertion.batch, state(), insertion.rows);",
        "",
    ),
    # Erase.
    body(
        "rows that repeat are not marked",
        "*TableLives*",
        DEVICE_ERASE,
        "if (state->has_repeats == 0) {",
        "if (true) {",
    ),
    body(
        "repeats go unnoticed",
        "*TableLives*",
        DEVICE_ERASE,
        "if (repeats) {",
        "if (false) {",
    ),
    body(
        "every row that repeats erases",
        "*TableLives*",
        DEVICE_ERASE,
        "(!repeats || step::holds_claim(index, b, row))",
        "true",
    ),
    body(
        "narrow slots are always emptied",
        "*TableLives*",
        ERASE,
        "to_empty ? NarrowBucket::kEmpty : NarrowBucket::kErased",
        "NarrowBucket::kEmpty",
    ),
    body(
        "wide slots are always emptied",
        "*TableLives*",
        ERASE,
        "to_empty ? WideBucket::kEmpty : WideBucket::kErased | overflow",
        "WideBucket::kEmpty | overflow",
    ),
    body(
        "freed indices overwrite each other",
        "*TableLives*",
        DEVICE_ERASE,
        "free[held + rank] = batch.buf_indices[row];",
        "free[held] = batch.buf_indices[row];",
    ),
    body(
        "freed indices are lost",
        "*TableLives*",
        DEVICE_ERASE,
        "state->free += state->released;",
        "",
    ),
    # Rebuilds.
    body(
        "dead entries are placed",
        "*TableLives*",
        REBUILD,
        "if ((live[row / 32] >> (row % 32) & 1) == 0) {",
        "if (false) {",
    ),
    body(
        "entries are placed without an exchange",
        "*TableLives*",
        INSERT,
        "if (Access::cas(&index.buckets[bucket].words[lane], expected, hash)) {",
        "if ((Access::store(&index.buckets[bucket].words[lane], hash), expected == 0)) {",
    ),
    body(
        "a new index keeps the old count of slots",
        "HostPart*",
        REBUILD,
        "state->occupied = state->top - state->free;",
        "",
    ),
    body(
        "a compacted table keeps its free indices",
        "*DeviceTable*",
        REBUILD,
        "state->free = 0;",
        "",
    ),
    body(
        "a compacted table has live bits behind its top",
        "*DeviceTable*",
        REBUILD,
        "live[word] = left >= 32 ? ~0u : (1u << left) - 1;",
        "live[word] = ~0u;",
    ),
    # Scans and lists.
    body(
        "the scan reads before all warps have written",
        "Scan*",
        SEGMENTS,
        "sync_block(); Count below = 0;",
        "Count below = 0;",
    ),
    body(
        "lists begin at row 0",
        "Listing*",
        SEGMENTS,
        "out[rank] = static_cast<std::uint32_t>(first + row);",
        "out[rank] = static_cast<std::uint32_t>(row);",
    ),
    body(
        "compact gives every entry the rank of the next one",
        "*DeviceTable*",
        SEGMENTS,
        "out[row] = static_cast<std::int32_t>(rank);",
        "out[row] = static_cast<std::int32_t>(rank) + 1;",
    ),
    body(
        "rows are numbered from 1",
        "*DeviceTable*",
        VALUES,
        "out[row] = static_cast<std::uint32_t>(row);",
        "out[row] = static_cast<std::uint32_t>(row) + 1;",
    ),
    body(
        "segments count behind the last row",
        "Listing*",
        SEGMENTS,
        "rows, [&](std::uint64_t row, bool is_row) { return is_row && choice(first + row); }, "
        "[&](std::uint64_t segment",
        "rows, [&](std::uint64_t row, bool) { return choice(first + row); }, "
        "[&](std::uint64_t segment",
    ),
    # Values.
    body(
        "missing rows are zeros, whatever the caller gave",
        "Values*",
        VALUES,
        "} else if (missing != nullptr) {",
        "} else if (false) {",
    ),
    body(
        "scatter ignores the mask",
        "Values*",
        VALUES,
        "if (mask[row] == 0) {",
        "if (false) {",
    ),
    body(
        "strided copies swap the axes",
        "Values*",
        VALUES,
        "* strides[axis];",
        "* strides[axes - 1 - axis];",
    ),
    body(
        "old owners are not forgotten",
        "Values*",
        VALUES,
        "step::Shared::store(&owners[indices[row]], 0u);",
        "step::Shared::store(&owners[indices[row]], 1u << 31);",
    ),
    body(
        "any row owns an entry, not the last one",
        "Values*",
        VALUES,
        "fetch_max(&owners[indices[row]], static_cast<std::uint32_t>(row) + 1);",
        "step::Shared::store(&owners[indices[row]], static_cast<std::uint32_t>(row) + 1);",
    ),
    body(
        "early rows own entries too",
        "Values*",
        VALUES,
        "owners[indices[row]] == row + 1;",
        "owners[indices[row]] >= row + 1;",
    ),
    body(
        "atomic minima are maxima",
        "Joins*",
        JOINS,
        "fetch_min(at, value);",
        "fetch_max(at, value);",
    ),
    body(
        "every row of an entry joins all of its rows",
        "Joins*",
        JOINS,
        "if (first > 0 && indices[first - 1] == index) {",
        "if (false) {",
    ),
    body(
        "rows that are stored already join again",
        "Joins*",
        JOINS,
        "if (joined.mask[row] == 0) {",
        "if (true) {",
    ),
    body(
        "the NaN of infinite differences is another one",
        "Joins*",
        JOINS,
        "constexpr Bits kNan = ~(kQuiet - 1);",
        "constexpr Bits kNan = ~(kQuiet - 1) << 1 >> 1;",
    ),
    # Optimizer steps.
    body(
        "summed gradients are also taken one by one",
        "DeviceUpdate*",
        UPDATE,
        "if (!sums) { take(",
        "if (true) { take(",
    ),
    body(
        "half weights are not rounded between steps",
        "DeviceUpdate*",
        UPDATE,
        "weight.value = Type::load(Type::store(weight.value));",
        "",
    ),
    body(
        "summed gradients count as one step per row",
        "DeviceUpdate*",
        UPDATE,
        "if (index != step::kNotFound && !(sums && repeats)) {",
        "if (index != step::kNotFound) {",
    ),
    body(
        "momentum without Nesterov looks ahead",
        "DeviceUpdate*",
        UPDATE,
        "ahead == T(0) ? w.first : gradient + ahead * w.first;",
        "gradient + momentum * w.first;",
    ),
    body(
        "Adagrad adds gradients, not their squares",
        "DeviceUpdate*",
        UPDATE,
        "w.first += gradient * gradient;",
        "w.first += gradient;",
    ),
    body(
        "Adam corrects both moments by the powers of the first",
        "DeviceUpdate*",
        UPDATE,
        "square_root(1 - integer_power(beta2, w.steps))",
        "square_root(1 - integer_power(beta1, w.steps))",
    ),
    body(
        "AdamW does not decay the weight",
        "DeviceUpdate*",
        UPDATE,
        "T const weight = keep * w.value;",
        "T const weight = w.value;",
    ),
    body(
        "row-wise Adagrad takes the rows of the first entry twice",
        "DeviceUpdate*",
        "src/device/row_wise.hpp",
        "|| (first > 0 && given.indices[first - 1] == index)) {",
        "|| (first > 1 && given.indices[first - 1] == index)) {",
    ),
    body(
        "update reports what it added",
        "DeviceUpdate*",
        VALUES,
        "mask[row] ^= 1;",
        "mask[row] ^= 0;",
    ),
    # Distinct rows.
    body(
        "indices of distinct rows keep their low 8 bits",
        "DeviceUnique*",
        VALUES,
        "to[row] = from[row];",
        "to[row] = from[row] & 0xff;",
    ),
    body(
        "every row counts twice",
        "DeviceUnique*",
        VALUES,
        "fetch_add(&counts[indices[row]], std::uint64_t{1});",
        "fetch_add(&counts[indices[row]], std::uint64_t{2});",
    ),
    # Streams.
    host(
        "writers do not wait for readers of other streams",
        "*DeviceTable*",
        "src/device/order.hpp",
        "if (writes) { wait_for(reads_); }",
        "if (writes) { wait_for({}); }",
    ),
    host(
        "readers do not wait for the writer of another stream",
        "*DeviceTable*",
        "src/device/order.hpp",
        "wait_for(last_write_);",
        "",
    ),
    # Coordinates.
    body(
        "empty slots have row 0",
        "*Flat*",
        FLAT,
        "table.slots[slot] = {step::kEmptyKey, step::kNoRow, 0};",
        "table.slots[slot] = {step::kEmptyKey, 0, 0};",
    ),
    body(
        "a full flat table is not reported",
        "*Flat*",
        FLAT,
        "raise_flag(&state->full);",
        "",
    ),
    body(
        "the last row of a coordinate stays",
        "*Flat*",
        "include/tensorhash/step/flat.hpp",
        "while (row < there && !Access::cas(&slot.row, there, row)) {",
        "if (row < there) { Access::store(&slot.row, row); } while (false) {",
    ),
    body(
        "lookups do not know the longest probe",
        "*Flat*",
        FLAT,
        "table.longest = state->longest;",
        "",
    ),
    body(
        "the longest probe is not recorded",
        "*Flat*",
        FLAT,
        "if (longest != 0) {",
        "if (longest > 1000) {",
    ),
    body(
        "a tile takes the answer of its first lane",
        "*Flat*",
        FLAT,
        "return Lanes::shuffle(slot.row, step::lowest_bit(ends));",
        "return Lanes::shuffle(slot.row, 0);",
    ),
    body(
        "coarse cells round towards zero",
        "*DeviceKernelMap*",
        MAPS,
        "i % 4 == 0 ? coords[i] : coords[i] >> bits;",
        "i % 4 == 0 ? coords[i] : coords[i] / (1 << bits);",
    ),
    body(
        "a full table keeps the keys of a failed batch",
        "*DeviceCoordStore*",
        FLAT,
        "slot = {step::kEmptyKey, step::kNoRow, 0}; } }); } };",
        "} }); } };",
    ),
    body(
        "a grown table forgets its longest probe",
        "*DeviceCoordStore*",
        FLAT,
        "}); raise_longest(state, longest);",
        "});",
    ),
    body(
        "a number that does not fit int32 is not noticed",
        "*DeviceCoordStore*",
        COORD_ROWS,
        "mine = fits_int32(value) ? mine : row * from.columns + c;",
        "",
    ),
    body(
        "the last number outside counts",
        "*DeviceCoordStore*",
        COORD_ROWS,
        "mine = !inside && at < mine ? at : mine;",
        "mine = !inside ? at : mine;",
    ),
    body(
        "different arrays count as equal",
        "*DeviceKernelMap*",
        COORD_ROWS,
        "raise_flag(differ);",
        "",
    ),
    body(
        "the last of equal wide rows stays",
        "*DeviceCoordStore*",
        ROW_INDEX,
        "if (number < seen) { fetch_min(slot, number); }",
        "step::Shared::store(slot, number);",
    ),
    body(
        "a full table keeps the wide rows of a failed batch",
        "*DeviceCoordStore*",
        ROW_INDEX,
        "table.slots[at] = step::kNoRow;",
        "",
    ),
    body(
        "wide rows are compared without their last column",
        "*DeviceCoordStore*",
        ROW_INDEX,
        "if (c < columns) { std::int32_t const there",
        "if (c + 1 < columns) { std::int32_t const there",
    ),
    body(
        "queries outside int32 are cut",
        "*DeviceCoordStore*",
        ROW_INDEX,
        "found[row] = fits ? lookup.find(query) : step::kNoRow;",
        "found[row] = lookup.find(query);",
    ),
    body(
        "queries are not shifted",
        "*DeviceCoordStore*",
        ROW_INDEX,
        "? value + offsets.at(k, c) : value;",
        "? value : value;",
    ),
    body(
        "any repeated row is named",
        "*DeviceKernelMap*",
        ROW_INDEX,
        "fetch_min(repeat, row);",
        "step::Shared::store(repeat, row);",
    ),
    body(
        "repeated rows are listed",
        "*DeviceCoordStore*",
        ROW_INDEX,
        "return found[row] == row; }",
        "return found[row] != step::kNoRow; }",
    ),
    body(
        "rows that were there are added again",
        "*DeviceCoordStore*",
        ROW_INDEX,
        "return found[row] == step::kNoRow; }",
        "return found[row] != row; }",
    ),
    body(
        "one coarse cell is never asked",
        "*DeviceKernelMap*",
        MAPS,
        "bit < 32 && first + bit < box.cells;",
        "bit < 32 && first + bit + 1 < box.cells;",
    ),
    body(
        "coarse cells out of reach are asked",
        "*DeviceKernelMap*",
        MAPS,
        "at <= (center + box.half[c - 1]) >> box.bits;",
        "at <= center + box.half[c - 1];",
    ),
    body(
        "queries are not scaled",
        "*DeviceKernelMap*",
        MAPS,
        "return std::int64_t{rows[row * columns + c]} * scale[c];",
        "return rows[row * columns + c];",
    ),
    body(
        "pairs are not in the order of their queries",
        "*DeviceKernelMap*",
        MAPS,
        "out_rows[rank] = static_cast<std::int32_t>(pair.row);",
        "out_rows[rank] = static_cast<std::int32_t>(rank);",
    ),
    body(
        "pairs have places of 32 bits",
        "*DeviceKernelMap*",
        MAPS,
        "in_rows[rank] = static_cast<std::int32_t>(found",
        "in_rows[static_cast<std::uint32_t>(rank)] = static_cast<std::int32_t>(found",
    ),
    body(
        "the last offset has no end",
        "*DeviceKernelMap*",
        MAPS,
        "is_end ? *total :",
        "is_end ? 0 :",
    ),
    host(
        "chunks write at the beginning",
        "*DeviceKernelMap*",
        "src/device/kernel_maps.hpp",
        "lookups.counts.data() + segments_before(first), static_cast",
        "lookups.counts.data(), static_cast",
    ),
    host(
        "every chunk has the first offsets",
        "*DeviceKernelMap*",
        "src/device/kernel_maps.hpp",
        "body.offsets += std::uint64_t{first} * request_.out.columns;",
        "",
    ),
    body(
        "sums count from the first of their chunk",
        "DeviceBatchedRows*",
        EXPAND,
        "std::uint64_t const k = (begin + i) / base_rows;",
        "std::uint64_t const k = i / base_rows;",
    ),
    body(
        "quotients round towards zero",
        "DeviceBatchedRows*",
        EXPAND,
        "quotient - (inexact && value < 0 ? 1 : 0)",
        "quotient - (inexact && value < -100 ? 1 : 0)",
    ),
    body(
        "the largest batch has no rows",
        "DeviceBatchedRows*",
        EXPAND,
        "auto const here = static_cast<std::uint64_t>(batch) + 1;",
        "auto const here = static_cast<std::uint64_t>(batch);",
    ),
    body(
        "batches that occur come from the second column",
        "DeviceBatchedRows*",
        EXPAND,
        "out[row] = view.at(row, 0);",
        "out[row] = view.at(row, 1);",
    ),
    body(
        "batches are not ranked",
        "DeviceBatchedRows*",
        EXPAND,
        "sorted != nullptr ? rank_of(batch) : batch",
        "batch",
    ),
    # Routing.
    body(
        "unsigned keys are routed as signed ones",
        "DeviceRouting*",
        ROUTE,
        "by == ShardBy::Signed, shards);",
        "true, shards);",
    ),
    body(
        "the sort by shard does not know the rows",
        "DeviceRouting*",
        ROUTE,
        "order[row] = static_cast<std::uint32_t>(row);",
        "order[row] = 0;",
    ),
    body(
        "empty shards have no begin",
        "DeviceRouting*",
        ROUTE,
        "row == 0 ? 0 : shard[row - 1] + 1;",
        "row == rows || row == 0 ? 0 : shard[row];",
    ),
    body(
        "indices of all shards look like those of shard 0",
        "DeviceRouting*",
        ROUTE,
        "static_cast<std::int64_t>(high << 32 | indices[i]);",
        "static_cast<std::int64_t>(indices[i]);",
    ),
    body(
        "masks stay in the order of the shards",
        "DeviceRouting*",
        ROUTE,
        "out_mask[row] = mask[i];",
        "out_mask[i] = mask[i];",
    ),
    host(
        "rows are sorted by too few bits of their shard",
        "DeviceRouting*",
        "src/device/routed.hpp",
        "static_cast<int>(std::bit_width(shards - 1))",
        "static_cast<int>(std::bit_width(shards - 1)) - 1",
    ),
    # Shrinking and products.
    body(
        "the end of the live entries is that of their word",
        "*DeviceTable*",
        "src/device/shrink.hpp",
        "* 32 + count_bits(bits)",
        "* 32 + 32",
    ),
    body(
        "shrinking keeps the number of free indices",
        "*DeviceTable*",
        "src/device/shrink.hpp",
        "state->free -= state->top - end;",
        "",
    ),
    body(
        "free indices are kept from the end on",
        "*DeviceTable*",
        SEGMENTS,
        "return words[row] < limit;",
        "return words[row] >= limit;",
    ),
    body(
        "products of an entry skip its last row",
        "Joins*:*DeviceTable*",
        JOINS,
        "if (joined.mask[row] == 0) {",
        "if (joined.mask[row] == 0 && (!std::is_same_v<Op, JoinProd> || j + 1 < rows)) {",
    ),
    body(
        "lookups see the batch's base as 0",
        "*TableLives*",
        DEVICE_FIND,
        "Index const index(view); BatchView const b = with_base(batch, state);",
        "Index const index(view); BatchView const b = batch;",
    ),
    body(
        "every lane of a tile writes its own answer",
        "*TableLives*",
        DEVICE_FIND,
        "if (is_mine) { write_match(b, row, at, &state->broken); }",
        "if (!is_mine) { write_match(b, row, at, &state->broken); }",
    ),
    body(
        "claims of a tile count once per lane",
        "*TableLives*",
        DEVICE_INSERT,
        "if (is_mine) { counts.write(b, row, c, &state->broken); }",
        "counts.write(b, row, c, &state->broken);",
    ),
    body(
        "forgotten claims stay in the state",
        "*DeviceTable*:HostPart*",
        DEVICE_INSERT,
        "struct ForgetClaims { using Shared = NoShared; State* state; "
        "TH_STEP void operator()(NoShared&) const { if (Thread::in_grid() == 0) {",
        "struct ForgetClaims { using Shared = NoShared; State* state; "
        "TH_STEP void operator()(NoShared&) const { if (false) {",
    ),
    body(
        "lookups of a kernel map ignore the offset",
        "*DeviceKernelMap*",
        MAPS,
        "return queries.scaled(row, c) + offset[c]; },",
        "return queries.scaled(row, c) + 0 * offset[c]; },",
    ),
    # Views.
    body(
        "a view compares floats as bytes",
        "DeviceView*",
        "include/tensorhash/device_view.hpp",
        "view.float_bytes = kFloatBytes;",
        "view.float_bytes = 0;",
    ),
    body(
        "a view gives the last index for a key that is not there",
        "DeviceView*",
        "include/tensorhash/device_view.hpp",
        "return at < kAboveAllEntries ? static_cast<std::int32_t>(at) : -1;",
        "return static_cast<std::int32_t>(at & kAboveAllEntries);",
    ),
]
