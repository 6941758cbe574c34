// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Files and folders that a user named.

namespace hlaunch {

// Makes `folder` and its missing parents, for this user alone.
//
// Errors:
//   InvalidArgument - a folder cannot be made; the message names it.
absl::Status MakeFolders(const std::filesystem::path& folder);

// Returns the content of the file at `path`, which may be a pipe or a file of the kernel.
//
// Errors: the messages say why, but not where.
//   NotFound - there is no such file.
//   ResourceExhausted - it has more than `most` bytes.
//   Unavailable - it cannot be read, or is a directory.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t most = 64 << 20);

// How WriteWholeFile makes a file. A value.
struct NewFile {
  mode_t mode = 0666;       // The umask is taken off.
  bool may_replace = true;  // A file that is there already.
  bool sync = false;        // Return once the text is on the disk.
};

// Writes `text` to the file at `path`, whole or not at all: a new file beside it takes its place.
// If `path` is a link, the file that it leads to is replaced or made, and the link stays. A device
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
