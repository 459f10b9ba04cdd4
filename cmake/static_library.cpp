// The one C++ source of the static library, the rest are objects: it tells CMake that programs with
// this library are linked as C++, also those written in C.
