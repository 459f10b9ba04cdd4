// All kernel bodies in one file, as the PTX interpreter wants them.
#include "cuda/coord_bodies.cu"
#include "cuda/narrow_bodies.cu"
#include "cuda/value_bodies.cu"
#include "cuda/wide_bodies.cu"
