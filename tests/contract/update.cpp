// update: optimizer steps on values, against loops in double that take one row after the other.
#include <cmath>
#include <map>

#include "support/fixtures.hpp"
#include "support/reduce_oracle.hpp"

namespace th_test {
namespace {

using tensorhash::Adagrad;
using tensorhash::Adam;
using tensorhash::DuplicateKeys;
using tensorhash::KeyError;
using tensorhash::Missing;
using tensorhash::Optimizer;
using tensorhash::optimizer_columns;
using tensorhash::RowWiseAdagrad;
using tensorhash::Sgd;
using tensorhash::UpdateOptions;
using tensorhash::UpdateRow;
using Vector = std::vector<double>;

constexpr std::size_t width = 5;

/// Weights and state of one key, stepped by the textbook formulas.
struct Model {
    Vector w = Vector(width), a = Vector(width), b = Vector(width);
    int steps = 0;

    void step(Sgd const& o, Vector g) {
        for (std::size_t i = 0; i < width; ++i) {
            g[i] += o.weight_decay * w[i];
            a[i] = o.momentum * a[i] + g[i];
            w[i] -= o.lr * (o.nesterov ? g[i] + o.momentum * a[i] : a[i]);
        }
    }
    void step(Adagrad const& o, Vector g) {
        for (std::size_t i = 0; i < width; ++i) {
            g[i] += o.weight_decay * w[i];
            a[i] += g[i] * g[i];
            w[i] -= o.lr * g[i] / (std::sqrt(o.initial_accumulator_value + a[i]) + o.eps);
        }
    }
    void step(RowWiseAdagrad const& o, Vector g) {
        double squares = 0;
        for (std::size_t i = 0; i < width; ++i) {
            g[i] += o.weight_decay * w[i];
            squares += g[i] * g[i];
        }
        a[0] += squares / width;
        for (std::size_t i = 0; i < width; ++i)
            w[i] -= o.lr * g[i] / (std::sqrt(o.initial_accumulator_value + a[0]) + o.eps);
    }
    void step(Adam const& o, Vector g) {
        ++steps;
        for (std::size_t i = 0; i < width; ++i) {
            if (o.decoupled_weight_decay)
                w[i] *= 1 - o.lr * o.weight_decay;
            else
                g[i] += o.weight_decay * w[i];
            a[i] = o.beta1 * a[i] + (1 - o.beta1) * g[i];
            b[i] = o.beta2 * b[i] + (1 - o.beta2) * g[i] * g[i];
            double first = a[i] / (1 - std::pow(o.beta1, steps));
            double second = b[i] / (1 - std::pow(o.beta2, steps));
            w[i] -= o.lr * first / (std::sqrt(second) + o.eps);
        }
    }
};

struct Named {
    std::string name;
    Optimizer optimizer;
};
std::vector<Named> optimizers() {
    return {{"sgd", Sgd{0.1}},
            {"sgd_momentum", Sgd{0.1, 0.9, 0.01}},
            {"sgd_nesterov", Sgd{0.1, 0.8, 0, true}},
            {"adagrad", Adagrad{0.1, 0.01, 0.5}},
            {"row_wise_adagrad", RowWiseAdagrad{0.1, 0.01, 0.5}},
            {"row_wise_adagrad_plain", RowWiseAdagrad{0.1}},
            {"adam", Adam{0.05}},
            {"adam_decay", Adam{0.05, 0.8, 0.99, 1e-6, 0.1}},
            {"adamw", Adam{0.05, 0.9, 0.999, 1e-8, 0.1, true}}};
}

Tensor some_gradients(Dtype dtype, std::size_t rows, std::uint64_t seed) {
    Tensor out =
        Tensor::empty({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)}, dtype);
    Random random(seed);
    for (std::size_t i = 0; i < rows * width; ++i) {
        double x = static_cast<double>(random.below(2000)) / 500.0 - 2.0;
        if (dtype == Dtype::Float64)
            static_cast<double*>(out.data())[i] = x;
        else if (dtype == Dtype::Float32)
            static_cast<float*>(out.data())[i] = static_cast<float>(x);
        else
            static_cast<std::uint16_t*>(out.data())[i] = dtype == Dtype::Float16
                                                             ? to_float16(static_cast<float>(x))
                                                             : to_bfloat16(static_cast<float>(x));
    }
    return out;
}

double element_at(Tensor const& tensor, std::size_t i) {
    void const* data = tensor.data();
    if (tensor.dtype() == Dtype::Float64) return static_cast<double const*>(data)[i];
    if (tensor.dtype() == Dtype::Float32) return static_cast<float const*>(data)[i];
    std::uint16_t bits = static_cast<std::uint16_t const*>(data)[i];
    return tensor.dtype() == Dtype::Float16 ? from_float16(bits) : from_bfloat16(bits);
}

Vector row_at(Tensor const& tensor, std::size_t row) {
    Vector out;
    for (std::size_t i = 0; i < width; ++i) out.push_back(element_at(tensor, row * width + i));
    return out;
}

Tensor int64s(Ids const& ids) {
    std::vector<std::int64_t> keys(ids.begin(), ids.end());
    return Tensor::from(keys);
}

HashMap map_for(Optimizer const& optimizer, Dtype dtype) {
    return make_map(Capacity{0}, {Dtype::Int64, {}},
                    optimizer_columns(optimizer, {dtype, {static_cast<std::int64_t>(width)}}));
}

using Models = std::map<std::uint64_t, Model>;

void step_models(Models& models, Optimizer const& optimizer, Ids const& ids,
                 Tensor const& gradients) {
    for (std::size_t row = 0; row < ids.size(); ++row)
        std::visit([&](auto const& o) { models[ids[row]].step(o, row_at(gradients, row)); },
                   optimizer);
}

void expect_weights(HashMap const& map, Models const& models, double tolerance) {
    Ids ids;
    for (auto const& [id, model] : models) ids.push_back(id);
    ASSERT_EQ(map.size(), static_cast<std::int64_t>(ids.size()));
    Tensor weights = map.get(int64s(ids))[0];
    for (std::size_t row = 0; row < ids.size(); ++row)
        for (std::size_t i = 0; i < width; ++i) {
            double want = models.at(ids[row]).w[i];
            ASSERT_NEAR(element_at(weights, row * width + i), want,
                        tolerance * (1 + std::abs(want)))
                << "key " << ids[row] << ", element " << i;
        }
}

class Update : public OverThreads {};
TH_OVER_THREADS(Update);

UpdateOptions inserting(DuplicateKeys duplicates = DuplicateKeys::InOrder) {
    return {Missing::Insert, duplicates, {}};
}

TEST_P(Update, steps_rows_of_equal_keys_one_after_the_other) {
    for (auto const& [name, optimizer] : optimizers())
        for (Dtype dtype : {Dtype::Float32, Dtype::Float64}) {
            SCOPED_TRACE(name);
            HashMap map = map_for(optimizer, dtype);
            Models models;
            for (std::uint64_t round = 0; round < 3; ++round) {
                Ids ids = random_ids(6000, 1500, round);
                Tensor gradients = some_gradients(dtype, ids.size(), round);
                map.update(int64s(ids), gradients, optimizer, inserting());
                step_models(models, optimizer, ids, gradients);
            }
            expect_weights(map, models, dtype == Dtype::Float32 ? 2e-5 : 1e-11);
            map.validate();
        }
}

TEST_P(Update, sums_gradients_of_equal_keys_first_if_asked) {
    for (auto const& [name, optimizer] : optimizers()) {
        SCOPED_TRACE(name);
        HashMap map = map_for(optimizer, Dtype::Float64);
        Models models;
        for (std::uint64_t round = 0; round < 2; ++round) {
            Ids ids = random_ids(6000, 1500, round);
            Tensor gradients = some_gradients(Dtype::Float64, ids.size(), round);
            map.update(int64s(ids), gradients, optimizer, inserting(DuplicateKeys::Sum));
            std::map<std::uint64_t, Vector> sums;
            for (std::size_t row = 0; row < ids.size(); ++row) {
                Vector g = row_at(gradients, row);
                Vector& sum = sums.try_emplace(ids[row], Vector(width)).first->second;
                for (std::size_t i = 0; i < width; ++i) sum[i] += g[i];
            }
            for (auto const& [id, sum] : sums)
                std::visit([&](auto const& o) { models[id].step(o, sum); }, optimizer);
        }
        expect_weights(map, models, 1e-10);
    }
}

TEST_P(Update, skips_missing_keys_and_says_so) {
    HashMap map = map_for(Sgd{1.0}, Dtype::Float32);
    map.activate(int64s(sequence(3000)));
    Ids ids = random_ids(9000, 6000, 4);
    Tensor gradients = some_gradients(Dtype::Float32, ids.size(), 5);
    Located found = map.find(int64s(ids));
    Located located = map.update(int64s(ids), gradients, Sgd{1.0});
    EXPECT_TRUE(same_bytes(located.indices, found.indices));
    EXPECT_TRUE(same_bytes(located.mask, found.mask));
    EXPECT_EQ(map.size(), 3000);
    Models models;
    for (std::uint64_t id : sequence(3000)) models[id];
    Models all = models;
    step_models(all, Sgd{1.0}, ids, gradients);
    for (auto& [id, model] : models) model = all[id];
    expect_weights(map, models, 1e-5);
}

TEST_P(Update, inserts_missing_keys_with_initial_weights) {
    HashMap map = map_for(Adam{}, Dtype::Float64);
    Ids ids = random_ids(6000, 5000, 6);
    UpdateOptions options = inserting();
    options.initial = some_gradients(Dtype::Float64, ids.size(), 7);
    Tensor gradients = some_gradients(Dtype::Float64, ids.size(), 8);
    Located located = map.update(int64s(ids), gradients, Adam{}, options);
    Models models;
    std::vector<std::uint8_t> was_there;
    for (std::size_t row = 0; row < ids.size(); ++row) {
        auto [at, added] = models.try_emplace(ids[row]);
        if (added) at->second.w = row_at(options.initial, row);
        was_there.push_back(!added);
        at->second.step(Adam{}, row_at(gradients, row));
    }
    EXPECT_EQ(mask_of(located), was_there);
    EXPECT_TRUE(same_bytes(located.indices, map.find(int64s(ids)).indices));
    expect_weights(map, models, 1e-11);
}

TEST_P(Update, takes_a_custom_step) {
    HashMap map =
        make_map(Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Float32, {2}}, {Dtype::Int64, {}}});
    Ids ids = random_ids(20000, 300, 9);
    std::vector<std::int32_t> gradients(ids.size());
    std::map<std::uint64_t, std::pair<float, std::int64_t>> want;
    for (std::size_t row = 0; row < ids.size(); ++row) {
        gradients[row] = static_cast<std::int32_t>(row % 1000);
        auto& [value, count] = want[ids[row]];
        // The result depends on the order of rows.
        value = 0.5f * value + static_cast<float>(row % 1000);
        ++count;
    }
    map.update(
        int64s(ids), Tensor::from(gradients),
        [](UpdateRow const& row) {
            float* value = row.value<float>();
            value[0] = value[1] =
                0.5f * value[0] + static_cast<float>(*row.gradient<std::int32_t>());
            ++*row.value<std::int64_t>(1);
        },
        inserting());
    for (auto const& [id, pair] : want) {
        std::vector<Tensor> got = map.get(int64s({id}));
        ASSERT_EQ(got[0].as<float>()[1], pair.first);
        ASSERT_EQ(got[1].as<std::int64_t>()[0], pair.second);
    }
}

