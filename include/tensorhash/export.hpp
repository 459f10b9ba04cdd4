// TH_API marks the symbols that the shared library exports. All others are hidden.
#pragma once

#if defined(_WIN32)
#if defined(TENSORHASH_BUILDING)
#define TH_API __declspec(dllexport)
#else
#define TH_API __declspec(dllimport)
#endif
#else
#define TH_API __attribute__((visibility("default")))
#endif
