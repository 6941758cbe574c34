// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/user_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr int kMostDeep = 64;  // Each level holds a descriptor.

int OpenBeneath(int folder, const std::string& name, uint64_t more = 0) {
  open_how how = {};
  how.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | more;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return static_cast<int>(::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof how));
}

// Returns at most `most` names.
std::vector<std::string> NamesIn(int folder, size_t most) {
  std::vector<std::string> names;
  const int fd = ::dup(folder);
  DIR* const stream = fd < 0 ? nullptr : ::fdopendir(fd);
  if (stream == nullptr) {
    if (fd >= 0) ::close(fd);
    return names;
  }
  while (names.size() < most) {
    const dirent* const entry = ::readdir(stream);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(stream);
  return names;
}

// One removal. Belongs to one thread. Remove is called once from outside.
class Removal {
 public:
  // `top` is the folder that contains the name. What lies too deep is moved there.
  Removal(int top, int most) : top_(top), left_(most) {}

  // Returns false if something is left.
  bool Remove(int parent, const std::string& name, int deep) {
    if (left_-- <= 0) return false;
    if (::unlinkat(parent, name.c_str(), 0) == 0) return Progress();
    if (errno == ENOENT) return true;
    if (errno != EISDIR && errno != EPERM) return false;
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) return Progress();
    const UniqueFd folder(OpenBeneath(parent, name, O_DIRECTORY));
    // The user must not put more into it, or it would never be empty.
    if (!folder.valid() || ::fchown(folder.get(), ::geteuid(), ::getegid()) != 0 ||
        ::fchmod(folder.get(), 0700) != 0) {
      return false;
    }
    bool all = true;
    for (const std::string& below : NamesIn(folder.get(), static_cast<size_t>(left_))) {
      all =
          (deep < kMostDeep ? Remove(folder.get(), below, deep + 1) : Raise(folder.get(), below)) &&
          all;
    }
    return all && ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 && Progress();
  }

  bool progress() const { return progress_; }

 private:
  bool Progress() { return progress_ = true; }

  // Moves an entry that lies too deep to the top, where the next call finds it. Returns true if it
  // has left `parent`.
  bool Raise(int parent, const std::string& name) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
      const std::string raised = absl::StrCat(kSetAside, "deep-", next_++);
      if (::renameat2(parent, name.c_str(), top_, raised.c_str(), RENAME_NOREPLACE) == 0) {
        return Progress();
      }
      if (errno != EEXIST) return false;
    }
    return false;
  }

  const int top_;
  int left_;
  int next_ = 1;
  bool progress_ = false;
};

}  // namespace

absl::StatusOr<UniqueFd> OpenFolder(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.valid()) return folder;
  return absl::NotFoundError(absl::StrCat("no folder ", path, ": ", std::strerror(errno)));
}

absl::StatusOr<UniqueFd> OpenFolderIn(int parent, const std::string& name) {
  UniqueFd folder(OpenBeneath(parent, name, O_DIRECTORY));
  if (folder.valid()) return folder;
  return absl::NotFoundError(absl::StrCat("no folder ", name, ": ", std::strerror(errno)));
}

absl::StatusOr<UniqueFd> OpenUserFile(int folder, const std::string& name, uid_t uid) {
  UniqueFd file(OpenBeneath(folder, name));
  if (!file.valid()) {
    if (errno == ENOENT) return absl::NotFoundError(absl::StrCat("there is no ", name));
    return absl::PermissionDeniedError(absl::StrCat(name, ": ", std::strerror(errno)));
  }
  struct stat found = {};
  if (::fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == uid) {
    return file;
  }
  return absl::PermissionDeniedError(absl::StrCat(name, " is no file of its user"));
}

absl::StatusOr<std::string> ReadUserFile(int folder, const std::string& name, uid_t uid,
                                         size_t most) {
  HLAUNCH_ASSIGN_OR_RETURN(const UniqueFd file, OpenUserFile(folder, name, uid));
  std::string text(most + 1, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::read(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (done > most) {
    return absl::ResourceExhaustedError(absl::StrCat(name, " is longer than ", most, " bytes"));
  }
  text.resize(done);
  return text;
}

Removed RemoveSome(int parent, const std::string& name, int most) {
  Removal removal(parent, most);
  if (removal.Remove(parent, name, 0)) return Removed::kAll;
  return removal.progress() ? Removed::kMore : Removed::kNot;
}

}  // namespace hlaunch
