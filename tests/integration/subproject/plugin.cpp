// A library that is loaded at run time and contains tensorhash.
#include "tensorhash/tensorhash.hpp"

extern "C" __attribute__((visibility("default"))) long plugin_distinct(long const* keys, long n) {
    return tensorhash::unique(tensorhash::Tensor::borrow(keys, {n}, tensorhash::dtype_of<long>))
        .rows.shape()[0];
}
