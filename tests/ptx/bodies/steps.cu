// The bodies of step_bodies.hpp as PTX, for the interpreter.
#include "ptx/bodies/step_bodies.hpp"

namespace th_ptx {

template <class Body>
__global__ void run(Body const body) {
    body();
}

#define TH_INSTANTIATE(Reader)                                                      \
    template __global__ void run<ClaimRows<step::Reader>>(ClaimRows<step::Reader>); \
    template __global__ void run<JoinRows<step::Reader>>(JoinRows<step::Reader>);   \
    template __global__ void run<FindRows<step::Reader>>(FindRows<step::Reader>);

TH_INSTANTIATE(Narrow8)
TH_INSTANTIATE(Narrow4)
TH_INSTANTIATE(NarrowAny)
TH_INSTANTIATE(Wide12)
TH_INSTANTIATE(Wide16)
TH_INSTANTIATE(WideAny)

}  // namespace th_ptx
