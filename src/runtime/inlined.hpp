// TH_INLINED: for lambdas, and for functions that take them.
#pragma once

// As a call, a lambda in a hot loop would keep all that it captures in memory. A kernel body makes
// no calls at all.
#define TH_INLINED __attribute__((always_inline))
