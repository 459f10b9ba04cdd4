# The extension module tensorhash._core and the shared library beside it: the compiled part of the
# wheel. The wheel installs only the component `python`, without the CMake package.
if(NOT TENSORHASH_IS_SHARED)
    message(FATAL_ERROR "TENSORHASH_BUILD_PYTHON: expected a shared library, because the module and the TensorFlow ops "
                        "both use it; got BUILD_SHARED_LIBS=${BUILD_SHARED_LIBS}; set it to ON")
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
    COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

file(GLOB _binding_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/bindings/*.cpp")

nanobind_add_module(_core NB_STATIC PROTECT_STACK NB_SUPPRESS_WARNINGS NB_DOMAIN tensorhash ${_binding_sources})
target_include_directories(_core PRIVATE "${PROJECT_SOURCE_DIR}/python/bindings")
target_link_libraries(_core PRIVATE tensorhash::tensorhash)
tensorhash_enable_warnings(_core)
# nanobind compiles for size, but these files have loops over rows.
set_source_files_properties(
    "${PROJECT_SOURCE_DIR}/python/bindings/data_arrow.cpp" "${PROJECT_SOURCE_DIR}/python/bindings/strings.cpp"
    PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
set_target_properties(_core PROPERTIES INSTALL_RPATH "$<IF:$<BOOL:${APPLE}>,@loader_path,$ORIGIN>")

install(TARGETS _core LIBRARY DESTINATION tensorhash COMPONENT python)
install(TARGETS tensorhash
    LIBRARY DESTINATION tensorhash COMPONENT python NAMELINK_SKIP
    RUNTIME DESTINATION tensorhash COMPONENT python)
# The op library is compiled on the user's machine for its TensorFlow, so the wheel holds its
# sources and headers.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tensorhash"
    DESTINATION tensorhash/include COMPONENT python FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/integrations/tensorflow/"
    DESTINATION tensorhash/tensorflow/ops COMPONENT python
    FILES_MATCHING PATTERN "*.cc" PATTERN "*.h")
