// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/membership/trust_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr mode_t kOnlyOwner = S_IRUSR | S_IWUSR;
constexpr char kAuthorityFile[] = "authority.pem";
constexpr char kDraftEnd[] = ".draft";  // Of a file that is being written.
constexpr char kAuthorityKeyFile[] = "authority.key";

// Our own code chooses the names of files here; this only catches our mistakes.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

absl::Status CannotOpen(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot open ", path, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  return absl::FailedPreconditionError(text);
}

absl::Status CheckFolder(const std::string& path, const struct stat& facts) {
  const uid_t me = ::geteuid();
  if (facts.st_uid != me && me != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, " belongs to another user"));
  }
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " holds keys and other users can look into it; run: chmod 700 ", path));
  }
  return absl::OkStatus();
}

// `size`: the file's size a moment ago. Files here are replaced and never grow.
absl::StatusOr<std::string> ReadAll(int file, size_t size, size_t limit) {
  std::string content(std::min(size, limit) + 1, '\0');
  size_t length = 0;
  ssize_t got = 1;
  while (got > 0 && length < content.size()) {
    got = ::read(file, &content[length], content.size() - length);
    if (got < 0 && errno == EINTR)
      got = 1;
    else if (got > 0)
      length += static_cast<size_t>(got);
  }
  if (got < 0) return absl::FailedPreconditionError(std::strerror(errno));
  if (length == content.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("it is longer than ", content.size() - 1, " bytes"));
  }
  content.resize(length);
  return content;
}

bool WriteAll(int file, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string CertificateFile(const std::string& name) { return absl::StrCat(name, ".pem"); }
std::string KeyFile(const std::string& name) { return absl::StrCat(name, ".key"); }
std::string NextKeyFile(const std::string& name) { return absl::StrCat(name, ".key.next"); }

}  // namespace

TrustFolder::TrustFolder(std::string path, UniqueFd folder, uid_t owner, gid_t group)
    : path_(std::move(path)), folder_(std::move(folder)), owner_(owner), group_(group) {}

absl::StatusOr<TrustFolder> TrustFolder::Open(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts = {};
  if (!folder.valid() || ::fstat(folder.get(), &facts) != 0) return CannotOpen(path, errno);
  HLAUNCH_RETURN_IF_ERROR(CheckFolder(path, facts));
  return TrustFolder(path, std::move(folder), facts.st_uid, facts.st_gid);
}

absl::StatusOr<TrustFolder> TrustFolder::Make(const std::string& path, uid_t owner, gid_t group) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return CannotOpen(path, errno);
  HLAUNCH_ASSIGN_OR_RETURN(TrustFolder folder, Open(path));
  if (folder.owner_ == owner && folder.group_ == group) return folder;
  if (::fchown(folder.folder_.get(), owner, group) != 0) return CannotOpen(path, errno);
  folder.owner_ = owner;
  folder.group_ = group;
  return folder;
}

