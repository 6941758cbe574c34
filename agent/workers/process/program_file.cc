// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/program_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";

std::string InDirectory(const std::string& directory, const std::string& path) {
  if (directory.empty() || absl::StartsWith(path, "/")) return path;
  return absl::StrCat(directory, "/", path);
}

bool IsFile(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

// The first bytes of `path`: enough for the kernel to recognise the file type.
std::string Head(const std::string& path) {
  char buffer[256];
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t n = fd.valid() ? ::read(fd.get(), buffer, sizeof(buffer)) : -1;
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : std::string();
}

// "/usr/bin/python4" from "#! /usr/bin/python4 -u\n…"; empty if `head` is not from a script.
std::string Interpreter(absl::string_view head) {
  if (!absl::ConsumePrefix(&head, "#!")) return "";
  const absl::string_view line = head.substr(0, head.find('\n'));
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return "";
  // The kernel takes a carriage return as part of the name, and so does not find the file.
  return absl::StrCat(words[0], absl::EndsWith(line, "\r") ? " (the line ends in CR LF)" : "");
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::vector<std::string>& env,
                                        const std::string& directory) {
  if (name.empty()) return absl::NotFoundError("the program's name is empty");
  if (absl::StrContains(name, '/')) return name;
  absl::string_view path = kDefaultPath;
  for (const std::string& entry : env) {
    if (absl::StartsWith(entry, "PATH=")) path = absl::string_view(entry).substr(5);
  }
  std::string refused;
  for (absl::string_view entry : absl::StrSplit(path, ':')) {
    const std::string candidate = absl::StrCat(entry.empty() ? "." : entry, "/", name);
    const std::string seen = InDirectory(directory, candidate);
    if (!IsFile(seen)) continue;
    if (::access(seen.c_str(), X_OK) == 0) return candidate;
    if (refused.empty()) refused = candidate;
  }
  if (!refused.empty()) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot run ", refused, ": it is not executable; chmod +x it"));
  }
  return absl::NotFoundError(absl::StrCat("no program named ", name, " in PATH (", path, ")"));
}

absl::Status ExecError(int error, const std::string& path, const std::string& directory) {
  const std::string seen = InDirectory(directory, path);
  const std::string what = absl::StrCat("cannot run ", path, ": ");
  const std::string head = Head(seen);
  const std::string interpreter = Interpreter(head);
  switch (error) {
    case ENOENT:
      if (!IsFile(seen)) return absl::NotFoundError(absl::StrCat(what, "no such file"));
      if (!interpreter.empty()) {
        return absl::NotFoundError(absl::StrCat(what, "its interpreter ", interpreter,
                                                " is missing; correct the script's first line"));
      }
      return absl::NotFoundError(
          absl::StrCat(what, "its program loader is missing; it was built for another system"));
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return absl::NotFoundError(absl::StrCat(what, std::strerror(error)));
    case ENOEXEC:
      return absl::PermissionDeniedError(absl::StrCat(
          what, absl::StartsWith(head, "\177ELF")
                    ? "it was built for another machine"
                    : "it is not a program: no #! line; name the interpreter before it"));
    case EACCES:
    case EPERM:
      if (!IsFile(seen)) return absl::PermissionDeniedError(absl::StrCat(what, "not a file"));
      if (::access(seen.c_str(), X_OK) != 0) {
        return absl::PermissionDeniedError(
            absl::StrCat(what, "it is not executable; chmod +x it or name its interpreter"));
      }
      return absl::PermissionDeniedError(absl::StrCat(
          what, interpreter.empty()
                    ? "the file system forbids it (noexec?)"
                    : absl::StrCat("its interpreter ", interpreter, " may not be executed")));
    case E2BIG:
      return absl::InvalidArgumentError(
          absl::StrCat(what, "arguments and environment are more than the kernel takes"));
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(what, std::strerror(error)));
    default:
      return absl::PermissionDeniedError(absl::StrCat(what, std::strerror(error)));
  }
}

}  // namespace hlaunch
