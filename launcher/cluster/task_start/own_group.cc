// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/task_start/own_group.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

std::string OwnGroup(const std::string& mount, uint64_t job) {
  return absl::StrCat(mount, "/hlaunch/", job);
}

bool WriteGroupFile(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  const auto size = static_cast<ssize_t>(text.size());
  return file.valid() && ::write(file.get(), text.data(), text.size()) == size;
}

}  // namespace hlaunch
