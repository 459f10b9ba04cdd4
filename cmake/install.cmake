# Install rules for C++ users: headers, library and the CMake package for find_package(tensorhash).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tensorhash")

install(TARGETS tensorhash EXPORT tensorhash-targets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp NAMELINK_COMPONENT cpp
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT cpp
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tensorhash"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT cpp
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(EXPORT tensorhash-targets NAMESPACE tensorhash::
    DESTINATION "${_config_dir}" COMPONENT cpp)

configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/tensorhash-config.cmake.in"
    "${PROJECT_BINARY_DIR}/tensorhash-config.cmake"
    INSTALL_DESTINATION "${_config_dir}")
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/tensorhash-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/tensorhash-config.cmake"
    "${PROJECT_BINARY_DIR}/tensorhash-config-version.cmake"
    DESTINATION "${_config_dir}" COMPONENT cpp)
