# The tests that run on a device: those of contract and coordinates, with the expectations of the
# CPU, and those of kernel bodies. Source it.

# device_suites THREADS: the filter of the C++ tests, for one number of threads. Not run: tests that
# look into the CPU's index or measure its memory, forks (a child gets an error), steps written by
# the user, and input that changes under tables of the CPU.
device_suites() {
    local filter='Rule*:Update*:SaveAndLoad*:Validate.*:RecordedBits*:FromParts*:ArraysAtTheirEnd*' suite
    filter+=":*/Rule*_threads$1:*/Rule*/threads$1:*/Update*threads$1"
    # Coordinates: tables, kernel maps, voxels, neighbours within a radius.
    filter+=':PackedTableArguments.*:Neighbours.*:Voxels.*:Elements.*'
    for suite in BatchedSearch PackedTable VectorTable KernelMaps NeighboursOverThreads VoxelsOverThreads; do
        filter+=":Threads/$suite.*/threads$1"
    done
    filter+='-Rule07Keys.*:Rule07Flooding.*keys*:Rule07Flooding.diff*:Rule07Flooding.packed*:Rule08Fork*:*Rule08.after_fork*'
    filter+=':*Rule08ChangingInput.*bounded*:*Rule08ChangingInput.*shard*:*Rule08ChangingInput.*coord*:*Rule08ChangingInput.*column*'
    filter+=':Rule10.growth*:Rule10.rows*:Rule10.values*:*its_index_by_itself:*crowded_buckets*:*48_bytes*:*takes_a_custom_step*'
    printf '%s' "$filter"
}
DEVICE_PYTHON_SUITES=(tests/python/test_contract_rule_0[1-6].py tests/python/test_contract_rule_{08,09,10}.py)
# The coordinate suites. They skip what needs the CPU's memory, its time, or more lookups than
# fibers can do.
DEVICE_COORD_SUITES=(tests/python/test_{coords_tables,coords_tables_more,coords_torch_table,int_coords_members,voxelize}.py)
DEVICE_COORD_SUITES+=(tests/python/test_{convolution_map,convolution_repeats,kernel_map_offsets,kernel_map_result}.py)
DEVICE_COORD_SUITES+=(tests/python/test_{kernel_map,kernel_map_hierarchical,coord_ops,coords_properties,neighbours}.py)

# run_every_seed PROGRAM: all tests of kernel bodies with 50 seeds, in one process per core. Every
# body must have run with each.
run_every_seed() {
    local folder=build/body-seeds
    rm -rf $folder
    mkdir -p $folder
    seq 0 15 | TENSORHASH_BODY_SEEDS=$folder GTEST_TOTAL_SHARDS=16 xargs -P "$JOBS" -I{} env GTEST_SHARD_INDEX={} "$1" \
        --gtest_brief=1 || fail "$1 fails with 50 seeds"
    python3 tests/device/check_seeds.py $folder 50
}
