// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// A program that is sent to a host (--push) carries hlaunch-pmix behind its own bytes: that host
// has no file of hlaunch's, and what serves Open MPI cannot be a part of a static program.

namespace hlaunch {

// Where a file has hlaunch-pmix in it. A value.
struct CarriedPmix {
  uint64_t offset = 0;
  uint64_t size = 0;

  friend bool operator==(const CarriedPmix&, const CarriedPmix&) = default;
};

// Appends `pmix` to `program`, and zeros up to whole blocks of `block` bytes, of which the last
// ones say where it is. Pure. Requires: `block` has room for them.
void CarryPmix(absl::string_view pmix, size_t block, std::string& program);

// Returns where the file at `path` carries hlaunch-pmix; unset if it does not, or cannot be read.
std::optional<CarriedPmix> FindCarriedPmix(const std::string& path);

// `hlaunch --carried-pmix OPTIONS`, which the agent starts if this program carries hlaunch-pmix:
// becomes it. It lies in memory alone, so nothing is left of it whichever process is killed.
// Returns only if that fails, with the exit code; the agent has been told why, as pmix_words.h
// says.
int BecomeCarriedPmix(int argc, char** argv);

}  // namespace hlaunch
