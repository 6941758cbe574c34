// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// What a program or library says of the libraries that it is to be loaded with. A value.
struct ElfNeeds {
  std::vector<std::string> libraries;  // DT_NEEDED, in order; at most 256.
  std::string search_path;             // DT_RUNPATH, else DT_RPATH.
};

// Reads `size` bytes at `offset` of a file; fewer where it ends.
using ReadAt = absl::FunctionRef<std::string(uint64_t offset, size_t size)>;

// Reads the dynamic section of an ELF file of 64 bits in this machine's byte order, with a few
// small reads. Believes nothing that the file says: what lies outside of it or is too large is an
// error.
//
// Errors:
//   InvalidArgument - it is no such file, or damaged.
absl::StatusOr<ElfNeeds> ReadElfNeeds(ReadAt read);

// The same of a file.
//
// Errors:
//   InvalidArgument - as above; NotFound - it cannot be read.
absl::StatusOr<ElfNeeds> ReadElfNeeds(const std::string& path);

}  // namespace hlaunch
