// The state of a StringIndex.
#pragma once

#include "runtime/lock.hpp"
#include "strings/string_table.hpp"
#include "tensorhash/strings.hpp"

namespace tensorhash {

struct StringIndex::Impl {
    explicit Impl(strings::StringSecret const& secret) : table(secret) {}

    mutable runtime::ReadWriteLock lock;
    strings::StringTable table;
};

}  // namespace tensorhash