bool TrustFolder::Has(const std::string& name) const {
  struct stat facts = {};
  return ::fstatat(folder_.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
}

absl::StatusOr<std::string> TrustFolder::Read(const std::string& name, size_t limit) const {
  HLAUNCH_CHECK(IsPlainName(name));
  const std::string path = absl::StrCat(path_, "/", name);
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const UniqueFd file(::openat(folder_.get(), name.c_str(), kFlags));
  struct stat facts = {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) {
    const absl::Status why = CannotOpen(path, errno);
    return absl::IsNotFound(why) ? why : absl::FailedPreconditionError(why.message());
  }
  if (!S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is no regular file"));
  }
  absl::StatusOr<std::string> content = ReadAll(file.get(), facts.st_size, limit);
  if (content.ok()) return content;
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", content.status().message()));
}

absl::Status TrustFolder::Replace(const std::string& name, absl::string_view content) const {
  HLAUNCH_RETURN_IF_ERROR(ReplaceUntilSync(name, content));
  return Sync();
}

absl::Status TrustFolder::ReplaceUntilSync(const std::string& name,
                                           absl::string_view content) const {
  HLAUNCH_CHECK(IsPlainName(name));
  const std::string draft = absl::StrCat(".", name, kDraftEnd);
  ::unlinkat(folder_.get(), draft.c_str(), 0);  // A killed process may have left it.
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd file(::openat(folder_.get(), draft.c_str(), kNew, kOnlyOwner));
  const bool to_owner = ::geteuid() == 0 && owner_ != 0;
  const bool done =
      file.valid() && ::fchmod(file.get(), kOnlyOwner) == 0 && WriteAll(file.get(), content) &&
      (!to_owner || ::fchown(file.get(), owner_, group_) == 0) && ::fsync(file.get()) == 0 &&
      ::renameat(folder_.get(), draft.c_str(), folder_.get(), name.c_str()) == 0;
  if (!done) {
    const absl::Status why = absl::UnavailableError(
        absl::StrCat("cannot write ", path_, "/", name, ": ", std::strerror(errno)));
    ::unlinkat(folder_.get(), draft.c_str(), 0);
    return why;
  }
  return absl::OkStatus();
}

absl::Status TrustFolder::Remove(const std::string& name) const {
  HLAUNCH_RETURN_IF_ERROR(RemoveUntilSync(name));
  return Sync();
}

absl::Status TrustFolder::RemoveUntilSync(const std::string& name) const {
  HLAUNCH_CHECK(IsPlainName(name));
  if (::unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return absl::UnavailableError(
        absl::StrCat("cannot remove ", path_, "/", name, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

void TrustFolder::RemoveDrafts() const {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path_.c_str()), ::closedir);
  while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
    const absl::string_view name = entry->d_name;
    if (name.front() != '.' || !absl::EndsWith(name, kDraftEnd)) continue;
    ::unlinkat(folder_.get(), entry->d_name, 0);
  }
}

absl::Status TrustFolder::Sync() const {
  if (::fsync(folder_.get()) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path_, ": ", std::strerror(errno)));
}

absl::StatusOr<HostIdentity> ReadIdentity(const TrustFolder& folder, const std::string& name) {
  HostIdentity read;
  HLAUNCH_ASSIGN_OR_RETURN(read.authority, folder.Read(kAuthorityFile));
  HLAUNCH_ASSIGN_OR_RETURN(read.certificate, folder.Read(CertificateFile(name)));
  for (const std::string& file : {KeyFile(name), NextKeyFile(name)}) {
    absl::StatusOr<std::string> key = folder.Read(file);
    if (!key.ok() && !absl::IsNotFound(key.status())) return key.status();
    if (!key.ok() || !KeyFits(*key, read.certificate)) continue;
    read.key = *std::move(key);
    return read;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(folder.path(), ": ", KeyFile(name), " is not the key of ", CertificateFile(name),
                   "; have the host leave the cluster and join it again"));
}

// The next key is on the disk before the certificate that needs it; the former key stays until
// then.
absl::Status KeepIdentity(const TrustFolder& folder, const std::string& name,
                          const HostIdentity& identity) {
  HLAUNCH_RETURN_IF_ERROR(folder.Replace(NextKeyFile(name), identity.key));
  HLAUNCH_RETURN_IF_ERROR(folder.Replace(kAuthorityFile, identity.authority));
  HLAUNCH_RETURN_IF_ERROR(folder.Replace(CertificateFile(name), identity.certificate));
  HLAUNCH_RETURN_IF_ERROR(folder.Replace(KeyFile(name), identity.key));
  return folder.Remove(NextKeyFile(name));
}

absl::StatusOr<Authority> ReadAuthority(const TrustFolder& folder) {
  Authority read;
  HLAUNCH_ASSIGN_OR_RETURN(read.certificate, folder.Read(kAuthorityFile));
  HLAUNCH_ASSIGN_OR_RETURN(read.key, folder.Read(kAuthorityKeyFile));
  return read;
}

absl::Status KeepAuthority(const TrustFolder& folder, const Authority& authority) {
  HLAUNCH_RETURN_IF_ERROR(folder.Replace(kAuthorityKeyFile, authority.key));
  return folder.Replace(kAuthorityFile, authority.certificate);
}

}  // namespace hlaunch
