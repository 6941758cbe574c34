// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Users of this host as getent(1) prints them. The program is static, so it runs getent instead of
// the C library's name services, which are shared libraries. All functions are pure.

namespace hlaunch {

// Tells from getent's exit code whether it found what it was asked for.
//
// Errors:
//   NotFound - there is no such entry.
//   Unavailable - getent gave no answer: it took too long, failed, or could not be run.
absl::Status CheckGetent(int exit_code);

// A line of `getent passwd`. A value.
struct UserEntry {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
  std::string shell;
};

// Errors:
//   NotFound - the text has no such line.
absl::StatusOr<UserEntry> ReadUserEntry(absl::string_view getent);

// Returns the groups that `getent initgroups NAME` prints behind the name. The name may contain
// blanks and digits.
//
// Errors:
//   NotFound - the text has no line for that name.
absl::StatusOr<std::vector<gid_t>> ReadGroups(absl::string_view getent, absl::string_view name);

// Returns the number of the group that `getent group NAME` prints. Errors: as ReadUserEntry.
absl::StatusOr<gid_t> ReadGroupNumber(absl::string_view getent);

// Which users may run jobs here. A value.
struct UserRule {
  uint32_t least_uid = 1000;  // Lower numbers belong to services.
  bool allow_root = false;
};

// Checks that `user`, as this host knows it, may run what the user `name` with number `uid` has
// submitted.
//
// Errors:
//   PermissionDenied - the user may not; the message says why, and the caller puts the host's name
//       before it.
absl::Status CheckUser(const UserEntry& user, const std::string& name, uid_t uid,
                       const UserRule& rule);

}  // namespace hlaunch
