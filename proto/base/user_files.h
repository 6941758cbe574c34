// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

// Files and folders that a user named.

namespace hlaunch {

// Makes `folder` and its missing parents, for this user alone.
//
// Errors:
//   InvalidArgument - a folder cannot be made; the message names it.
absl::Status MakeFolders(const std::filesystem::path& folder);

// How long a reader waits for somebody who writes to a pipe.
inline constexpr Duration kPipePatience = std::chrono::seconds(30);

// Returns the content of the file at `path`, which may be a pipe or a file of the kernel. A pipe
// without a writer, or whose writer is silent, is waited for; after two seconds a line says so.
//
// Errors: the messages say why, but not where.
//   NotFound - there is no such file.
//   ResourceExhausted - it has more than `most` bytes.
//   Unavailable - it cannot be read, is a directory, or is a pipe to which nothing was written for
//     `patience`.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t most = 64 << 20,
                                          Duration patience = kPipePatience);

// A file for ReadOpened, which looks at its owner or its kind before. Invalid, with errno, if it
// cannot be opened.
UniqueFd OpenToRead(const std::string& path);

// Like ReadWholeFile, for a file that OpenToRead has opened. `path` is for the line that says for
// what it waits.
absl::StatusOr<std::string> ReadOpened(const UniqueFd& file, const std::string& path, size_t most,
                                       Duration patience = kPipePatience);

// How WriteWholeFile makes a file. A value.
struct NewFile {
  mode_t mode = 0666;       // The umask is taken off.
  bool may_replace = true;  // A file that is there already.
  bool sync = false;        // Return once the text is on the disk.
  bool follow = true;       // A link; else it is refused.
};

// Writes `text` to the file at `path`, whole or not at all: a new file beside it takes its place.
// If `path` is a link, the file that it leads to is replaced or made, and the link stays, unless
// `how` follows none. A device
// or a pipe is written to as it is, and so is the file that is this process' stdout or stderr;
// there a text may be cut short. Waits 10 s at most for a reader that stands still.
//
// Errors: the messages say why, but not where.
//   AlreadyExists - there is a file, and `how` keeps it.
//   Unavailable - `path` cannot be written, or it is a directory, a socket, or a pipe that no
//     process reads.
absl::Status WriteWholeFile(const std::string& path, absl::string_view text,
                            const NewFile& how = {});

}  // namespace hlaunch
