// String keys: the engine holds a 64-bit hash; the store keeps and compares the bytes, so that two
// strings with one hash are two keys.
#ifndef TENSORHASH_TENSORFLOW_STRING_STORE_H_
#define TENSORHASH_TENSORFLOW_STRING_STORE_H_

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "map.h"
#include "string_hash.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/tstring.h"
#include "tensorflow/core/util/work_sharder.h"

namespace tensorhash_tf {

/// Maps strings to entries. It has no lock. A string's engine key is its hash. If another string
/// already has that key, the new string is a stray: it gets an unused engine key, and `strays_`
/// records it.
class StringStore {
public:
    /// The rows of one batch, and the context with the threads that process them.
    struct StringBatch {
        tf::tstring const* strings;
        std::int64_t rows;
        tf::OpKernelContext* ctx;

        template <class Body>
        void for_rows(std::int64_t cost, Body&& body) const {
            auto const& workers = *ctx->device()->tensorflow_cpu_worker_threads();
            tf::Shard(workers.num_threads, workers.workers, rows, cost,
                      [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t row = begin; row < end; ++row) {
                              body(static_cast<size_t>(row));
                          }
                      });
        }
    };

    absl::Status create(ElementSpec const& value, std::int64_t capacity, int hash_bits) {
        mask_ = hash_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << hash_bits) - 1;
        std::uint64_t seed = 0;
        TF_RETURN_IF_ERROR(to_status(th_new_seed(&seed)));
        secret_ = tensorhash::step::secret_of(seed);
        return map_.create({tf::DT_UINT64, {}}, value, capacity);
    }

    /// The buffer index of each string, or -1 if it is missing.
    absl::Status find(StringBatch const& batch, std::vector<std::int32_t>* indices) const {
        return find(batch, engine_keys(batch), indices);
    }
    absl::Status gather(std::vector<std::int32_t> const& indices, Missing missing,
                        void* values) const {
        return map_.gather(indices.data(), static_cast<std::int64_t>(indices.size()), missing,
                           values);
    }

    absl::Status accumulate(StringBatch const& batch, void const* values, th_reduce reduce) {
        Added added;
        return accumulate(batch, values, reduce, &added);
    }
    /// The buffer index of each row's string, and whether the row added it.
    struct Added {
        std::vector<std::int32_t> indices;
        std::vector<std::uint8_t> mask;
    };
    absl::Status accumulate(StringBatch const& batch, void const* values, th_reduce reduce,
                            Added* out) {
        std::vector<std::uint64_t> keys = engine_keys(batch);
        Strays strays;
        size_t fresh = 0;
        TF_RETURN_IF_ERROR(resolve_collisions(batch, &keys, &strays, &fresh));
        std::vector<std::int32_t>& indices = out->indices;
        std::vector<std::uint8_t>& added = out->mask;
        indices.resize(keys.size());
        added.resize(keys.size());
        TF_RETURN_IF_ERROR(reserve_for(static_cast<std::int64_t>(fresh)));
        TF_RETURN_IF_ERROR(
            map_.accumulate(keys.data(), batch.rows, values, reduce, indices.data(), added.data()));
        strays_.merge(strays);  // moves nodes, so it cannot fail after the accumulate
        batch.for_rows(50, [&](size_t row) {
            if (added[row] != 0) {
                bytes_[static_cast<size_t>(indices[row])] = batch.strings[row];
            }
        });
        return absl::OkStatus();
    }

    /// Overwrites the values of strings in the table, and sets `exists`. `row_bytes`: the bytes of
    /// one value.
    absl::Status assign(StringBatch const& batch, void const* values, size_t row_bytes,
                        bool* exists) {
        FoundRows found;
        TF_RETURN_IF_ERROR(find_rows(batch, values, row_bytes, exists, &found));
        return map_.accumulate(found.keys.data(), found.rows(), found.data.data(), TH_LAST);
    }
    absl::Status update(StringBatch const& batch, void const* gradients, size_t row_bytes,
                        th_optimizer const& optimizer, th_duplicates duplicates, bool* exists) {
        FoundRows found;
        TF_RETURN_IF_ERROR(find_rows(batch, gradients, row_bytes, exists, &found));
        return map_.update(found.keys.data(), found.rows(), found.data.data(), optimizer,
                           duplicates);
    }

    absl::Status erase(StringBatch const& batch) {
        std::vector<std::uint64_t> const keys = engine_keys(batch);
        std::vector<std::int32_t> indices;
        TF_RETURN_IF_ERROR(find(batch, keys, &indices));
        // Only the keys of found strings: the hash of a missing string may be another string's key.
        std::vector<std::uint64_t> found;
        for (size_t row = 0; row < keys.size(); ++row) {
            if (indices[row] >= 0) {
                found.push_back(keys[row]);
            }
        }
        TF_RETURN_IF_ERROR(map_.erase(found.data(), static_cast<std::int64_t>(found.size())));
        for (size_t row = 0; row < keys.size(); ++row) {
            if (indices[row] >= 0) {
                bytes_[static_cast<size_t>(indices[row])] = tf::tstring();
                auto const stray = strays_.find(view(batch.strings[row]));
                if (stray != strays_.end()) {
                    strays_.erase(stray);
                }
            }
        }
        return absl::OkStatus();
    }

    absl::Status clear() {
        TF_RETURN_IF_ERROR(map_.clear());
        bytes_.clear();
        strays_.clear();
        return absl::OkStatus();
    }
    absl::Status reserve(std::int64_t capacity) {
        TF_RETURN_IF_ERROR(map_.reserve(capacity));
        bytes_.reserve(static_cast<size_t>(capacity));
        return absl::OkStatus();
    }

    Map const& map() const { return map_; }
    tf::tstring const& bytes(std::int32_t index) const {
        return bytes_[static_cast<size_t>(index)];
    }
    std::int64_t memory() const {
        std::int64_t bytes = map_.memory();
        for (tf::tstring const& one : bytes_) {
            bytes += static_cast<std::int64_t>(sizeof(one) + one.capacity());
        }
        return bytes;
    }