TEST(UpdateBits, are_the_same_on_any_number_of_threads) {
    for (auto const& [name, optimizer] : optimizers())
        for (DuplicateKeys duplicates : {DuplicateKeys::InOrder, DuplicateKeys::Sum}) {
            std::string first;
            for (int n : looped_thread_counts()) {
                Threads threads(n);
                HashMap map = map_for(optimizer, Dtype::Float32);
                for (std::uint64_t round = 0; round < 2; ++round)
                    map.update(int64s(random_ids(20000, 3000, round)),
                               some_gradients(Dtype::Float32, 20000, round), optimizer,
                               inserting(duplicates));
                std::string bytes = bytes_of(map.to_bytes());
                if (first.empty()) first = bytes;
                ASSERT_TRUE(same_bytes(bytes, first)) << name << " on " << n << " threads";
            }
        }
}

TEST(UpdateHalves, are_computed_in_float_and_rounded_once_per_step) {
    for (Dtype dtype : {Dtype::Float16, Dtype::BFloat16})
        for (auto const& [name, optimizer] : optimizers()) {
            HashMap halves = map_for(optimizer, dtype);
            HashMap floats = map_for(optimizer, Dtype::Float32);
            Ids ids = sequence(500);
            Tensor gradients = some_gradients(dtype, ids.size(), 3);
            Tensor wide = Tensor::empty(gradients.shape(), Dtype::Float32);
            for (std::size_t i = 0; i < ids.size() * width; ++i)
                wide.as_mutable<float>()[i] = static_cast<float>(element_at(gradients, i));
            halves.update(int64s(ids), gradients, optimizer, inserting());
            floats.update(int64s(ids), wide, optimizer, inserting());
            Tensor got = halves.get(int64s(ids))[0];
            Tensor want = floats.get(int64s(ids))[0];
            for (std::size_t i = 0; i < ids.size() * width; ++i) {
                float w = want.as<float>()[i];
                float rounded = dtype == Dtype::Float16 ? from_float16(to_float16(w))
                                                        : from_bfloat16(to_bfloat16(w));
                ASSERT_EQ(element_at(got, i), rounded) << name;
            }
        }
}

