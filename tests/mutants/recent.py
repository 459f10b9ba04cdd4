"""Bugs in recent code, from shards to searches. report.md has no rows for them until they run.

Over 400 lines, because it is one table.
"""

from __future__ import annotations

from mutants import Edit, Mutant

RECENT_MUTANTS = [
    Mutant(
        "a list of wanted rows loses its last row",
        "*Rule01*:WantedRows*",
        [
            Edit(
                "src/runtime/wanted_rows.hpp",
                "for (std::size_t i = 0; i < count; ++i) {",
                "for (std::size_t i = 0; i + 1 < count; ++i) {",
            )
        ],
    ),
    Mutant(
        "numbers are rounded twice on their way to float16",
        "Casts*",
        [
            Edit(
                "src/tensor/casts.hpp",
                "return std::bit_cast<float>(is_larger ? bits - 1 : bits + 1);",
                "return nearest;",
            )
        ],
    ),
    Mutant(
        "memory is freed while another thread's work reads it",
        "DeviceTensor*",
        [
            Edit(
                "src/tensor/work.cpp",
                "return stream.handle != kPerThreadStream || thread == runtime::thread_number();",
                "return true;",
            )
        ],
    ),
    Mutant(
        "a view does not know who writes its tensor",
        "DeviceTensor*",
        [Edit("src/tensor/tensor.cpp", "made.work_ = work_;", "")],
    ),
    Mutant(
        "a write does not wait for the reads of other threads",
        "DeviceTensor*",
        [
            Edit(
                "src/tensor/work.cpp",
                "wait_for_reads(stream); if (!home_.is(stream)) {",
                "if (!home_.is(stream)) {",
            )
        ],
    ),
    Mutant(
        "a write of another thread does not wait for the reads of the first one",
        "DeviceTensor*",
        [Edit("src/tensor/work.cpp", "wait_for_home(stream); } }", "} }")],
    ),
    Mutant(
        "answers of shards on other devices are not brought back",
        "ShardedOnDevices*",
        [
            Edit(
                "src/sharded/grouped.cpp",
                "if (several) { mask_->collect(); }",
                "",
            )
        ],
    ),
    Mutant(
        "a shard on another device reads its keys too early",
        "ShardedOnDevices*",
        [
            Edit(
                "src/tensor/tensor.cpp",
                'Allocator& memory = memory_of(runs_on, "device"); from.wait_on(stream);',
                'Allocator& memory = memory_of(runs_on, "device");',
            )
        ],
    ),
    Mutant(
        "prepared shards on devices are not cancelled",
        "ShardedOnDevices*",
        [
            Edit(
                "src/sharded/sharded_map.cpp",
                "tables[shard]->cancel(std::move(prepared[shard]));",
                "",
            )
        ],
    ),
    Mutant(
        "body: two threads write the begin of a shard",
        "DeviceRouting*",
        [
            Edit(
                "src/device/route.hpp",
                "row == 0 ? 0 : shard[row - 1] + 1;",
                "row == 0 ? 0 : shard[row - 1];",
            )
        ],
        "test-ptx",
    ),
    Mutant(
        "row-wise Adagrad adds the sum of squares, not their mean",
        "*Update*",
        [
            Edit(
                "src/tensor/powers.hpp",
                "((a + b) + (c + d)) / static_cast<T>(count)",
                "((a + b) + (c + d))",
            )
        ],
    ),
    Mutant(
        "AdamW decays the gradient, too",
        "*Update*",
        [
            Edit(
                "src/table/steps.cpp",
                "adam.decoupled_weight_decay ? 0 : adam.weight_decay",
                "adam.weight_decay",
            )
        ],
    ),
    Mutant(
        "a mirrored convolution keeps the order of its offsets",
        "*Convolution*",
        [
            Edit(
                "src/conv/convolve.cpp",
                "use_.mirrored ? offsets_ - 1 - k : k;",
                "k;",
            )
        ],
    ),
    Mutant(
        "a plan does not check the order over the cuts of its check",
        "*Plan*",
        [
            Edit(
                "src/conv/plan.cpp",
                "static_cast<std::int64_t>(end) + 1);",
                "static_cast<std::int64_t>(end));",
            )
        ],
    ),
    Mutant(
        "a plan takes one row beyond the features",
        "*Plan*",
        [
            Edit(
                "src/conv/plan.cpp",
                "static_cast<std::int64_t>(most) < limit;",
                "static_cast<std::int64_t>(most) <= limit;",
            )
        ],
    ),
    Mutant(
        "the gradient of weights has only the first part of an offset",
        "*Conv*",
        [
            Edit(
                "src/conv/weight_gradient.cpp",
                "part != last; ++part) {",
                "part != last; part = last) {",
            )
        ],
    ),
    Mutant(
        "the head of a string holds bytes from before its begin",
        "*String*",
        [
            Edit(
                "src/strings/string_hash.hpp",
                "bytes[i] = static_cast<unsigned char>(i < kBefore ? i : 0x80);",
                "bytes[i] = static_cast<unsigned char>(i % kBefore);",
            )
        ],
    ),
    Mutant(
        "a string is the one that its tag suggests",
        "*String*",
        [
            Edit(
                "src/strings/string_loops.cpp",
                "!holds(table, batch.numbers[row], batch.strings[row], batch.heads[row])",
                "table.size == 0",
            )
        ],
    ),
    Mutant(
        "the next thread's new strings keep their own numbers",
        "*String*",
        [
            Edit(
                "src/strings/string_index.cpp",
                "numbers[static_cast<std::size_t>(~rows[row])]",
                "~rows[row]",
            )
        ],
    ),
    Mutant(
        "a key changes on its way to its rank",
        "RankBatch*",
        [
            Edit(
                "src/ranks/rank_batch.cpp",
                "batch.tensor = batch.tensor.clone();",
                "batch.tensor = batch.tensor.contiguous();",
            )
        ],
    ),
    Mutant(
        "every row that repeats a key inserted it",
        "RankBatch*",
        [
            Edit(
                "src/ranks/rank_batch.cpp",
                "mask[row] = given >= 0 && (first == nullptr || first[row]);",
                "mask[row] = given >= 0 && (first == nullptr || first[0]);",
            )
        ],
    ),
    Mutant(
        "rows of the rank itself are read from the received ones",
        "RankBatch*",
        [
            Edit(
                "src/ranks/rank_batch.cpp",
                ": static_cast<std::uint32_t>(index[at]) | table::kOther;",
                ": static_cast<std::uint32_t>(index[at]);",
            )
        ],
    ),
    Mutant(
        "answers of later ranks fall on places of the rank itself",
        "RankBatch*",
        [
            Edit(
                "src/ranks/rank_batch.cpp",
                "return answer < own_places.begin ? answer : answer + own_places.count();",
                "return answer <= own_places.begin ? answer : answer + own_places.count();",
            )
        ],
    ),
    Mutant(
        "shared memory is opened whatever its name",
        "SharedMemory*",
        [
            Edit(
                "src/ranks/shared_memory.cpp",
                'if (found != "/memfd:" + name + " (deleted)")',
                'if (found.substr(0, 7) != "/memfd:")',
            )
        ],
    ),
    Mutant(
        "the oldest of the kept messages is taken as the newest",
        "SharedMemory*",
        [
            Edit(
                "src/ranks/shared_memory.cpp",
                "if (static_cast<std::int32_t>(seen - number) > 0)",
                "if (static_cast<std::int32_t>(seen - number) >= 0)",
            )
        ],
    ),
    Mutant(
        "a batch that repeats itself looks like one of distinct keys",
        "RankBatch*",
        [Edit("src/ranks/repeats.cpp", "+ step::mix(run) % (part - kRun + 1)", "")],
    ),
    Mutant(
        "equal neighbours count as pairs of far rows",
        "RankBatch*",
        [Edit("src/ranks/repeats.cpp", "number[row] < before_run &&", "before_run <= known &&")],
    ),
    Mutant(
        "sums of an expansion leave their block without a carry",
        "ExpandBlocks*:*/ExpandBlocks*",
        [
            Edit(
                "src/coords/rows/cell_frame.cpp",
                "(offset[axis] >> frame.side_bits) + (to >> frame.side_bits);",
                "offset[axis] >> frame.side_bits;",
            )
        ],
    ),
    Mutant(
        "batches share the blocks of an expansion",
        "ExpandBlocks*:*/ExpandBlocks*",
        [
            Edit(
                "src/coords/rows/cell_frame.hpp",
                "frame.batch_weight = blocks;",
                "frame.batch_weight = 0;",
            )
        ],
    ),
    Mutant(
        "a sum that two offsets reach comes out twice",
        "ExpandBlocks*:*/ExpandBlocks*",
        [
            Edit(
                "src/coords/rows/expand_blocks.cpp",
                "blocks_.clear(reached[step.delta], bit);",
                "",
            )
        ],
    ),
    Mutant(
        "an expansion repeats its rows",
        "ExpandBlocks*:*/ExpandBlocks*",
        [
            Edit(
                "src/coords/rows/expand_blocks.cpp",
                "blocks_.clear(home, home_bits_[home]);",
                "",
            )
        ],
    ),
    Mutant(
        "a voxel that leaves its bits meets another one",
        "*VoxelMeans*",
        [
            Edit(
                "src/coords/voxels/voxel_means.cpp",
                "voxel >= -kReach && voxel < kReach;",
                "voxel >= -kReach && voxel <= kReach;",
            )
        ],
    ),
    Mutant(
        "the mean of a voxel overflows with the difference of its points",
        "*VoxelMeans*",
        [
            Edit(
                "src/coords/voxels/voxel_means.cpp",
                "if (std::isfinite(mean[lane])) {",
                "{",
            )
        ],
    ),
    Mutant(
        "a table of words forgets them when it grows",
        "WordNumbers*:*DataOverThreads*",
        [
            Edit(
                "src/cpu/word_numbers.cpp",
                "loops_->refill(table_);",
                "",
            )
        ],
    ),
    Mutant(
        "word 0 gets a second number when the table grows",
        "WordNumbers*:*DataOverThreads*",
        [
            Edit(
                "src/cpu/word_numbers.cpp",
                "table_.zero = old.zero;",
                "",
            )
        ],
    ),
    Mutant(
        "a thread adds its rows before it is its turn",
        "*FewGroups*",
        [
            Edit(
                "src/data/few_groups.cpp",
                "            fold_turns_[which].await(chunk);\n",
                "",
            )
        ],
    ),
    Mutant(
        "rows keep the number that new words have before they are numbered",
        "*FewGroups*",
        [
            Edit(
                "src/data/few_groups.cpp",
                "if (fits && has_new) fits = number(words, begin, end, numbers);",
                "",
            )
        ],
    ),
    Mutant(
        "words that look like empty slots are shifted",
        "DirectWords*",
        [
            Edit(
                "src/cpu/direct_words.cpp",
                "if (group == kUnshifted || ",
                "if (",
            )
        ],
    ),
    Mutant(
        "groups of a later window get the ranks of the first",
        "*DataOverThreads*:*VoxelMeans*",
        [
            Edit(
                "src/cpu/part_order.hpp",
                "bases_[window] + ranks[row / 64] +",
                "ranks[row / 64] +",
            )
        ],
    ),
    Mutant(
        "of equally near points any row wins",
        "*TreeLevels*:*Neighbours*",
        [
            Edit(
                "src/cpu/tree_engine.cpp",
                "(squares == value) & (rows < its_row)",
                "(squares == value)",
            )
        ],
    ),
    Mutant(
        "a box as far as the last candidate is skipped",
        "*TreeLevels*:*Neighbours*",
        [
            Edit(
                "src/cpu/tree_engine.cpp",
                "next.squared == limit && next.lowest_row > last_row",
                "next.squared == limit",
            )
        ],
    ),
    Mutant(
        "a search forgets how far the query is from the last one",
        "*Neighbours*",
        [
            Edit(
                "src/coords/neighbours/knn_search.cpp",
                "double const farthest = between + std::sqrt(best_.back().squared);",
                "double const farthest = std::sqrt(best_.back().squared);",
            )
        ],
    ),
    Mutant(
        "a vector's block is freed with the size that was asked for",
        "Memory*",
        [
            Edit(
                "src/runtime/block_vector.hpp",
                "*reinterpret_cast<std::size_t*>(raw.data) = raw.bytes;",
                "*reinterpret_cast<std::size_t*>(raw.data) = kAlignment + count * sizeof(T);",
            )
        ],
    ),
    Mutant(
        "a lookup over shards asks the first one only",
        "EngineLevels*",
        [
            Edit(
                "src/cpu/shard_engine.cpp",
                "Index(rows.indices[rows.shards[row]])",
                "Index(rows.indices[row % 1])",
            )
        ],
    ),
    Mutant(
        "a lookup over shards compares wide keys with those of the batch",
        "EngineLevels*",
        [
            Edit(
                "src/cpu/shard_engine.cpp", "kAboveAllEntries = 0x7fffffffu", "kAboveAllEntries = 0"
            )
        ],
    ),
    Mutant(
        "a row that was overtaken still wins its key",
        "EngineLevels*:OverflowBits*",
        [Edit("src/cpu/settle.cpp", "batch.mask[overtaken] = 0;", "")],
    ),
    Mutant(
        "a row keeps the row that it overtook as its position",
        "EngineLevels*:OverflowBits*",
        [
            Edit(
                "src/cpu/settle.cpp",
                "batch.positions[row] = batch.positions[overtaken];",
                "",
            )
        ],
    ),
    Mutant(
        "a row loses to a candidate that comes after it",
        "OverflowBits*",
        [
            Edit(
                "include/tensorhash/step/insert.hpp",
                "& (slot_ticket(slot) > to_ticket(mine))",
                "",
            )
        ],
    ),
    Mutant(
        "vectors forget the rows of a shard in the upper half",
        "RouteLevels*",
        [
            Edit(
                "src/cpu/route_engine.cpp",
                "press_eight(to + (place + lower) * 8, high, static_cast<__mmask16>(lanes >> 8));",
                "press_eight(to + place * 8, high, static_cast<__mmask16>(lanes >> 8));",
            )
        ],
    ),
    Mutant(
        "vectors give absent keys an index",
        "RouteLevels*",
        [
            Edit(
                "src/cpu/route_engine.cpp",
                "_mm512_mask_or_epi64(wide, is_found, wide, high)",
                "_mm512_or_epi64(wide, high)",
            )
        ],
    ),
    Mutant(
        "the last of twelve bytes of eight keys come from other keys",
        "EngineLevels*",
        [
            Edit(
                "src/cpu/row_hash.hpp",
                "_mm512_setr_epi32(2, 0, 5, 0, 8, 0, 11, 0, 14, 0, 25, 0, 28, 0, 31, 0)",
                "_mm512_setr_epi32(2, 0, 5, 0, 8, 0, 11, 0, 14, 0, 25, 0, 28, 0, 30, 0)",
            )
        ],
    ),
    Mutant(
        "the last rows of a batch are hashed where they lie",
        "EngineLevels*",
        [Edit("src/cpu/row_hash.hpp", "if (end - row < 8) [[unlikely]]", "if (false)")],
    ),
    Mutant(
        "rows decided together take a free slot for a key without one",
        "EngineLevels*",
        [
            Edit(
                "src/cpu/find_together.hpp",
                "(first & (missed | side))",
                "(first & (missed | (side & 0)))",
            )
        ],
    ),
    Mutant(
        "rows decided together never look beyond their home bucket",
        "EngineLevels*",
        [
            Edit(
                "src/cpu/find_together.hpp",
                "decided.write(batch.buf_indices + row, batch.mask + row); "
                "note_late(row, decided.late);",
                "decided.write(batch.buf_indices + row, batch.mask + row);",
            )
        ],
    ),
]
