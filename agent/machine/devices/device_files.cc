// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/devices/device_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <functional>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxFileBytes = 64 << 10;
constexpr size_t kBlockBytes = 4096;
constexpr int kMostTries = 10'000;  // Each takes a microsecond.
constexpr size_t kMaxNames = 65536;

// Calls `see` for each name in the folder `fd`, and takes ownership of `fd`.
void ForEachName(UniqueFd fd, const std::function<void(int folder, const char* name)>& see) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd.get()), ::closedir);
  if (folder == nullptr) return;
  (void)fd.Release();
  size_t seen = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (++seen > kMaxNames) return;
    see(::dirfd(folder.get()), entry->d_name);
  }
}

std::string ReadLinkAt(int folder, const char* name) {
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(folder, name, target, sizeof(target));
  return length <= 0 ? "" : std::string(target, static_cast<size_t>(length));
}

}  // namespace

DeviceFiles::DeviceFiles(std::string root) : root_(std::move(root)) {
  while (absl::EndsWith(root_, "/")) root_.pop_back();
}

int DeviceFiles::Open(absl::string_view path, int flags) const {
  const std::string name(path);
  flags |= O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  if (root_.empty()) return ::open(name.c_str(), flags);
  const UniqueFd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return -1;
  open_how how = {};
  // An O_PATH descriptor takes no other flags.
  how.flags =
      static_cast<uint64_t>((flags & O_PATH) != 0 ? flags & ~(O_NOCTTY | O_NONBLOCK) : flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  int fd = -1;
  // If a rename or mount happens anywhere on this machine while the kernel follows a "..", openat2
  // fails with EAGAIN and must be retried, see openat2(2).
  for (int i = 0; i < kMostTries; ++i) {
    fd = static_cast<int>(::syscall(SYS_openat2, root.get(), name.c_str(), &how, sizeof(how)));
    if (fd >= 0 || errno != EAGAIN) break;
  }
  // Container runtimes refuse a call that they do not know with EPERM.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
    return ::open(absl::StrCat(root_, name).c_str(), flags);
  }
  return fd;
}

bool DeviceFiles::IsOfKernel(absl::string_view path) const {
  return root_.empty() && (absl::StartsWith(path, "/sys/") || absl::StartsWith(path, "/proc/"));
}

std::string DeviceFiles::Read(absl::string_view path) const {
  // Opening what is no regular file may wait, or change something: a pipe, a device.
  if (!IsOfKernel(path)) {
    struct stat status = {};
    const UniqueFd look(Open(path, O_PATH));
    if (!look.valid() || ::fstat(look.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  }
  const UniqueFd file(Open(path, O_RDONLY));
  if (!file.valid()) return "";
  std::string text;
  char bytes[kBlockBytes];
  while (text.size() < kMaxFileBytes) {
    const ssize_t got = ::read(file.get(), bytes, sizeof bytes);
    if (got <= 0) break;
    text.append(bytes, static_cast<size_t>(got));
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

int DeviceFiles::ReadInt(absl::string_view path, int otherwise) const {
  const std::string text = Read(path);
  int value = 0;
  const bool hex = absl::StartsWith(text, "0x");
  if (hex ? absl::SimpleHexAtoi(text, &value) : absl::SimpleAtoi(text, &value)) return value;
  return otherwise;
}

std::vector<std::string> DeviceFiles::List(absl::string_view path, absl::string_view start) const {
  std::vector<std::string> names;
  ForEachName(UniqueFd(Open(path, O_RDONLY | O_DIRECTORY)), [&](int, const char* name) {
    if (absl::StartsWith(name, start)) names.push_back(name);
  });
  std::sort(names.begin(), names.end(), NaturalLess);
  return names;
}

std::string DeviceFiles::Link(absl::string_view path) const {
  const UniqueFd link(Open(path, O_PATH | O_NOFOLLOW));
  return link.valid() ? ReadLinkAt(link.get(), "") : "";
}

std::string DeviceFiles::LinkName(absl::string_view path) const {
  const std::string target = Link(path);
  return target.substr(target.rfind('/') + 1);  // npos + 1 is 0.
}

std::vector<std::pair<std::string, std::string>> DeviceFiles::Links(absl::string_view path) const {
  std::vector<std::pair<std::string, std::string>> links;
  ForEachName(UniqueFd(Open(path, O_RDONLY | O_DIRECTORY)), [&](int folder, const char* name) {
    std::string target = ReadLinkAt(folder, name);
    if (!target.empty()) links.emplace_back(name, std::move(target));
  });
  return links;
}

bool DeviceFiles::Exists(absl::string_view path) const {
  return UniqueFd(Open(path, O_PATH)).valid();
}

bool DeviceFiles::MayOpen(absl::string_view path) const {
  const UniqueFd look(Open(path, O_PATH));
  if (!look.valid()) return false;
  // Before faccessat2 (kernel 5.8), faccessat accepts no descriptor without a name, but it accepts
  // this path.
  return ::faccessat(AT_FDCWD, absl::StrCat("/proc/self/fd/", look.get()).c_str(), R_OK | W_OK,
                     AT_EACCESS) == 0;
}

int NumberAfter(absl::string_view name, absl::string_view prefix) {
  int number = -1;
  if (!absl::ConsumePrefix(&name, prefix) || name.empty() ||
      !std::all_of(name.begin(), name.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(name, &number)) {
    return -1;
  }
  return number;
}

}  // namespace hlaunch
