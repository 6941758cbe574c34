// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace hlaunch {

// Makes `folder` and its missing parents, for this user alone.
//
// Errors:
//   InvalidArgument - a folder cannot be made; the message names it.
absl::Status MakeFolders(const std::filesystem::path& folder);

}  // namespace hlaunch
