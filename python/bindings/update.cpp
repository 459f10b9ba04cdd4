// Binds the optimizers, and update() for HashMap.
#include "optimizer.hpp"

namespace tensorhash::bindings {
void bind_update(nb::module_& m) {
    nb::class_<BoundOptimizer>(m, "Optimizer", "An optimizer of tensorhash.optim, for the core.")
        .def_static(
            "sgd",
            [](double lr, double momentum, double weight_decay, bool nesterov) {
                return BoundOptimizer{Sgd{lr, momentum, weight_decay, nesterov}};
            },
            nb::arg("lr"), nb::arg("momentum"), nb::arg("weight_decay"), nb::arg("nesterov"))
        .def_static(
            "adagrad",
            [](double lr, double weight_decay, double initial, double eps) {
                return BoundOptimizer{Adagrad{lr, weight_decay, initial, eps}};
            },
            nb::arg("lr"), nb::arg("weight_decay"), nb::arg("initial_accumulator_value"),
            nb::arg("eps"))
        .def_static(
            "row_wise_adagrad",
            [](double lr, double weight_decay, double initial, double eps) {
                return BoundOptimizer{RowWiseAdagrad{lr, weight_decay, initial, eps}};
            },
            nb::arg("lr"), nb::arg("weight_decay"), nb::arg("initial_accumulator_value"),
            nb::arg("eps"))
        .def_static(
            "adam",
            [](double lr, double beta1, double beta2, double eps, double weight_decay,
               bool decoupled_weight_decay) {
                return BoundOptimizer{
                    Adam{lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay}};
            },
            nb::arg("lr"), nb::arg("beta1"), nb::arg("beta2"), nb::arg("eps"),
            nb::arg("weight_decay"), nb::arg("decoupled_weight_decay"))
        .def(
            "columns",
            [](BoundOptimizer const& self, ElementSpec const& weights) {
                return to_specs(optimizer_columns(self.value, to_element(weights)));
            },
            nb::arg("weights"));
    m.def("update", &update_table<HashMap>, nb::arg("table"), nb::arg("keys"), nb::arg("gradients"),
          nb::arg("optimizer"), nb::arg("missing"), nb::arg("duplicates"),
          nb::arg("initial").none());
}

}  // namespace tensorhash::bindings
