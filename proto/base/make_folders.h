// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace hlaunch {

// Makes `folder` and those above it that are not there, for this user alone.
//
// Errors:
//   InvalidArgument - one cannot be made; the message names it.
absl::Status MakeFolders(const std::filesystem::path& folder);

}  // namespace hlaunch
