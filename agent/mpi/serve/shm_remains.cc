// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/shm_remains.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

// Identifies a file, whatever its name: device and inode.
using FileId = std::pair<uint64_t, uint64_t>;

FileId IdOf(const struct stat& status) { return {status.st_dev, status.st_ino}; }

struct Remain {
  std::string path;
  FileId id;
};

// The names in a folder; none if it cannot be read.
std::vector<std::string> NamesIn(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(directory.c_str()), ::closedir);
  std::vector<std::string> names;
  while (folder != nullptr) {
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  return names;
}

std::vector<Remain> Candidates(int64_t since_ms, const std::string& directory) {
  std::vector<Remain> found;
  for (const std::string& name : NamesIn(directory)) {
    if (!IsOfMpi(name)) continue;
    struct stat status = {};
    const std::string path = absl::StrCat(directory, "/", name);
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const int64_t changed_ms =
        int64_t{status.st_ctim.tv_sec} * 1000 + status.st_ctim.tv_nsec / 1'000'000;
    // A file system takes the time from the last clock tick.
    constexpr int64_t kTickMs = 20;
    if (status.st_uid != ::geteuid() || changed_ms + kTickMs < since_ms) continue;
    found.push_back({path, IdOf(status)});
  }
  return found;
}

// Adds the paths below `directory` that process `pid` has open or mapped.
void AddUsed(const std::string& pid, const std::string& directory, std::set<std::string>& used) {
  const std::string proc = absl::StrCat("/proc/", pid);
  const std::string start = absl::StrCat(directory, "/");
  for (const std::string& fd : NamesIn(absl::StrCat(proc, "/fd"))) {
    std::array<char, 512> target{};
    const ssize_t size =
        ::readlink(absl::StrCat(proc, "/fd/", fd).c_str(), target.data(), target.size());
    if (size <= 0) continue;
    const absl::string_view path(target.data(), static_cast<size_t>(size));
    if (absl::StartsWith(path, start)) used.emplace(path);
  }
  std::ifstream maps(absl::StrCat(proc, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find(start);
    if (path != line.npos) used.insert(line.substr(path));
  }
}

}  // namespace

bool IsOfMpi(absl::string_view name) {
  for (const char* start : {"mpich_shm_", "mpich_shar_tmp", "Intel_MPI_",  //
                            "vader_segment.", "sm_segment.", "osc_sm."}) {
    if (absl::StartsWith(name, start)) return true;
  }
  return false;
}

int RemoveMpiRemains(int64_t since_ms, const std::string& directory) {
  const std::vector<Remain> candidates = Candidates(since_ms, directory);
  if (candidates.empty()) return 0;
  std::set<std::string> used;
  for (const std::string& name : NamesIn("/proc")) {
    if (!name.empty() && absl::ascii_isdigit(name[0])) AddUsed(name, directory, used);
  }
  int removed = 0;
  for (const Remain& remain : candidates) {
    struct stat now = {};
    if (used.count(remain.path) > 0 || ::lstat(remain.path.c_str(), &now) != 0) continue;
    if (IdOf(now) != remain.id || ::unlink(remain.path.c_str()) != 0) continue;
    LogDebug(absl::StrCat("removed ", remain.path, ", which a killed MPI program left"));
    ++removed;
  }
  return removed;
}

}  // namespace hlaunch