TEST(UpdateErrors, change_nothing_and_name_the_argument) {
    HashMap map = map_for(Adam{}, Dtype::Float32);
    map.activate(int64s(sequence(10)));
    std::string before = bytes_of(map.to_bytes());
    Tensor keys = int64s({3, 50, 4, 51});
    Tensor gradients = some_gradients(Dtype::Float32, 4, 1);
    std::string message = message_of<KeyError>(
        [&] { map.update(keys, gradients, Adam{}, {Missing::Error, DuplicateKeys::InOrder, {}}); });
    EXPECT_NE(message.find("keys: 2 rows are not in the table, the first is row 1"),
              std::string::npos)
        << message;
    auto refused = [&](auto const& optimizer, std::string const& part) {
        std::string text =
            message_of<tensorhash::ValueError>([&] { map.update(keys, gradients, optimizer); });
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    refused(Adagrad{-1.0}, "lr: expected a finite number");
    refused(Adam{0.1, 1.0}, "beta1: expected 0 <= beta1 < 1");
    refused(Sgd{0.1, 0, 0, true}, "momentum: expected more than 0 with nesterov");
    message_of<tensorhash::ValueError>(
        [&] { map.update(keys, some_gradients(Dtype::Float32, 3, 1), Adam{}); });
    message_of<tensorhash::TypeError>(
        [&] { map.update(keys, some_gradients(Dtype::Float64, 4, 1), Adam{}); });
    message_of<tensorhash::ValueError>([&] {
        map.update(keys, gradients, Adam{}, {Missing::Skip, DuplicateKeys::Sum, gradients});
    });
    HashMap small = map_for(Sgd{}, Dtype::Float32);
    std::string text =
        message_of<tensorhash::ValueError>([&] { small.update(keys, gradients, Adam{}); });
    EXPECT_NE(text.find("Adam needs 4 value columns"), std::string::npos) << text;
    HashMap whole = make_map(Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Int32, {}}});
    message_of<tensorhash::TypeError>(
        [&] { whole.update(keys, Tensor::from(std::vector<std::int32_t>(4)), Sgd{}); });
    EXPECT_TRUE(same_bytes(map.to_bytes(), before));
}

TEST(UpdateEdges, empty_batches_strides_and_the_tables_own_memory) {
    HashMap map = map_for(Sgd{1.0}, Dtype::Float32);
    EXPECT_EQ(map.update(int64s({}), some_gradients(Dtype::Float32, 0, 1), Sgd{}).indices.size(),
              0);
    map.insert(int64s({1, 2}), {Tensor::from(std::vector<float>(2 * width, 3.0f),
                                             {2, static_cast<std::int64_t>(width)})});
    // The gradient is a view of the weights with rows swapped: all are read before any is written.
    Tensor view = map.value_tensor();
    auto* second = static_cast<unsigned char*>(view.data()) + width * sizeof(float);
    Tensor swapped =
        Tensor::borrow_strided(second, {2, static_cast<std::int64_t>(width)},
                               {-static_cast<std::int64_t>(width * sizeof(float)), sizeof(float)},
                               Dtype::Float32, false, view.owner(), view.device());
    map.update(int64s({1, 2}), swapped, Sgd{0.5});
    Tensor weights = map.get(int64s({1, 2}))[0];
    for (float weight : weights.as<float>()) EXPECT_EQ(weight, 1.5f);
}

}  // namespace
}  // namespace th_test
