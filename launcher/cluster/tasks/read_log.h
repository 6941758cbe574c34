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

// The size of the text in one answer. Even if each byte takes six in JSON, the answer fits a user's
// frame.
inline constexpr size_t kMaxLogText = 128 << 10;

// How far a reader has read in a log whose file is renamed and replaced as it grows. A value.
struct LogPosition {
  uint64_t file = 0;  // The file's inode.
  uint64_t offset = 0;
  std::string mark;  // The beginning of the file, since another file may get its inode.
};

// Convert a position to "1234:5678:2026-11-25T20:00:00.000Z" and back. Pure.
std::string TextOf(const LogPosition& position);
std::optional<LogPosition> ReadLogPosition(absl::string_view text);

// Reads whole lines from `question`'s position on, in the log in the job folder `folder`, whose
// user is `uid`. The text is empty if there are no such lines yet. `over` says that the job writes
// nothing more.
//
// Errors:
//   InvalidArgument - the position is not valid.
absl::StatusOr<LogAnswer> ReadLog(int folder, uid_t uid, const LogQuestion& question, bool over);

}  // namespace hlaunch
