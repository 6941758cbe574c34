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

// The libraries that a program or library names to be loaded with it. A value.
struct ElfNeeds {
  std::vector<std::string> libraries;  // DT_NEEDED, in order; at most 256.
  std::string search_path;             // DT_RUNPATH, else DT_RPATH.
};

// Reads `size` bytes at `offset` of a file; fewer at its end.
using ReadAt = absl::FunctionRef<std::string(uint64_t offset, size_t size)>;

// Reads the dynamic section of a 64-bit ELF file in this machine's byte order, with a few small
// reads. Trusts nothing in the file: it is an error if something lies outside of the file or is too
// large.
//
// Errors:
//   InvalidArgument - it is no such file, or it is damaged.
absl::StatusOr<ElfNeeds> ReadElfNeeds(ReadAt read);

// The same for the file at `path`.
//
// Errors:
//   InvalidArgument - as above; NotFound - the file cannot be read.
absl::StatusOr<ElfNeeds> ReadElfNeeds(const std::string& path);

}  // namespace hlaunch
