// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/own_jobs/secret_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hlaunch {

absl::StatusOr<UniqueFd> SecretFile(const std::string& secret) {
  // Not close-on-exec: the program that replaces this one reads it.
  UniqueFd fd(::memfd_create("hlaunch-token", 0));
  const auto size = static_cast<ssize_t>(secret.size());
  if (!fd.valid() || ::fchmod(fd.get(), 0600) != 0 ||
      ::write(fd.get(), secret.data(), secret.size()) != size) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the job's token: ", std::strerror(errno)));
  }
  return fd;
}

std::string PathOfSecret(const UniqueFd& file) {
  return absl::StrCat("/proc/self/fd/", file.get());
}

}  // namespace hlaunch
