// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/make_folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status MakeFolders(const std::filesystem::path& folder) {
  if (folder.empty() || ::access(folder.c_str(), F_OK) == 0) return absl::OkStatus();
  HLAUNCH_RETURN_IF_ERROR(MakeFolders(folder.parent_path()));
  if (::mkdir(folder.c_str(), S_IRWXU) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot make the folder ", folder.string(), ": ", std::strerror(errno)));
}

}  // namespace hlaunch
