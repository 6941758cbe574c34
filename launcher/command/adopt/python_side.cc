// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/adopt/python_side.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

constexpr char kSide[] = "hlaunch/adopt";  // Below a folder of Python packages.

// Returns lib/pythonX.Y/site-packages of the environment `prefix`, for each X.Y.
std::vector<fs::path> SitePackages(const fs::path& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(prefix / "lib", error), end; !error && entry != end;
       entry.increment(error)) {
    if (absl::StartsWith(entry->path().filename().string(), "python3.")) {
      found.push_back(entry->path() / "site-packages");
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

absl::StatusOr<std::string> FindPythonSide(const std::string& self) {
  const fs::path prefix = fs::path(self).parent_path().parent_path();
  std::vector<fs::path> places = SitePackages(prefix);
  places.push_back(prefix / "lib/python3/dist-packages");  // An installation.
  places.push_back(prefix / "python");                     // A build.
  places.push_back(prefix);                                // pip --target.
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::is_directory(place / kSide / kAdoptPackage, error)) return (place / kSide).string();
  }
  return absl::NotFoundError(
      absl::StrCat("the Python files of hlaunch are not beside ", self,
                   "; install a package of hlaunch instead of a copy of the program"));
}

std::string WithFolder(absl::string_view paths, absl::string_view folder) {
  if (paths.empty()) return std::string(folder);
  const std::vector<absl::string_view> all = absl::StrSplit(paths, ':');
  const bool there = std::find(all.begin(), all.end(), folder) != all.end();
  return there ? std::string(paths) : absl::StrCat(paths, ":", folder);
}

}  // namespace hlaunch
