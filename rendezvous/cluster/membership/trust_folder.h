// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {

// The folder where one process of a cluster of one's own keeps its credentials: /var/lib/hlaunchd
// on a host, /var/lib/hlaunch-head on the head. Only its owner can read it. A file in it is
// replaced as a whole or not at all, also on the disk, and no symbolic link in it is followed.
// Files that root writes belong to the folder's owner.
//
// A movable value; belongs to one thread.
class TrustFolder {
 public:
  // Errors:
  //   NotFound - the folder does not exist.
  //   PermissionDenied - we may not open it.
  //   FailedPrecondition - it is a link or not a folder, belongs to another user, or other users
  //       can read it; the message says what to do.
  static absl::StatusOr<TrustFolder> Open(const std::string& path);

  // Opens the folder, and creates it if it does not exist; then it belongs to this user. Its parent
  // must exist.
  //
  // Errors: as of Open, and
  //   PermissionDenied - we may not create it or give it to this user.
  static absl::StatusOr<TrustFolder> Make(const std::string& path, uid_t owner, gid_t group);

  const std::string& path() const { return path_; }
  bool Has(const std::string& name) const;

  static constexpr size_t kUsualLimit = 1 << 20;

  // Returns the content of a file, which may have at most `limit` bytes.
  //
  // Errors:
  //   NotFound - there is no file of that name.
  //   FailedPrecondition - it is not a regular file, is too long, or cannot be read.
  absl::StatusOr<std::string> Read(const std::string& name, size_t limit = kUsualLimit) const;

  // Writes a file in place of the former one, if any. All files have mode 0600.
  //
  // Errors:
  //   Unavailable - it could not be written; the former content is still there, unless only Sync
  //       failed.
  absl::Status Replace(const std::string& name, absl::string_view content) const;

  // Removes a file. It is no error if there is none.
  //
  // Errors:
  //   Unavailable - it could not be removed.
  absl::Status Remove(const std::string& name) const;

  // The same two for many files: until Sync, a power loss may undo them, each one by itself.
  absl::Status ReplaceUntilSync(const std::string& name, absl::string_view content) const;
  absl::Status RemoveUntilSync(const std::string& name) const;
  // Errors:
  //   Unavailable - the folder could not be written.
  absl::Status Sync() const;

  // Removes files that a killed process was writing. No other process may write meanwhile.
  void RemoveDrafts() const;

 private:
  TrustFolder(std::string path, UniqueFd folder, uid_t owner, gid_t group);

  std::string path_;
  UniqueFd folder_;
  uid_t owner_;
  gid_t group_;
};

// Whose certificate and key these are: "host" for a host's daemon, "head" for the head.
inline constexpr char kOfHost[] = "host";
inline constexpr char kOfHead[] = "head";

// Both files hold HOST:PORT of the head in a line: the first is in a host's folder; the second is
// in the head's own folder, with the address where hosts find it.
inline constexpr char kHeadPlaceFile[] = "head";
inline constexpr char kJoinAtFile[] = "join-at";

// These read and write the files authority.pem, NAME.pem and NAME.key. A key and its certificate
// are replaced together: whenever the power fails, what is read afterwards fits together.
//
// Errors: as of Read, and
//   FailedPrecondition - the key and the certificate do not fit together.
absl::StatusOr<HostIdentity> ReadIdentity(const TrustFolder& folder, const std::string& name);
// Errors: as of Replace.
absl::Status KeepIdentity(const TrustFolder& folder, const std::string& name,
                          const HostIdentity& identity);

// These read and write the head's authority: authority.pem and authority.key. Errors: as of Read
// and Replace.
absl::StatusOr<Authority> ReadAuthority(const TrustFolder& folder);
absl::Status KeepAuthority(const TrustFolder& folder, const Authority& authority);

}  // namespace hlaunch
