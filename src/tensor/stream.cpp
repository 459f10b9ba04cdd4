// The streams of each thread: those of its scopes, the innermost last.
#include "tensorhash/stream.hpp"

#include <algorithm>
#include <vector>

#include "tensor/allocators.hpp"

namespace tensorhash {
namespace {

thread_local std::vector<Stream> scopes;

}  // namespace

Stream current_stream(Device device) noexcept {
    auto const found = std::find_if(scopes.rbegin(), scopes.rend(),
                                    [&](Stream const& stream) { return stream.device == device; });
    return found == scopes.rend() ? Stream{device} : *found;
}

void synchronize(Device device) { memory_of(device, "device").synchronize(current_stream(device)); }

StreamScope::StreamScope(Stream stream) { scopes.push_back(stream); }
StreamScope::~StreamScope() { scopes.pop_back(); }

}  // namespace tensorhash
