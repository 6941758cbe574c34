// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/python/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hlaunch {

FileKind KindOf(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return FileKind::kNone;
  if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) return FileKind::kPipe;
  return S_ISDIR(status.st_mode) ? FileKind::kDirectory : FileKind::kFile;
}

bool IsExecutable(const std::string& path) {
  return KindOf(path) == FileKind::kFile && ::access(path.c_str(), X_OK) == 0;
}

bool HasSlash(absl::string_view name) { return absl::StrContains(name, "/"); }

std::string WorkingDirectory() {
  char path[PATH_MAX];
  return ::getcwd(path, sizeof path) != nullptr ? path : ".";
}

std::string Absolute(const std::string& path) {
  return absl::StartsWith(path, "/") ? path : absl::StrCat(WorkingDirectory(), "/", path);
}

std::string PathVariable(const Environment& environment) {
  const std::string folders = environment.Get("PATH");
  return folders.empty() ? "/usr/local/bin:/usr/bin:/bin" : folders;
}

std::optional<std::string> FindInPath(const std::string& name, const Environment& environment) {
  const std::string folders = PathVariable(environment);
  for (const absl::string_view folder : absl::StrSplit(folders, ':')) {
    const std::string path = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (IsExecutable(path)) return path;
  }
  return std::nullopt;
}

}  // namespace hlaunch
