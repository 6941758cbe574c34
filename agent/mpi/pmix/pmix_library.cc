// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/pmix_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// What PMIx_Info_load is made of. Before it was a function it was a macro that called this one.
void (*load_value)(pmix_value_t* value, const void* data, pmix_data_type_t type) = nullptr;

pmix_status_t LoadInfo(pmix_info_t* info, const char* key, const void* data,
                       pmix_data_type_t type) {
  *info = pmix_info_t{};
  absl::string_view(key).copy(info->key, sizeof info->key - 1);
  load_value(&info->value, data, type);
  return PMIX_SUCCESS;
}

}  // namespace

absl::StatusOr<PmixLibrary> LoadPmix(const std::string& path) {
  if (path.empty()) {
    return absl::NotFoundError(
        "there is no libpmix.so.2 (install libpmix2 on Debian and Ubuntu, pmix on Fedora and "
        "RHEL)");
  }
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // Its plugins use it.
  if (handle == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot load libpmix: ", ::dlerror()));
  }
  std::string missing;
  const auto find = [&](auto* function, const char* name) {
    *function =
        reinterpret_cast<std::remove_reference_t<decltype(*function)>>(::dlsym(handle, name));
    if (*function == nullptr) missing = name;
  };
  PmixLibrary library;
  find(&library.server_init, "PMIx_server_init");
  find(&library.register_nspace, "PMIx_server_register_nspace");
  find(&library.register_client, "PMIx_server_register_client");
  find(&library.setup_fork, "PMIx_server_setup_fork");
  find(&library.dmodex_request, "PMIx_server_dmodex_request");
  find(&library.generate_regex, "PMIx_generate_regex");
  find(&library.generate_ppn, "PMIx_generate_ppn");
  if (::dlsym(handle, "PMIx_Info_load") != nullptr) {
    find(&library.info_load, "PMIx_Info_load");
  } else {
    find(&load_value, "pmix_value_load");
    library.info_load = LoadInfo;
  }
  find(&library.error_string, "PMIx_Error_string");
  find(&library.version, "PMIx_Get_version");
  if (missing.empty()) return library;
  return absl::NotFoundError(
      absl::StrCat(path, " has no ", missing, ": hlaunch needs libpmix 3.1 or newer"));
}

}  // namespace hlaunch
