// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/contract/ids.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

uint64_t Random64() {
  uint64_t value = 0;
  HLAUNCH_CHECK(::getrandom(&value, sizeof value, 0) == sizeof value);
  return value;
}

}  // namespace

Incarnation NewIncarnation() {
  while (true) {
    if (const uint64_t value = Random64(); value != 0) return value;
  }
}

std::string NewJobId() { return absl::StrFormat("%016x", Random64()); }

std::string NewSecret() { return absl::StrCat(NewJobId(), NewJobId(), NewJobId(), NewJobId()); }

std::string HostNodeId(int slot) {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  struct stat net = {};
  ::stat("/proc/self/ns/net", &net);
  return absl::StrCat(boot_id.substr(0, 8), "-", net.st_ino, "-", slot);
}

std::string OwnMachine() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  struct stat net = {}, files = {};
  if (boot_id.empty() || ::stat("/proc/self/ns/net", &net) != 0 ||
      ::stat("/proc/self/ns/mnt", &files) != 0) {
    return "";
  }
  return absl::StrCat(boot_id, "-", net.st_ino, "-", files.st_ino);
}

}  // namespace hlaunch
