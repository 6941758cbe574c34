// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

// How root looks into a folder that belongs to a user, who may change it meanwhile: no link is
// followed, no other file system is entered, and only regular files of that user are read. Any
// thread.

namespace hlaunch {

// The folder `path`, whose parents belong to root.
//
// Errors:
//   NotFound - there is none, or it is something else.
absl::StatusOr<UniqueFd> OpenFolder(const std::string& path);

// The folder `name` in `parent`. Errors:
//   NotFound - there is none, it is something else, or another file system is mounted there.
absl::StatusOr<UniqueFd> OpenFolderIn(int parent, const std::string& name);

// The file `name` in `folder`, to be read.
//
// Errors:
//   NotFound - there is none.
//   PermissionDenied - it is no regular file of `uid`, or lies elsewhere.
absl::StatusOr<UniqueFd> OpenUserFile(int folder, const std::string& name, uid_t uid);

// What is in it.
//
// Errors: as OpenUserFile, and
//   ResourceExhausted - it is longer than `most`.
absl::StatusOr<std::string> ReadUserFile(int folder, const std::string& name, uid_t uid,
                                         size_t most);

// What the names of folders that are to be removed begin with.
inline constexpr char kSetAside[] = "gone-";

enum class Removed {
  kAll,   // Nothing is left.
  kMore,  // Some of it is gone, and more may go with the next call.
  kNot,   // Nothing of it can be removed now.
};

// Removes `name` in `parent` with what is below it, at most about `most` entries in one call. A
// folder that is begun is this process' own, so that its user puts nothing more into it. What lies
// very deep is moved beside `name` first, and has a name of what is to be removed then.
Removed RemoveSome(int parent, const std::string& name, int most);

}  // namespace hlaunch
