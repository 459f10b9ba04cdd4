# The library. Its objects are compiled once and shared with the tests, which also need the hidden
# symbols.
find_package(Threads REQUIRED)

set(_core_sources
    src/backend/coord_errors.cpp
    src/backend/elements.cpp
    src/backend/loader.cpp
    src/backend/kernel_map_request.cpp
    src/backend/plugins.cpp
    src/backend/points.cpp
    src/backend/table_errors.cpp
    src/capi/bounded.cpp
    src/capi/c.cpp
    src/capi/place.cpp
    src/capi/sharded.cpp
    src/capi/support.cpp
    src/conv/arguments.cpp
    src/conv/convolve.cpp
    src/conv/dispatch.cpp
    src/conv/plan.cpp
    src/conv/weight_gradient.cpp
    src/coords/api/arguments.cpp
    src/coords/api/kernel_map.cpp
    src/coords/api/kernel_map_arguments.cpp
    src/coords/api/kernel_map_forms.cpp
    src/coords/api/neighbours.cpp
    src/coords/api/ops.cpp
    src/coords/api/packed_hash_table.cpp
    src/coords/api/torch_hash_table.cpp
    src/coords/api/voxels.cpp
    src/coords/cpu_coords.cpp
    src/coords/kernel_map/blocks.cpp
    src/coords/kernel_map/find_pairs.cpp
    src/coords/kernel_map/finish_groups.cpp
    src/coords/kernel_map/flat.cpp
    src/coords/kernel_map/forms.cpp
    src/coords/kernel_map/grid_keys.cpp
    src/coords/kernel_map/hierarchical.cpp
    src/coords/kernel_map/merge.cpp
    src/coords/kernel_map/partial_maps.cpp
    src/coords/kernel_map/plane_sweeps.cpp
    src/coords/kernel_map/voxel_blocks.cpp
    src/coords/neighbours/knn_search.cpp
    src/coords/neighbours/point_index.cpp
    src/coords/neighbours/point_tree.cpp
    src/coords/neighbours/points.cpp
    src/coords/neighbours/query_order.cpp
    src/coords/neighbours/radius_search.cpp
    src/coords/neighbours/search_space.cpp
    src/coords/neighbours/tree_builder.cpp
    src/coords/rows/cell_frame.cpp
    src/coords/rows/distinct_rows.cpp
    src/coords/rows/expand_blocks.cpp
    src/coords/rows/expand_rows.cpp
    src/coords/rows/row_buffer.cpp
    src/coords/rows/row_groups.cpp
    src/coords/rows/rows.cpp
    src/coords/rows/sort.cpp
    src/coords/tables/coord_index.cpp
    src/coords/tables/cpu_coord_store.cpp
    src/coords/tables/cpu_vector_store.cpp
    src/coords/tables/new_rows.cpp
    src/coords/voxels/voxel_coords.cpp
    src/coords/voxels/voxel_means.cpp
    src/coords/voxels/voxel_pick.cpp
    src/coords/voxels/voxel_reduce.cpp
    src/cpu/direct_words.cpp
    src/cpu/dispatch.cpp
    src/cpu/group_dispatch.cpp
    src/cpu/tree_dispatch.cpp
    src/cpu/partition.cpp
    src/cpu/part_order.cpp
    src/cpu/rank_hash.cpp
    src/cpu/route_dispatch.cpp
    src/cpu/settle.cpp
    src/cpu/shard_hash.cpp
    src/cpu/word_numbers.cpp
    src/data/columns.cpp
    src/data/few_groups.cpp
    src/data/folds.cpp
    src/data/group_by.cpp
    src/data/group_stream.cpp
    src/data/join.cpp
    src/data/numbering.cpp
    src/data/nunique.cpp
    src/data/plan.cpp
    src/data/reduce.cpp
    src/data/reduce_parts.cpp
    src/data/row_lists.cpp
    src/data/values.cpp
    src/geometry/blocks.cpp
    src/geometry/camera.cpp
    src/geometry/depth_range_map.cpp
    src/geometry/extract_mesh.cpp
    src/geometry/extract_points.cpp
    src/geometry/images.cpp
    src/geometry/integrate.cpp
    src/geometry/neighbor_index.cpp
    src/geometry/ray_cast.cpp
    src/geometry/scan.cpp
    src/geometry/touch.cpp
    src/geometry/voxels.cpp
    src/index/bucket_index.cpp
    src/index/bucket_index_spread.cpp
    src/index/flat_index.cpp
    src/index/vector_index.cpp
    src/io/bounded_format.cpp
    src/io/file.cpp
    src/io/format.cpp
    src/io/map_files.cpp
    src/io/replacement.cpp
    src/map/arguments.cpp
    src/map/bounded_map.cpp
    src/map/elements.cpp
    src/map/exchange.cpp
    src/map/from_parts.cpp
    src/map/hash_map.cpp
    src/map/optimizer.cpp
    src/map/unique.cpp
    src/map/update.cpp
    src/map/update_arguments.cpp
    src/ranks/owner_rows.cpp
    src/ranks/rank_batch.cpp
    src/ranks/repeats.cpp
    src/ranks/shared_memory.cpp
    src/runtime/bytes.cpp
    src/runtime/cgroup.cpp
    src/runtime/memory.cpp
    src/runtime/seed.cpp
    src/runtime/threads.cpp
    src/sharded/bounded.cpp
    src/sharded/devices.cpp
    src/sharded/exchange.cpp
    src/sharded/files.cpp
    src/sharded/find.cpp
    src/sharded/grouped.cpp
    src/sharded/listings.cpp
    src/sharded/policy.cpp
    src/sharded/route.cpp
    src/sharded/sharded_map.cpp
    src/sharded/update.cpp
    src/strings/offset_source.cpp
    src/strings/string_dispatch.cpp
    src/strings/string_files.cpp
    src/strings/string_index.cpp
    src/strings/string_table.cpp
    src/table/bounded_batch.cpp
    src/table/cpu_backend.cpp
    src/table/cpu_table.cpp
    src/table/elements.cpp
    src/table/entries.cpp
    src/table/contested.cpp
    src/table/erase.cpp
    src/table/evict.cpp
    src/table/growth.cpp
    src/table/image.cpp
    src/table/insert.cpp
    src/table/reduce.cpp
    src/table/replace.cpp
    src/table/shrink.cpp
    src/table/route.cpp
    src/table/rows.cpp
    src/table/steps.cpp
    src/table/table.cpp
    src/table/unique.cpp
    src/table/update.cpp
    src/table/values.cpp
    src/tensor/allocators.cpp
    src/tensor/copy.cpp
    src/tensor/device.cpp
    src/tensor/dlpack.cpp
    src/tensor/dtype.cpp
    src/tensor/stream.cpp
    src/tensor/tensor.cpp
    src/tensor/work.cpp)

