// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/task_start/private_tmp.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

struct Place {
  const char* path;
  const char* name;  // The name in the private folder.
};
constexpr Place kPlaces[] = {{"/tmp", "tmp"}, {"/var/tmp", "var-tmp"}};

absl::Status Cannot(absl::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot make a private /tmp (private-tmp): ", what, ": ", std::strerror(errno)));
}

absl::Status MakeFolder(const std::string& path, mode_t mode) {
  // chmod makes the mode independent of this process's umask.
  if (::mkdir(path.c_str(), 0700) == 0 && ::chmod(path.c_str(), mode) == 0) {
    return absl::OkStatus();
  }
  return Cannot(path);
}

}  // namespace

absl::Status EnterPrivateTmp(const std::string& folder) {
  HLAUNCH_RETURN_IF_ERROR(MakeFolder(folder, 0700));
  for (const Place& place : kPlaces) {
    HLAUNCH_RETURN_IF_ERROR(MakeFolder(absl::StrCat(folder, "/", place.name), 01777));
  }
  if (::unshare(CLONE_NEWNS) != 0) return Cannot("a mount namespace");
  // Mounts of the host still appear here, but mounts made here do not appear on the host.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return Cannot("/");
  for (const Place& place : kPlaces) {
    const std::string own = absl::StrCat(folder, "/", place.name);
    const int done = ::mount(own.c_str(), place.path, nullptr, MS_BIND, nullptr);
    if (done != 0 && errno != ENOENT) return Cannot(place.path);
  }
  return absl::OkStatus();
}

bool IsHiddenByPrivateTmp(absl::string_view path) {
  for (const Place& place : kPlaces) {
    if (absl::StartsWith(absl::StrCat(path, "/"), absl::StrCat(place.path, "/"))) return true;
  }
  return false;
}

}  // namespace hlaunch
