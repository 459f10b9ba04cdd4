# The contract tests and the tests of coordinates that run on a device, with the expectations of the
# CPU. Source it. The thread count means nothing on a device, so one is enough. Not run: tests of
# the CPU's index, its memory, its threads and of steps written by the user.
DEVICE_SUITES='Rule*:Update*:SaveAndLoad*:Validate.*:RecordedBits*:FromParts*:ArraysAtTheirEnd*'
DEVICE_SUITES+=':*/Rule*_threads1:*/Rule*/threads1:*/Update*threads1'
# Coordinates: tables, kernel maps, voxels, neighbours within a radius.
DEVICE_SUITES+=':PackedTableArguments.*:Neighbours.*:Voxels.*:Elements.*'
for suite in BatchedSearch PackedTable VectorTable KernelMaps NeighboursOverThreads VoxelsOverThreads; do
    DEVICE_SUITES+=":Threads/$suite.*/threads1"
done
DEVICE_SUITES+='-*Rule07*:Rule08*:*/Rule08*:Rule10*:ValidateDamage*:UpdateBits*'
DEVICE_SUITES+=':*crowded_buckets*:*48_bytes*:*.tables_are_bit_identical*:*its_index_by_itself'
DEVICE_SUITES+=':*copies_of_one_key_count_once:*takes_a_custom_step*'
DEVICE_PYTHON_SUITES=(tests/python/test_contract_rule_0[1-6].py tests/python/test_contract_rule_09.py)
# The coordinate suites. They skip what needs the CPU's memory, its time, or more lookups than
# fibers can do.
DEVICE_COORD_SUITES=(tests/python/test_{coords_tables,coords_tables_more,coords_torch_table,int_coords_members,voxelize}.py)
DEVICE_COORD_SUITES+=(tests/python/test_{convolution_map,convolution_repeats,kernel_map_offsets,kernel_map_result}.py)
DEVICE_COORD_SUITES+=(tests/python/test_{kernel_map,kernel_map_hierarchical,coord_ops,coords_properties,neighbours}.py)
