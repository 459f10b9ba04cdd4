// The library through its public interface, and the limits to compare it with.
#include <cstring>
#include <optional>
#include <stdexcept>

#include "contenders.hpp"
#include "gather.h"
#include "tensorhash/tensorhash.hpp"

namespace bench {
namespace {

using namespace tensorhash;

HashMap make_map(Workload const& work) {
    return HashMap(Capacity{static_cast<std::int64_t>(work.rows)},
                   Element{work.kind.dtype, {work.kind.elements}}, {Element{Dtype::Int64, {1}}});
}

std::size_t count_true(Tensor const& mask) {
    std::size_t count = 0;
    for (bool const yes : mask.as<bool>()) {
        count += yes ? 1 : 0;
    }
    return count;
}

class Ours final : public Contender {
public:
    Ours(Workload& work, int threads) : work_(work) { set_num_threads(threads); }

    std::string_view name() const override { return "tensorhash"; }
    bool can(Operation) const override { return true; }

    void prepare(Operation operation) override {
        mask_ = {};
        located_ = {};
        if (is_find(operation) && map_.has_value() &&
            map_->size() == static_cast<std::int64_t>(work_.rows)) {
            return;
        }
        map_.reset();
        if (operation == Operation::ConstructInsert) {
            return;
        }
        map_.emplace(make_map(work_));
        if (operation != Operation::Insert) {
            map_->insert(keys(Operation::Insert), {values()});
        }
    }

    void run(Operation operation) override {
        switch (operation) {
            case Operation::ConstructInsert:
                map_.emplace(make_map(work_));
                [[fallthrough]];
            case Operation::Insert:
                located_ = map_->insert(keys(operation), {values()});
                break;
            case Operation::FindHit:
            case Operation::FindMiss:
                located_ = map_->find(keys(operation));
                break;
            case Operation::Erase:
                mask_ = map_->erase(keys(operation));
                break;
        }
    }

    std::size_t count() const override {
        return count_true(mask_.dtype() == Dtype::Undefined ? located_.mask : mask_);
    }

    void drop() override {
        mask_ = {};
        located_ = {};
        map_.reset();
    }

private:
    Tensor keys(Operation operation) const {
        return Tensor::borrow(static_cast<void const*>(work_.keys_for(operation)),
                              {static_cast<std::int64_t>(work_.rows), work_.kind.elements},
                              work_.kind.dtype);
    }
    Tensor values() const {
        return Tensor::borrow(static_cast<void const*>(work_.values.data()),
                              {static_cast<std::int64_t>(work_.rows), 1}, Dtype::Int64);
    }

    Workload& work_;
    std::optional<HashMap> map_;
    Located located_;
    Tensor mask_;
};

class Gather final : public Contender {
public:
    Gather(Workload& work, int threads, Limit limit) : work_(work), limit_(limit) {
        auto const index = static_cast<std::int64_t>(make_map(work).memory_usage().index);
        std::size_t const key_bytes = limit == Limit::Gather ? 0 : work.kind.bytes;
        std::size_t const value_bytes = limit == Limit::Scatter ? sizeof(std::int64_t) : 0;
        std::size_t const buffer = work.rows * (key_bytes + value_bytes);
        gather_ = th_gather_make(index, static_cast<std::int64_t>(buffer), threads);
        if (gather_ == nullptr) {
            throw std::bad_alloc();
        }
    }
    ~Gather() override { th_gather_destroy(gather_); }

    std::string_view name() const override {
        return limit_ == Limit::Gather    ? "gather"
               : limit_ == Limit::Gather2 ? "gather2"
                                          : "scatter";
    }
    bool can(Operation operation) const override {
        return limit_ == Limit::Gather ||
               (limit_ == Limit::Scatter ? operation == Operation::Insert
                                         : work_.lines_per_key(operation) == 2);
    }
    void prepare(Operation) override {}
    void run(Operation operation) override {
        void const* const keys = work_.keys_for(operation);
        auto const rows = static_cast<std::int64_t>(work_.rows);
        auto const key_bytes = static_cast<std::int32_t>(work_.kind.bytes);
        auto* const out = work_.out.as<std::int32_t>();
        auto* const mask = work_.mask.as<std::uint8_t>();
        if (limit_ == Limit::Scatter) {
            th_gather_scatter(gather_, keys, rows, key_bytes, work_.values.data(),
                              sizeof(std::int64_t), out, mask);
        } else {
            th_gather_run(gather_, keys, rows, key_bytes, limit_ == Limit::Gather ? 1 : 2, out,
                          mask);
        }
    }
    /// It has no answers to compare.
    std::size_t count() const override { return 0; }
    void drop() override {}

private:
    Workload& work_;
    Limit limit_;
    th_gather* gather_;
};

}  // namespace

std::unique_ptr<Contender> make_ours(Workload& work, int threads) {
    return std::make_unique<Ours>(work, threads);
}

std::unique_ptr<Contender> make_gather(Workload& work, int threads, Limit limit) {
    return std::make_unique<Gather>(work, threads, limit);
}

}  // namespace bench
