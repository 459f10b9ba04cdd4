// Finds and loads plugins, and says why a device is not there.
#include "backend/plugins.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "backend/loader.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash {
namespace backend {
namespace {

namespace fs = std::filesystem;

constexpr char const* kCudaPackage = "tensorhash-cu13";
constexpr char const* kNotInstalled =
    "CUDA needs the package tensorhash-cu13, which is not installed";
constexpr char const* kCudaPlugin = "libtensorhash_cuda.so";

struct Failure {
    fs::path plugin;
    std::string why;
};

/// What was found so far. Never freed: threads may still use it while the process exits.
struct Plugins {
    std::mutex mutex;
    std::vector<fs::path> untried;  // plugins, or folders with plugins
    std::vector<Failure> failures;
    std::atomic<bool> all_tried = false;
};

void read_environment(Plugins& plugins) {
    char const* const paths = std::getenv("TENSORHASH_PLUGINS");
    std::istringstream list(paths != nullptr ? paths : "");
    for (std::string path; std::getline(list, path, ':');) {
        if (!path.empty()) {
            plugins.untried.emplace_back(path);
        }
    }
}

Plugins& plugins() {
    static Plugins& all = []() -> Plugins& {
        auto* const made = new Plugins;
        read_environment(*made);
        return *made;
    }();
    return all;
}

/// The plugins in a folder, by name; another path stands for itself.
std::vector<fs::path> plugins_at(fs::path const& path) {
    std::error_code ignored;  // dlopen says what is wrong with a path
    if (!fs::is_directory(path, ignored)) {
        return {path};
    }
    std::vector<fs::path> found;
    for (fs::directory_entry const& entry : fs::directory_iterator(path, ignored)) {
        std::string const name = entry.path().filename().string();
        if (name.starts_with("libtensorhash_") && name.ends_with(".so")) {
            found.push_back(entry.path());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::string last_error() {
    char const* const text = dlerror();
    return text != nullptr ? text : "unknown error";
}

/// Registers the back end of a plugin. Returns what went wrong, or nothing.
std::string load(fs::path const& path) {
    // A name without a slash would be searched for in the system's folders.
    void* const library = dlopen(fs::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return last_error();
    }
    auto const entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginEntry));
    if (entry == nullptr) {
        return std::string("it has no function ") + kPluginEntry;
    }
    DeviceBackend* const found = entry(TENSORHASH_VERSION);
    if (found == nullptr) {
        return std::string("it was built for another version of tensorhash, this is ") +
               TENSORHASH_VERSION + "; install the same version of both";
    }
    if (find_backend(found->type()) == nullptr) {
        register_backend(found->type(), found);
    }
    return {};
}

/// The first failure that can be why there is no such device, or null.
Failure const* failure_for(Device::Type type) {
    auto const& all = plugins().failures;
    auto const found = std::find_if(all.begin(), all.end(), [&](Failure const& failure) {
        return (failure.plugin.filename() == kCudaPlugin) == (type == Device::Type::Cuda);
    });
    return found != all.end() ? &*found : nullptr;
}

/// Why there is no device of this type: the end of a sentence on the device.
std::string why_none(Device::Type type) {
    if (DeviceBackend* const loaded = find_backend(type); loaded != nullptr) {
        std::string const plugin = type == Device::Type::Cuda ? kCudaPackage : "its plugin";
        return plugin + " is installed, but " + loaded->why_no_device();
    }
    std::scoped_lock const guard(plugins().mutex);
    if (Failure const* const failure = failure_for(type); failure != nullptr) {
        return "the plugin " + failure->plugin.string() + " does not load: " + failure->why;
    }
    return type == Device::Type::Cuda ? kNotInstalled : "no plugin has such a device";
}

std::string quoted(Device device) { return std::string("\"").append(to_string(device)) + "\""; }

std::string ids(Device::Type type, int count) {
    std::string const first = quoted({type, 0});
    return count == 1 ? first : first + " to " + quoted({type, count - 1});
}

}  // namespace
}  // namespace backend

void load_plugins() {
    backend::Plugins& all = backend::plugins();
    // Pairs with the stores below and in add_plugin_folder().
    if (all.all_tried.load(std::memory_order_acquire)) {
        return;
    }
    std::scoped_lock const guard(all.mutex);
    for (auto const& place : std::exchange(all.untried, {})) {
        for (auto const& path : backend::plugins_at(place)) {
            if (std::string why = backend::load(path); !why.empty()) {
                all.failures.push_back({path, std::move(why)});
            }
        }
    }
    all.all_tried.store(true, std::memory_order_release);
}

void add_plugin_folder(std::string const& folder) {
    backend::Plugins& all = backend::plugins();
    std::scoped_lock const guard(all.mutex);
    all.untried.emplace_back(folder);
    all.all_tried.store(false, std::memory_order_release);
}

std::string device_status(Device::Type type) {
    int const count = device_count(type);
    return count > 0 ? backend::ids(type, count) : backend::why_none(type);
}

void fail_no_device(Device device, std::string_view argument) {
    std::string const got = ", got " + backend::quoted(device);
    int const count = device_count(device.type);
    if (count > 0) {
        throw DeviceError(std::string(argument) + ": expected " + backend::ids(device.type, count) +
                          got + ": there is no such device");
    }
    std::string const why = backend::why_none(device.type);
    char const* const advice = why == backend::kNotInstalled ? "; install it or use" : "; use";
    throw DeviceError(std::string(argument) + ": " + why + got + advice + " \"cpu\"");
}

}  // namespace tensorhash
