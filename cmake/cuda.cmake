# The CUDA plugin, libtensorhash_cuda.so: the kernels by nvcc, everything else by the C++ compiler.
# nvcc comes from a CUDA toolkit or from NVIDIA's packages on PyPI (nvidia-cuda-nvcc,
# nvidia-cuda-cccl, nvidia-cuda-runtime).
#
# nvcc is called directly. CMake's own support for CUDA must know every new architecture, and does
# not find the libraries of the PyPI packages.
if(NOT TENSORHASH_IS_SHARED)
    message(FATAL_ERROR "TENSORHASH_CUDA: expected a shared library, because the plugin uses it; "
                        "got BUILD_SHARED_LIBS=${BUILD_SHARED_LIBS}; set it to ON")
endif()
set(TENSORHASH_CUDA_ARCHITECTURES "75;80;86;90;100;120" CACHE STRING "The GPUs to compile for; the last one also as PTX")

file(GLOB _pypi_folders "${PROJECT_SOURCE_DIR}/.venv/lib/python3.*/site-packages/nvidia/cu13/bin")
find_program(TENSORHASH_NVCC nvcc HINTS ${_pypi_folders} PATHS /usr/local/cuda/bin REQUIRED)
# nvcc may be a script that calls another one. It says itself where its toolkit is.
execute_process(
    COMMAND "${TENSORHASH_NVCC}" --dryrun -c x.cu
    ERROR_VARIABLE _dryrun OUTPUT_QUIET RESULT_VARIABLE _ignored)
if(NOT _dryrun MATCHES "#\\$ TOP=([^\n\r]+)")
    message(FATAL_ERROR "${TENSORHASH_NVCC} --dryrun: expected a line with TOP=, got ${_dryrun}")
endif()
get_filename_component(_toolkit "${CMAKE_MATCH_1}" REALPATH)
find_library(TENSORHASH_CUDART_STATIC NAMES libcudart_static.a
    PATHS "${_toolkit}" PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib NO_DEFAULT_PATH REQUIRED)
find_path(TENSORHASH_CUDA_INCLUDE cuda_runtime_api.h
    PATHS "${_toolkit}" PATH_SUFFIXES include targets/x86_64-linux/include NO_DEFAULT_PATH REQUIRED)

set(_nvcc_options -std=c++20 -O2 -DNDEBUG --expt-relaxed-constexpr -fmad=false --compress-mode=size -Xptxas -v
    -Xcompiler=-fPIC,-fvisibility=hidden -cudart=static "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/src")
foreach(_arch IN LISTS TENSORHASH_CUDA_ARCHITECTURES)
    list(APPEND _nvcc_options "-gencode=arch=compute_${_arch},code=sm_${_arch}")
    set(_last_arch ${_arch})
endforeach()
list(APPEND _nvcc_options "-gencode=arch=compute_${_last_arch},code=compute_${_last_arch}")
if(TENSORHASH_WERROR)
    list(APPEND _nvcc_options -Werror all-warnings)
endif()

# Sums must round as on the CPU: -fmad=false above. What ptxas says of registers goes to
# <object>.log.
set(_kernel_objects "")
foreach(_name coord_bodies narrow_bodies value_bodies wide_bodies primitives)
    set(_source "${PROJECT_SOURCE_DIR}/src/cuda/${_name}.cu")
    set(_object "${PROJECT_BINARY_DIR}/cuda/${_name}.o")
    add_custom_command(
        OUTPUT "${_object}"
        COMMAND sh "${PROJECT_SOURCE_DIR}/cmake/nvcc.sh" "${_object}.log" ${CMAKE_CXX_COMPILER_LAUNCHER} "${TENSORHASH_NVCC}"
            ${_nvcc_options} -MD -MF "${_object}.d" -c "${_source}" -o "${_object}"
        DEPENDS "${_source}" DEPFILE "${_object}.d"
        COMMENT "Compiling src/cuda/${_name}.cu for ${TENSORHASH_CUDA_ARCHITECTURES}"
        VERBATIM)
    list(APPEND _kernel_objects "${_object}")
endforeach()

add_library(tensorhash_cuda_plugin MODULE
    src/cuda/backend.cpp src/cuda/gpu.cpp src/cuda/plugin.cpp src/cuda/staging.cpp src/cuda/tables.cpp ${_kernel_objects})
set_source_files_properties(${_kernel_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(tensorhash_cuda_plugin PROPERTIES
    OUTPUT_NAME tensorhash_cuda
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/cuda/tensorhash_cuda"
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    CXX_EXTENSIONS OFF
    # The library is in the package tensorhash, next to this one.
    INSTALL_RPATH "$ORIGIN/../tensorhash")
target_compile_features(tensorhash_cuda_plugin PRIVATE cxx_std_20)
target_include_directories(tensorhash_cuda_plugin PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_include_directories(tensorhash_cuda_plugin SYSTEM PRIVATE "${TENSORHASH_CUDA_INCLUDE}")
target_link_libraries(tensorhash_cuda_plugin PRIVATE
    tensorhash::tensorhash "${TENSORHASH_CUDART_STATIC}" Threads::Threads ${CMAKE_DL_LIBS} rt)
target_link_options(tensorhash_cuda_plugin PRIVATE
    -Wl,--no-undefined -Wl,--as-needed -Wl,--exclude-libs,ALL -Wl,--gc-sections)
tensorhash_enable_warnings(tensorhash_cuda_plugin)

# What `make gpu` measures. It has the plugin's kernels in it.
if(TENSORHASH_BUILD_TESTS)
    add_executable(tensorhash_gpu EXCLUDE_FROM_ALL
        tests/gpu/main.cpp src/cuda/gpu.cpp src/cuda/staging.cpp ${_kernel_objects} ${TENSORHASH_OBJECT_FILES})
    add_dependencies(tensorhash_gpu tensorhash_cuda_plugin)  # which makes the kernels
    set_target_properties(tensorhash_gpu PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    target_compile_features(tensorhash_gpu PRIVATE cxx_std_20)
    target_compile_definitions(tensorhash_gpu PRIVATE TENSORHASH_BUILDING)
    target_include_directories(tensorhash_gpu PRIVATE
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
    target_include_directories(tensorhash_gpu SYSTEM PRIVATE "${TENSORHASH_CUDA_INCLUDE}")
    target_link_libraries(tensorhash_gpu PRIVATE
        "${TENSORHASH_CUDART_STATIC}" Threads::Threads ${CMAKE_DL_LIBS} rt)
    tensorhash_enable_warnings(tensorhash_gpu)
endif()

install(TARGETS tensorhash_cuda_plugin LIBRARY DESTINATION tensorhash_cuda COMPONENT cuda)
