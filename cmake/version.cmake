# Reads the version from include/tensorhash/version.hpp, its only source.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../include/tensorhash/version.hpp" _tensorhash_version_line
     REGEX "^#define TENSORHASH_VERSION \"[0-9.]+\"")
if(NOT _tensorhash_version_line MATCHES "\"([0-9]+\\.[0-9]+\\.[0-9]+)\"")
    message(FATAL_ERROR "include/tensorhash/version.hpp: expected `#define TENSORHASH_VERSION \"x.y.z\"`, "
                        "found `${_tensorhash_version_line}`")
endif()
set(TENSORHASH_VERSION "${CMAKE_MATCH_1}")
unset(_tensorhash_version_line)
# Configure again if the version changes, because the package files contain it.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             "${CMAKE_CURRENT_LIST_DIR}/../include/tensorhash/version.hpp")
