// Random programs: every operation of a table, in any order, with any batch, against the oracle.
#include <memory>
#include <stdexcept>

#include "fuzz.hpp"
#include "support/collisions.hpp"
#include "support/twin.hpp"

namespace th_test {
namespace {

std::vector<KeyKind> const& kinds() {
    static std::vector<KeyKind> const all = [] {
        std::vector<KeyKind> out = typed_kinds();
        for (std::int64_t width : {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 24, 33, 64, 100})
            out.push_back(bytes_kind(width));
        return out;
    }();
    return all;
}

std::vector<std::vector<Element>> const& column_sets() {
    static std::vector<std::vector<Element>> const sets = {
        {},
        {{Dtype::Int64, {}}},
        {{Dtype::Float32, {3}}, {Dtype::UInt8, {}}},
        {{Dtype::Float64, {}}, {Dtype::BFloat16, {2}}, {Dtype::Int16, {5}}},
        {{Dtype::Bool, {}}, {Dtype::Int8, {3}}, {Dtype::UInt64, {}}, {Dtype::Int32, {2, 2}}},
    };
    return sets;
}

/// One random program on one table.
class Program {
public:
    Program(std::uint64_t seed, Scratch const& scratch, Tally& tally)
        : random_(seed * 0x9e3779b97f4a7c15u), scratch_(scratch), tally_(tally),
          key_(pick(kinds()).element),
          twin_(
              static_cast<std::int64_t>(random_.one_in(3) ? random_.below(3000) : random_.below(5)),
              key_, pick(column_sets())) {
        // Colliding keys make long chains, so use few distinct ones.
        bool integers = key_.dtype != Dtype::Bool && key_.dtype != Dtype::Float32 &&
                        key_.dtype != Dtype::Float64;
        colliding_ = integers && key_.bytes() >= 8 && random_.one_in(4);
        static constexpr std::uint64_t universes[] = {12, 150, 2000, 20000};
        universe_ = universes[random_.below(colliding_ ? 2 : 4)];
    }

    void run(int batches) {
        for (int i = 0; i < batches; ++i) {
            if (i % 8 == 0) {
                static constexpr int threads[] = {1, 2, 8};
                tensorhash::set_num_threads(threads[random_.below(3)]);
            }
            step();
            ++tally_.batches;
            if (i % 10 == 9) check();
        }
        check();
        ++tally_.programs;
    }

private:
    template <class T>
    T const& pick(std::vector<T> const& from) {
        return from[random_.below(from.size())];
    }

    void check() {
        twin_.check();
        ++tally_.checks;
    }

    /// Mostly small batches, some large enough for several threads, some empty.
    std::size_t batch_rows() {
        std::uint64_t kind = random_.below(100);
        if (kind < 3) return 0;
        if (kind < 70) return 1 + random_.below(40);
        if (kind < 97 || colliding_) return 1 + random_.below(400);
        return 8192 + random_.below(8000);
    }

    Tensor keys() {
        Ids ids(batch_rows());
        // Sometimes use only a part of the universe, for more duplicates and hits.
        std::uint64_t range = random_.one_in(3) ? universe_ / 4 + 1 : universe_;
        for (std::uint64_t& id : ids) id = random_.below(range);
        tally_.rows += ids.size();
        Tensor out = make_keys(key_, ids);
        std::size_t width = key_.bytes();
        auto* bytes = static_cast<char*>(out.data());
        for (std::size_t row = 0; colliding_ && row < ids.size(); ++row) {
            if (width == 8)
                write_same_home_key(bytes + row * width, last_home, ids[row]);
            else
                write_same_hash_key(bytes + row * width, width, ids[row]);
        }
        return out;
    }

    std::vector<Tensor> values(Tensor const& for_keys) {
        std::vector<Tensor> out;
        for (Element const& element : twin_.oracle.value_elements())
            out.push_back(make_finite_values(element, static_cast<std::size_t>(for_keys.shape()[0]),
                                             random_.next()));
        return out;
    }

    std::vector<Reduce> reduces() {
        static constexpr Reduce every[] = {Reduce::First, Reduce::Last, Reduce::Sum, Reduce::Min,
                                           Reduce::Max};
        std::size_t columns = twin_.oracle.value_elements().size();
        std::vector<Reduce> out(random_.one_in(2) ? 1 : columns);
        for (Reduce& reduce : out) reduce = every[random_.below(5)];
        return out;
    }

    void step() {
        std::uint64_t verb = random_.below(100);
        if (verb < 20) {
            Tensor k = keys();
            twin_.insert(k, values(k));
        } else if (verb < 28) {
            twin_.activate(keys());
        } else if (verb < 38) {
            Tensor k = keys();
            twin_.insert_or_assign(k, values(k));
        } else if (verb < 48) {
            Tensor k = keys();
            twin_.accumulate(k, values(k), reduces());
        } else if (verb < 62) {
            twin_.find(keys());
        } else if (verb < 84) {
            twin_.erase(keys());
        } else if (verb < 90) {
            get();
        } else {
            rarely();
        }
    }

    void get() {
        Tensor k = keys();
        std::vector<Tensor> defaults = random_.one_in(2) ? values(k) : std::vector<Tensor>{};
        std::vector<Tensor> got = twin_.table.get(k, defaults);
        auto want = twin_.oracle.get(twin_.key_rows(k), twin_.value_rows(defaults));
        for (std::size_t c = 0; c < got.size(); ++c)
            require_equal(bytes_of(got[c]), want[c], twin_.oracle.value_elements()[c].bytes(),
                          "get");
    }

    void rarely() {
        switch (random_.below(8)) {
            case 7:
                twin_.shrink_to_fit();
                break;
            case 0:
                twin_.reserve(static_cast<std::int64_t>(random_.below(3000)));
                break;
            case 1:
                twin_.compact();
                break;
            case 2:
                if (random_.one_in(3)) twin_.clear();
                break;
            case 3:
                swap_for_clone();
                break;
            case 4:
                twin_.table = HashMap::from_bytes(twin_.table.to_bytes());
                break;
            case 5:
                twin_.table.save(scratch_.file("table.thash"));
                twin_.table = HashMap::load(scratch_.file("table.thash"));
                break;
            default:
                check();
                break;
        }
    }

    /// Continues with the clone; the original must not change.
    void swap_for_clone() {
        auto original = std::make_unique<Twin>(std::move(twin_));
        twin_ = original->clone();
        twin_.erase(keys());
        original->check();
        if (random_.one_in(2)) twin_ = std::move(*original);
    }

    Random random_;
    Scratch const& scratch_;
    Tally& tally_;
    Element key_;
    Twin twin_;
    bool colliding_ = false;
    std::uint64_t universe_ = 0;
};

}  // namespace

void fuzz_table(std::uint64_t seed, int batches, Scratch const& scratch, Tally& tally) {
    Program(seed, scratch, tally).run(batches);
}

}  // namespace th_test
