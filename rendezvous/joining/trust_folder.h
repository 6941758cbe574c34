// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/trust/cluster_authority.h"

namespace hlaunch {

// The folder where one process of a cluster of one's own keeps what it proves itself with:
// /var/lib/hlaunchd of a host, /var/lib/hlaunch-head of the head. Only its owner can look into
// it. A file in it is replaced as a whole or not at all, on the disk as well, and no symbolic link
// in it is followed. What root writes belongs to the folder's owner.
//
// A value that is moved; belongs to one thread.
class TrustFolder {
 public:
  // Errors:
  //   NotFound - it is not there.
  //   PermissionDenied - we may not open it.
  //   FailedPrecondition - it is a link or no folder, belongs to somebody else, or others may look
  //       into it; the message says what to do.
  static absl::StatusOr<TrustFolder> Open(const std::string& path);

  // Opens it, and makes it before if it is not there; it belongs to this user then. Its parent must
  // be there.
  //
  // Errors: as of Open, and
  //   PermissionDenied - we may not make it or give it to this user.
  static absl::StatusOr<TrustFolder> Make(const std::string& path, uid_t owner, gid_t group);

  const std::string& path() const { return path_; }
  bool Has(const std::string& name) const;

  static constexpr size_t kUsualLimit = 1 << 20;

  // At most `limit` bytes.
  //
  // Errors:
  //   NotFound - there is none of that name.
  //   FailedPrecondition - it is no regular file, too long, or cannot be read.
  absl::StatusOr<std::string> Read(const std::string& name, size_t limit = kUsualLimit) const;

  // All files have mode 0600.
  //
  // Errors:
  //   Unavailable - it could not be written; what was there before is there still.
  absl::Status Replace(const std::string& name, absl::string_view content) const;

  // It is no error if there is none.
  //
  // Errors:
  //   Unavailable - it could not be removed.
  absl::Status Remove(const std::string& name) const;

  // The same two of many files: until Sync, a loss of power may undo them, each by itself.
  absl::Status ReplaceUntilSync(const std::string& name, absl::string_view content) const;
  absl::Status RemoveUntilSync(const std::string& name) const;
  // Errors:
  //   Unavailable - the folder could not be written.
  absl::Status Sync() const;

  // Removes what was being written when its writer was killed. Nobody else writes meanwhile.
  void RemoveDrafts() const;

 private:
  TrustFolder(std::string path, UniqueFd folder, uid_t owner, gid_t group);

  std::string path_;
  UniqueFd folder_;
  uid_t owner_;
  gid_t group_;
};

// Who is it whose certificate and key these are: "host" of a host's daemon, "head" of the head.
inline constexpr char kOfHost[] = "host";
inline constexpr char kOfHead[] = "head";

// HOST:PORT of the head, in a line: in a host's folder; and in the head's own, as hosts find it.
inline constexpr char kHeadPlaceFile[] = "head";
inline constexpr char kJoinAtFile[] = "join-at";

// The files authority.pem, NAME.pem and NAME.key. A key and its certificate are replaced together:
// whatever instant the power goes, what is read then fits together.
//
// Errors: as of Read, and
//   FailedPrecondition - they do not fit together.
absl::StatusOr<HostIdentity> ReadIdentity(const TrustFolder& folder, const std::string& name);
// Errors: as of Replace.
absl::Status KeepIdentity(const TrustFolder& folder, const std::string& name,
                          const HostIdentity& identity);

// The authority of the head: authority.pem and authority.key. Errors: as of Read and Replace.
absl::StatusOr<Authority> ReadAuthority(const TrustFolder& folder);
absl::Status KeepAuthority(const TrustFolder& folder, const Authority& authority);

}  // namespace hlaunch
