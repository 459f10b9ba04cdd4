// HashMap::update: applies a gradient step to the values of each row's key.
#include <optional>
#include <string>
#include <utility>

#include "map/map_impl.hpp"
#include "map/update_arguments.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using map::Answers;
using map::CheckedBatch;

/// The step and the checked arguments of an update.
struct HashMap::Impl::UpdateCall {
    std::variant<Optimizer const*, RowStep const*> step;
    CheckedBatch keys;
    Element gradient;
    CheckedBatch gradients;
    std::optional<map::FillRows> initial;
};

Located HashMap::Impl::update(UpdateCall call, UpdateOptions const& options) {
    Located located = map::make_located(call.keys.rows, table->device());
    Answers const out = map::answers(located);
    auto const guard = writing();
    map::detach_from(*table, call.keys);
    map::detach_from(*table, call.gradients);
    if (call.initial) {
        map::detach_from(*table, call.initial->batch);
    }
    auto lookup =
        options.missing == Missing::Insert ? backend::Lookup::Insert : backend::Lookup::Find;
    if (options.missing == Missing::Error) {
        table->find(map::key_rows(call.keys), out);
        Tensor const found = map::deliver(located.mask, Device{});
        map::require_found(static_cast<unsigned char const*>(found.data()), call.keys.rows);
        lookup = backend::Lookup::Done;
    }
    table->update({map::key_rows(call.keys), &call.gradient, call.gradients.data(), call.step,
                   options.duplicates, lookup,
                   call.initial ? call.initial->rows() : backend::DefaultRows{}, out});
    map::mark_read(call.keys);
    map::mark_read(call.gradients);
    return map::deliver(std::move(located), call.keys.home);
}

Located HashMap::update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                        UpdateOptions const& options) {
    map::check_optimizer(optimizer, impl_->values);
    Element const& weights = impl_->values[0];
    CheckedBatch key_batch = map::check_batch(keys, impl_->key, "keys", device());
    CheckedBatch gradient_batch =
        map::check_gradients(gradients, weights, key_batch.rows, device());
    auto initial = map::check_initial(options, impl_->values, key_batch.rows, device());
    return impl_->update(
        {&optimizer, std::move(key_batch), weights, std::move(gradient_batch), std::move(initial)},
        options);
}

Located HashMap::update(Tensor const& keys, Tensor const& gradients, RowStep const& step,
                        UpdateOptions const& options) {
    if (!step) {
        throw ValueError("step: expected a function, got an empty one");
    }
    CheckedBatch key_batch = map::check_batch(keys, impl_->key, "keys", device());
    Element element = map::element_of(gradients, "gradients");
    map::check_value_element(element, 0);
    CheckedBatch gradient_batch =
        map::check_gradients(gradients, element, key_batch.rows, device());
    auto initial = map::check_initial(options, impl_->values, key_batch.rows, device());
    return impl_->update({&step, std::move(key_batch), std::move(element),
                          std::move(gradient_batch), std::move(initial)},
                         options);
}

}  // namespace tensorhash