# Without errno a square root is one instruction instead of a call. The result is the same.
set(_without_errno src/geometry/integrate.cpp src/geometry/ray_cast.cpp src/table/steps.cpp)
set_source_files_properties(${_without_errno} PROPERTIES
    COMPILE_OPTIONS "-fno-math-errno;-fno-trapping-math")

function(_tensorhash_add_objects target)
    add_library(${target} OBJECT ${ARGN})
    set_target_properties(${target} PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        CXX_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON
        CXX_EXTENSIONS OFF)
    target_compile_features(${target} PUBLIC cxx_std_20)
    # Link-time optimisation could move code of one instruction-set level into another.
    set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
    target_compile_options(${target} PRIVATE -fno-lto)
    target_compile_definitions(${target} PRIVATE TENSORHASH_BUILDING)
    target_include_directories(${target} PUBLIC
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
    tensorhash_sanitize(${target} LIBRARY)
    tensorhash_enable_warnings(${target})
endfunction()

_tensorhash_add_objects(tensorhash_objects ${_core_sources})
# GCC 12 warns of writes past the end of a std::string that do not happen, under -fsanitize=thread
# only.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TENSORHASH_SANITIZER STREQUAL "thread")
    set_source_files_properties(src/backend/plugins.cpp PROPERTIES
        COMPILE_OPTIONS "-Wno-array-bounds;-Wno-stringop-overflow")
endif()
if(TENSORHASH_PRECOMPILE)
    # Angle brackets keep the path of this tree out of the compiler cache's key.
    target_precompile_headers(tensorhash_objects PRIVATE <precompiled.hpp>)
    # These files have other compiler options than the precompiled header.
    set_source_files_properties(${_without_errno} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endif()

# The engine is compiled once per instruction-set level; src/cpu/dispatch.cpp picks one at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(_isa_levels v2 v3 v4)
    target_compile_options(tensorhash_objects PRIVATE -march=x86-64-v2)
    if(TENSORHASH_ISA STREQUAL "best")
        include(CheckCXXSourceRuns)
        check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"avx2\") &&
            __builtin_cpu_supports(\"bmi2\") && __builtin_cpu_supports(\"fma\") ? 0 : 1; }" TENSORHASH_RUNS_V3)
        if(TENSORHASH_RUNS_V3)
            set(_isa_levels v3)
        else()
            set(_isa_levels v2)
        endif()
        # Some loops have no level v4, which is AVX-512. Not under a sanitizer: with
        # detect_stack_use_after_return, GCC 12 misaligns its vectors on the stack (GCC bug 110027).
        check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"avx512f\") &&
            __builtin_cpu_supports(\"avx512bw\") && __builtin_cpu_supports(\"avx512cd\") &&
            __builtin_cpu_supports(\"avx512dq\") && __builtin_cpu_supports(\"avx512vl\") ? 0 : 1; }"
            TENSORHASH_RUNS_V4)
        if(TENSORHASH_RUNS_V3 AND TENSORHASH_RUNS_V4 AND NOT TENSORHASH_SANITIZER)
            set(_isa_levels v3 v4)
        endif()
    endif()
else()
    set(_isa_levels generic)
endif()
# The loops that gain from AVX-512 have a level v4, the others stay at v3 then.
set(_sources_of_all_levels src/cpu/engine.cpp src/cpu/group_engine.cpp src/cpu/route_engine.cpp
    src/cpu/shard_engine.cpp src/conv/level.cpp)
set(_sources_up_to_v3 src/cpu/flat_engine.cpp src/cpu/tree_engine.cpp src/cpu/vector_engine.cpp
    src/strings/string_loops.cpp)
# Tells the dispatchers and their tests which levels were compiled.
set(TENSORHASH_LEVEL_DEFINITIONS "")
foreach(_level IN LISTS _isa_levels)
    list(APPEND TENSORHASH_LEVEL_DEFINITIONS TH_HAS_LEVEL_${_level})
endforeach()
target_compile_definitions(tensorhash_objects PRIVATE ${TENSORHASH_LEVEL_DEFINITIONS})

# Order matters. If several levels compile the same inline function, the linker keeps the first
# copy. It must be the lowest level's: a machine without AVX2 would otherwise run AVX2 code outside
# the engine.
set(TENSORHASH_OBJECT_FILES $<TARGET_OBJECTS:tensorhash_objects>)
foreach(_level IN LISTS _isa_levels)
    set(_engine tensorhash_engine_${_level})
    set(_sources ${_sources_of_all_levels})
    if(NOT _level STREQUAL "v4")
        list(APPEND _sources ${_sources_up_to_v3})
    endif()
    _tensorhash_add_objects(${_engine} ${_sources})
    target_compile_definitions(${_engine} PRIVATE TH_ISA=${_level})
    if(NOT _level STREQUAL "generic")
        target_compile_options(${_engine} PRIVATE -march=x86-64-${_level})
    endif()
    list(APPEND TENSORHASH_OBJECT_FILES $<TARGET_OBJECTS:${_engine}>)
endforeach()

# A top-level build is shared unless BUILD_SHARED_LIBS is OFF. In a subproject only that variable
# decides.
set(TENSORHASH_IS_SHARED OFF)
if(BUILD_SHARED_LIBS OR (PROJECT_IS_TOP_LEVEL AND NOT DEFINED BUILD_SHARED_LIBS))
    set(TENSORHASH_IS_SHARED ON)
endif()
if(TENSORHASH_IS_SHARED)
    add_library(tensorhash SHARED ${TENSORHASH_OBJECT_FILES})
else()
    # The linker takes an archive's members in the order of their use. As one object they keep the
    # order above.
    set(_all_objects "${PROJECT_BINARY_DIR}/tensorhash_all$<CONFIG>.o")
    add_custom_command(OUTPUT "${_all_objects}"
        COMMAND "${CMAKE_LINKER}" -r -o "${_all_objects}" ${TENSORHASH_OBJECT_FILES}
        DEPENDS ${TENSORHASH_OBJECT_FILES}
        COMMENT "Joining the objects of tensorhash" COMMAND_EXPAND_LISTS VERBATIM)
    add_library(tensorhash STATIC cmake/static_library.cpp "${_all_objects}")
endif()
add_library(tensorhash::tensorhash ALIAS tensorhash)
# SOVERSION without VERSION gives one file, libtensorhash.so.0. A wheel cannot hold the usual
# symbolic links.
set_target_properties(tensorhash PROPERTIES
    SOVERSION ${PROJECT_VERSION_MAJOR}
    LINKER_LANGUAGE CXX)
target_compile_features(tensorhash INTERFACE cxx_std_20)
target_include_directories(tensorhash INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:include>")
target_link_libraries(tensorhash PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
if(TENSORHASH_IS_SHARED AND NOT APPLE)
    target_link_options(tensorhash PRIVATE -Wl,--no-undefined -Wl,--as-needed)
endif()
