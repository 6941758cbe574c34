// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/binding/topology.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "hwloc.h"

namespace hlaunch {
namespace {

// The functions of hwloc that are used. A static program contains them, since it cannot load a
// library of the machine. Other builds load hwloc by name: linked, it would be loaded at every
// start, and libudev with it.
struct Hwloc {
#ifdef HLAUNCH_STATIC
  void* library = nullptr;
  bool complete = true;

#define HLAUNCH_HWLOC(name) decltype(::hwloc_##name)* name = ::hwloc_##name
#else
  void* library = ::dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
  bool complete = library != nullptr;

  template <typename Function>
  Function* Find(const char* name) {
    void* found = library == nullptr ? nullptr : ::dlsym(library, name);
    complete = complete && found != nullptr;
    return reinterpret_cast<Function*>(found);
  }

#define HLAUNCH_HWLOC(name) \
  decltype(::hwloc_##name)* name = Find<decltype(::hwloc_##name)>("hwloc_" #name)
#endif
  HLAUNCH_HWLOC(topology_init);
  HLAUNCH_HWLOC(topology_set_flags);
  HLAUNCH_HWLOC(topology_set_components);
  HLAUNCH_HWLOC(topology_set_synthetic);
  HLAUNCH_HWLOC(topology_set_xml);
  HLAUNCH_HWLOC(topology_load);
  HLAUNCH_HWLOC(topology_is_thissystem);
  HLAUNCH_HWLOC(topology_destroy);
  HLAUNCH_HWLOC(get_type_depth);
  HLAUNCH_HWLOC(get_obj_by_depth);
  HLAUNCH_HWLOC(bitmap_first);
#undef HLAUNCH_HWLOC
};

// Sets an environment variable of this process while this object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = ::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

bool IsCache(hwloc_obj_type_t type) {
  return type >= HWLOC_OBJ_L1CACHE && type <= HWLOC_OBJ_L5CACHE;  // Not of instructions.
}

Cpu Describe(const Hwloc& hwloc, hwloc_obj_t pu) {
  Cpu cpu;
  cpu.id = static_cast<int>(pu->os_index);
  cpu.core = cpu.cache = cpu.id;
  // The lowest number, because a socket may also have nodes that are only memory.
  cpu.node = std::max(0, hwloc.bitmap_first(pu->nodeset));
  for (hwloc_obj_t object = pu->parent; object != nullptr; object = object->parent) {
    const int first = hwloc.bitmap_first(object->cpuset);
    if (object->type == HWLOC_OBJ_CORE) cpu.core = first;
    if (object->type == HWLOC_OBJ_PACKAGE) cpu.socket = static_cast<int>(object->logical_index);
    if (IsCache(object->type)) cpu.cache = first;
  }
  return cpu;
}

// Passes `source` to hwloc. Returns false if hwloc refuses it.
bool SetSource(const Hwloc& hwloc, hwloc_topology_t topology, const TopologySource& source) {
  if (!source.synthetic.empty()) {
    return hwloc.topology_set_synthetic(topology, source.synthetic.c_str()) == 0;
  }
  if (!source.xml_file.empty()) {
    return hwloc.topology_set_xml(topology, source.xml_file.c_str()) == 0;
  }
  return true;
}

}  // namespace

absl::StatusOr<Topology> LoadTopology(const TopologySource& source) {
  // Plugins would load vendors' libraries, which open devices.
  const Variable no_plugins("HWLOC_PLUGINS_PATH", "/nonexistent");
  const Variable no_words("HWLOC_HIDE_ERRORS", "2");
  std::optional<Variable> root;
  if (!source.root.empty()) root.emplace("HWLOC_FSROOT", source.root);

  const Hwloc hwloc;
  const std::unique_ptr<void, int (*)(void*)> library(
      hwloc.library, [](void* handle) { return handle == nullptr ? 0 : ::dlclose(handle); });
  if (!hwloc.complete) {
    return absl::FailedPreconditionError(
        "hwloc 2 (libhwloc.so.15) cannot be loaded; install libhwloc15");
  }
  hwloc_topology_t loading = nullptr;
  if (hwloc.topology_init(&loading) != 0) return absl::InvalidArgumentError("hwloc has no memory");
  const std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)> topology(
      loading, hwloc.topology_destroy);
  // Includes all CPUs, so the whole machine can be drawn. The x86 component is off, because it
  // visits each CPU.
  hwloc.topology_set_flags(topology.get(), HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                                               HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING |
                                               HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                               HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                               HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
  hwloc.topology_set_components(topology.get(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  if (!SetSource(hwloc, topology.get(), source) || hwloc.topology_load(topology.get()) != 0) {
    return absl::InvalidArgumentError("hwloc cannot tell how the CPUs are arranged");
  }
  Topology result;
  // If a root describes no CPUs, hwloc invents some, which are not this machine's either.
  result.is_this_machine = source.root.empty() && hwloc.topology_is_thissystem(topology.get()) != 0;
  const int depth = hwloc.get_type_depth(topology.get(), HWLOC_OBJ_PU);
  for (unsigned i = 0;; ++i) {
    const hwloc_obj_t pu = hwloc.get_obj_by_depth(topology.get(), depth, i);
    if (pu == nullptr) break;
    result.cpus.push_back(Describe(hwloc, pu));
  }
  std::sort(result.cpus.begin(), result.cpus.end(),
            [](const Cpu& a, const Cpu& b) { return a.id < b.id; });
  return result;
}

}  // namespace hlaunch