private:
    using Strays = std::map<std::string, std::uint64_t, std::less<>>;

    /// The rows of a batch that have their string in the table.
    struct FoundRows {
        std::vector<std::uint64_t> keys;
        std::vector<char> data;
        std::int64_t rows() const { return static_cast<std::int64_t>(keys.size()); }
    };
    absl::Status find_rows(StringBatch const& batch, void const* data, size_t row_bytes,
                           bool* exists, FoundRows* found) const {
        std::vector<std::uint64_t> const keys = engine_keys(batch);
        std::vector<std::int32_t> indices;
        TF_RETURN_IF_ERROR(find(batch, keys, &indices));
        for (size_t row = 0; row < keys.size(); ++row) {
            exists[row] = indices[row] >= 0;
            if (exists[row]) {
                auto const* const from = static_cast<char const*>(data) + row * row_bytes;
                found->keys.push_back(keys[row]);
                found->data.insert(found->data.end(), from, from + row_bytes);
            }
        }
        return absl::OkStatus();
    }

    // A lookup by view allocates nothing: it runs on TensorFlow's threads, where nothing may throw.
    static std::string_view view(tf::tstring const& string) {
        return {string.data(), string.size()};
    }

    /// Reserves room for `fresh` new entries in all parts, so that the next accumulate neither
    /// grows nor fails halfway.
    absl::Status reserve_for(std::int64_t fresh) {
        std::int64_t const needed = map_.size() + fresh;
        if (needed > map_.capacity()) {
            constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
            TF_RETURN_IF_ERROR(
                map_.reserve(std::max(needed, std::min(2 * map_.capacity(), kMost))));
        }
        bytes_.resize(static_cast<size_t>(map_.capacity()));
        return absl::OkStatus();
    }

    std::vector<std::uint64_t> engine_keys(StringBatch const& batch) const {
        std::vector<std::uint64_t> keys(static_cast<size_t>(batch.rows));
        batch.for_rows(100, [&](size_t row) {
            tf::tstring const& string = batch.strings[row];
            keys[row] = string_hash(view(string), secret_) & mask_;
            if (!strays_.empty()) {
                auto const stray = strays_.find(view(string));
                keys[row] = stray == strays_.end() ? keys[row] : stray->second;
            }
        });
        return keys;
    }

    absl::Status find(StringBatch const& batch, std::vector<std::uint64_t> const& keys,
                      std::vector<std::int32_t>* indices) const {
        indices->resize(keys.size());
        TF_RETURN_IF_ERROR(map_.find(keys.data(), batch.rows, indices->data()));
        batch.for_rows(100, [&](size_t row) {
            std::int32_t& index = (*indices)[row];
            if (index >= 0 && bytes(index) != batch.strings[row]) {
                index = -1;
            }
        });
        return absl::OkStatus();
    }

    /// Gives each string that collides with another, in the table or earlier in the batch, an
    /// engine key of its own. `added`: the number of distinct new strings.
    absl::Status resolve_collisions(StringBatch const& batch, std::vector<std::uint64_t>* keys,
                                    Strays* strays, size_t* added) const {
        std::vector<std::int32_t> indices(keys->size());
        TF_RETURN_IF_ERROR(map_.find(keys->data(), batch.rows, indices.data()));
        // For collisions among the new strings, a second map finds the first row of each key.
        std::vector<std::uint64_t> fresh;
        std::vector<size_t> rows;
        std::vector<size_t> collided;
        for (size_t row = 0; row < keys->size(); ++row) {
            if (indices[row] < 0) {
                fresh.push_back((*keys)[row]);
                rows.push_back(row);
            } else if (bytes(indices[row]) != batch.strings[row]) {
                collided.push_back(row);
            }
        }
        std::vector<std::int32_t> ranks(fresh.size());
        std::vector<std::uint8_t> first(fresh.size());
        Map seen;
        TF_RETURN_IF_ERROR(seen.create({tf::DT_UINT64, {}}, {tf::DT_BOOL, {}}, 0));
        std::vector<std::uint8_t> const nothing(fresh.size());
        TF_RETURN_IF_ERROR(seen.accumulate(fresh.data(), static_cast<std::int64_t>(fresh.size()),
                                           nothing.data(), TH_FIRST, ranks.data(), first.data()));
        std::vector<size_t> owner;
        for (size_t i = 0; i < fresh.size(); ++i) {
            if (first[i] != 0) {
                owner.push_back(rows[i]);  // ranks follow row order
            } else if (batch.strings[owner[static_cast<size_t>(ranks[i])]] !=
                       batch.strings[rows[i]]) {
                collided.push_back(rows[i]);
            }
        }
        if (!collided.empty()) {
            TF_RETURN_IF_ERROR(make_strays(batch, collided, keys, strays));
        }
        *added = owner.size() + strays->size();
        return absl::OkStatus();
    }

    absl::Status make_strays(StringBatch const& batch, std::vector<size_t> const& collided,
                             std::vector<std::uint64_t>* keys, Strays* strays) const {
        std::unordered_set<std::uint64_t> taken(keys->begin(), keys->end());
        for (size_t const row : collided) {
            auto const [stray, is_new] = strays->try_emplace(std::string(batch.strings[row]), 0);
            if (is_new) {
                std::uint64_t key = (*keys)[row];
                std::int32_t index = 0;
                do {
                    // An odd step reaches every key. A large step leads away from the hashes in
                    // use, even if hash_bits is small.
                    key += 0x9e3779b97f4a7c15u;
                    TF_RETURN_IF_ERROR(map_.find(&key, 1, &index));
                } while (index >= 0 || taken.count(key) != 0);
                taken.insert(key);
                stray->second = key;
            }
            (*keys)[row] = stray->second;
        }
        return absl::OkStatus();
    }

    Map map_;
    std::vector<tf::tstring> bytes_;  // by buffer index
    Strays strays_;
    std::uint64_t mask_ = ~std::uint64_t{0};
    tensorhash::step::HashSecret secret_;
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_STRING_STORE_H_
