// The library's version, the same as the Python package's.
#pragma once

#define TENSORHASH_VERSION_MAJOR 0
#define TENSORHASH_VERSION_MINOR 1
#define TENSORHASH_VERSION_PATCH 0
#define TENSORHASH_VERSION "0.1.0"
