// Binds sparse convolution: the plan of a kernel map, the result and the two gradients.
#include "tensorhash/conv.hpp"

#include <nanobind/nanobind.h>

#include "array_in.hpp"
#include "bindings.hpp"

namespace tensorhash::bindings {
namespace {

using conv::ConvPlan;

void make_plan(ConvPlan* self, nb::handle in_maps, nb::handle out_maps, nb::handle offsets,
               std::int64_t num_in, std::int64_t num_out) {
    coords::KernelMap map;
    map.in_maps = to_tensor(in_maps, "in_maps", Dtype::Int32);
    map.out_maps = to_tensor(out_maps, "out_maps", Dtype::Int32);
    map.offsets = to_tensor(offsets, "offsets", Dtype::Int64);
    map.num_in = num_in;
    map.num_out = num_out;
    ConvPlan const made = without_gil([&] { return ConvPlan(map); });
    new (self) ConvPlan(made);
}

Tensor forward(ConvPlan const& self, nb::handle features, nb::handle weight, std::int64_t groups) {
    Tensor const rows = to_tensor(features, "features");
    Tensor const matrices = to_tensor(weight, "weight");
    return without_gil([&] { return conv::forward(self, rows, matrices, groups); });
}

Tensor input_gradient(ConvPlan const& self, nb::handle gradient, nb::handle weight,
                      std::int64_t groups) {
    Tensor const rows = to_tensor(gradient, "gradient");
    Tensor const matrices = to_tensor(weight, "weight");
    return without_gil([&] { return conv::input_gradient(self, rows, matrices, groups); });
}

Tensor weight_gradient(ConvPlan const& self, nb::handle features, nb::handle gradient,
                       std::int64_t groups) {
    Tensor const ins = to_tensor(features, "features");
    Tensor const outs = to_tensor(gradient, "gradient");
    return without_gil([&] { return conv::weight_gradient(self, ins, outs, groups); });
}

}  // namespace

void bind_conv(nb::module_& m) {
    nb::class_<ConvPlan>(m, "ConvPlan", "A kernel map that is ready for convolutions.")
        .def("__init__", &make_plan, nb::arg("in_maps"), nb::arg("out_maps"), nb::arg("offsets"),
             nb::arg("num_in"), nb::arg("num_out"))
        .def_prop_ro("num_in", &ConvPlan::num_in)
        .def_prop_ro("num_out", &ConvPlan::num_out)
        .def("forward", &forward, nb::arg("features"), nb::arg("weight"), nb::arg("groups"))
        .def("input_gradient", &input_gradient, nb::arg("gradient"), nb::arg("weight"),
             nb::arg("groups"))
        .def("weight_gradient", &weight_gradient, nb::arg("features"), nb::arg("gradient"),
             nb::arg("groups"));
}

}  // namespace tensorhash::bindings
