# The extension tensorhash._core, and beside it the shared library: what goes into the wheel with python/tensorhash.
# Only the component `python` is installed there; headers and the CMake package stay out.
if(NOT TENSORHASH_IS_SHARED)
    message(FATAL_ERROR "TENSORHASH_BUILD_PYTHON needs the shared library, which the module and the TensorFlow ops "
                        "share; BUILD_SHARED_LIBS is ${BUILD_SHARED_LIBS}")
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
set_target_properties(_core PROPERTIES INSTALL_RPATH "$<IF:$<BOOL:${APPLE}>,@loader_path,$ORIGIN>")

install(TARGETS _core LIBRARY DESTINATION tensorhash COMPONENT python)
install(TARGETS tensorhash
    LIBRARY DESTINATION tensorhash COMPONENT python NAMELINK_SKIP
    RUNTIME DESTINATION tensorhash COMPONENT python)
# The op library is compiled on the user's machine, against the TensorFlow that is there: sources and headers go along.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tensorhash"
    DESTINATION tensorhash/include COMPONENT python FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/integrations/tensorflow/"
    DESTINATION tensorhash/tensorflow/ops COMPONENT python
    FILES_MATCHING PATTERN "*.cc" PATTERN "*.h")
