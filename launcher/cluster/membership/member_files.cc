// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/member_files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {
namespace {

bool IsThere(const std::string& path) {
  struct stat facts = {};
  return ::lstat(path.c_str(), &facts) == 0;
}

// Reads a file of the host's folder; empty if it cannot be read.
std::string ReadOfHost(const ClusterPaths& paths, const std::string& file) {
  const absl::StatusOr<TrustFolder> folder = TrustFolder::Open(paths.host);
  return folder.ok() ? folder->Read(file).value_or("") : "";
}

absl::Status RemoveFiles(const std::string& path, const std::vector<std::string>& names) {
  const absl::StatusOr<TrustFolder> folder = TrustFolder::Open(path);
  if (absl::IsNotFound(folder.status())) return absl::OkStatus();
  if (!folder.ok()) return folder.status();
  for (const std::string& name : names) HLAUNCH_RETURN_IF_ERROR(folder->Remove(name));
  return absl::OkStatus();
}

}  // namespace

bool IsMember(const ClusterPaths& paths) { return IsThere(absl::StrCat(paths.host, "/host.pem")); }

bool IsHead(const ClusterPaths& paths) {
  return IsThere(absl::StrCat(paths.head, "/authority.key"));
}

std::string HeadOf(const ClusterPaths& paths) {
  return std::string(absl::StripAsciiWhitespace(ReadOfHost(paths, kHeadPlaceFile)));
}

std::string NameOf(const ClusterPaths& paths) {
  const absl::StatusOr<CertifiedHost> host = ReadHostCertificate(ReadOfHost(paths, "host.pem"));
  return host.ok() ? host->host : "";
}

std::string PinOf(const ClusterPaths& paths) {
  return KeyPinOf(ReadOfHost(paths, "authority.pem"));
}

absl::Status KeepMember(const ClusterPaths& paths, const HostIdentity& identity,
                        const std::string& head) {
  HLAUNCH_ASSIGN_OR_RETURN(const TrustFolder folder,
                           TrustFolder::Make(paths.host, ::geteuid(), ::getegid()));
  HLAUNCH_RETURN_IF_ERROR(folder.Replace(kHeadPlaceFile, absl::StrCat(head, "\n")));
  return KeepIdentity(folder, kOfHost, identity);
}

// Removes the certificate first: it is what makes a member.
absl::Status RemoveMember(const ClusterPaths& paths) {
  return RemoveFiles(paths.host,
                     {"host.pem", "host.key", "host.key.next", "authority.pem", kHeadPlaceFile});
}

// Removes everything that the head has kept, also its jobs.
absl::Status RemoveHead(const ClusterPaths& paths) {
  std::vector<std::string> names = {"authority.key"};
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(paths.head.c_str()), ::closedir);
  while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_type != DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return RemoveFiles(paths.head, names);
}

}  // namespace hlaunch
