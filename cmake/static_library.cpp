// The static library consists of objects. This source makes CMake link its users as C++ programs,
// also those written in C.
