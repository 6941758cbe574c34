// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <pmix.h>
#include <pmix_server.h>

#include <string>

#include "absl/status/statusor.h"

namespace hlaunch {

// The functions of libpmix that are used, from any release on this machine: what is used of 3.1
// to 6.x has one ABI.
struct PmixLibrary {
  decltype(&::PMIx_server_init) server_init = nullptr;
  decltype(&::PMIx_server_register_nspace) register_nspace = nullptr;
  decltype(&::PMIx_server_register_client) register_client = nullptr;
  decltype(&::PMIx_server_setup_fork) setup_fork = nullptr;
  decltype(&::PMIx_server_dmodex_request) dmodex_request = nullptr;
  decltype(&::PMIx_generate_regex) generate_regex = nullptr;
  decltype(&::PMIx_generate_ppn) generate_ppn = nullptr;
  decltype(&::PMIx_Info_load) info_load = nullptr;  // Before 4.2: made of what there is.
  decltype(&::PMIx_Error_string) error_string = nullptr;
  decltype(&::PMIx_Get_version) version = nullptr;
};

// Loads libpmix from `path`, for the life of this process.
//
// Errors:
//   NotFound - libpmix cannot be loaded, or lacks a function; the message says what.
absl::StatusOr<PmixLibrary> LoadPmix(const std::string& path);

}  // namespace hlaunch
