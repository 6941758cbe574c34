// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

// Root's access to a folder that belongs to a user, who may change it at the same time. Root
// follows no link, enters no other file system, and reads only regular files of that user. Any
// thread.

namespace hlaunch {

// Opens the folder `path`, whose parents belong to root.
//
// Errors:
//   NotFound - there is no such folder, or `path` is something else.
absl::StatusOr<UniqueFd> OpenFolder(const std::string& path);

// Opens the folder `name` in `parent`. Errors:
//   NotFound - there is no such folder, `name` is something else, or another file system is mounted
//       there.
absl::StatusOr<UniqueFd> OpenFolderIn(int parent, const std::string& name);

// Opens the file `name` in `folder` for reading.
//
// Errors:
//   NotFound - there is no such file.
//   PermissionDenied - it is not a regular file of `uid`, or it lies in another place.
absl::StatusOr<UniqueFd> OpenUserFile(int folder, const std::string& name, uid_t uid);

// Reads such a file.
//
// Errors: as OpenUserFile, and
//   ResourceExhausted - the file is longer than `most`.
absl::StatusOr<std::string> ReadUserFile(int folder, const std::string& name, uid_t uid,
                                         size_t most);

// The prefix of the names of folders that shall be removed.
inline constexpr char kSetAside[] = "gone-";

enum class Removed {
  kAll,   // All of it is gone.
  kMore,  // Some of it is gone. The next call may remove more.
  kNot,   // Nothing of it can be removed now.
};

// Removes `name` in `parent` and all that is in it, at most about `most` entries in one call. It
// first gives each folder to this process's user, so that the former owner puts nothing more into
// it. Folders and files that lie very deep are moved to `parent`, with names that mark them for
// removal.
Removed RemoveSome(int parent, const std::string& name, int most);

}  // namespace hlaunch
