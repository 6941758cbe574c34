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

// A user of this host as getent(1) prints him. The program is static, so it asks that instead of
// the C library, whose name services are libraries. All is pure.

namespace hlaunch {

// Whether getent found what it was asked for, by how it ended.
//
// Errors:
//   NotFound - there is no such entry.
//   Unavailable - it does not know: it took too long, or could not be run.
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

// The groups that `getent initgroups NAME` prints behind the name, which may have blanks and
// numbers in it.
//
// Errors:
//   NotFound - the text has no line of that name.
absl::StatusOr<std::vector<gid_t>> ReadGroups(absl::string_view getent, absl::string_view name);

// The number of the group that `getent group NAME` prints. Errors: as ReadUserEntry.
absl::StatusOr<gid_t> ReadGroupNumber(absl::string_view getent);

// Who may run something here. A value.
struct UserRule {
  uint32_t least_uid = 1000;  // Those below are of services.
  bool allow_root = false;
};

// Whether `user`, as he is here, may run what the user `name` with number `uid` has submitted.
//
// Errors:
//   PermissionDenied - not so; the message says why, and is to follow the host's name.
absl::Status CheckUser(const UserEntry& user, const std::string& name, uid_t uid,
                       const UserRule& rule);

}  // namespace hlaunch
