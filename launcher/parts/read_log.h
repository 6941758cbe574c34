// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// How much one answer holds: even if each byte takes six in JSON it fits a user's frame.
inline constexpr size_t kMaxLogText = 128 << 10;

// Where somebody has come to in a log that is put aside and begun anew as it grows. A value.
struct LogPosition {
  uint64_t file = 0;  // Its inode,
  uint64_t offset = 0;
  std::string mark;  // and what the file begins with, since another one may get its inode.
};

// "1234:5678:2026-11-25T20:00:00.000Z", and back. Pure.
std::string TextOf(const LogPosition& position);
std::optional<LogPosition> ReadLogPosition(absl::string_view text);

// The whole lines behind `question`'s position in the log of the job folder `folder`, whose user is
// `uid`; without any where there are none yet. `over`: nothing is written any more.
//
// Errors:
//   InvalidArgument - the position is none.
absl::StatusOr<LogAnswer> ReadLog(int folder, uid_t uid, const LogQuestion& question, bool over);

}  // namespace hlaunch
