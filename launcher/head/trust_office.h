// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/base/rare_log.h"
#include "rendezvous/joining/join_desk.h"
#include "rendezvous/joining/trust_folder.h"
#include "rendezvous/trust/cluster_authority.h"

namespace hlaunch {

// Who may be a host of this cluster: the desk, its file, and the head's own certificate. Whatever
// is decided is on the disk once KeepChanges was called, and answered after that; what is refused
// is logged, though not every time. The head's own certificate is made anew with each of its lives,
// and long before it expires.
//
// Belongs to one thread; `folder` outlives it.
class TrustOffice {
 public:
  // Makes the head a new certificate. `join_at`: where hosts find the head, HOST:PORT.
  //
  // Errors:
  //   NotFound, FailedPrecondition - the folder is not a head's, or not whole.
  //   Unavailable - it cannot be written.
  static absl::StatusOr<TrustOffice> Open(const TrustFolder& folder, std::string join_at,
                                          std::time_t now);

  // The host that the head is on; empty: nobody knows.
  const std::string& own_host() const { return desk_.own_host(); }

  // What the head shows.
  const HostIdentity& identity() const { return identity_; }
  // Whether that should be another one by now.
  bool OwnIsOld(std::time_t now) const;
  // Errors: as of MakeHeadIdentity and KeepIdentity.
  absl::Status RenewOwn(std::time_t now);

  // When the head's certificate runs out, and the first of those that hosts have shown or were
  // given since this head began; unset: none has come.
  std::time_t own_expires() const { return own_issued_ + kCertificateLife; }
  std::optional<std::time_t> first_host_expires() const;

  // Whether a host with this certificate is let in.
  bool Admits(const CertifiedHost& shown, std::time_t now);

  // The answers to `join` (of a stranger), `renew` (of a host that was admitted), `token`, and
  // whatever `throw_out` means here.
  //
  // Errors: as of JoinDesk.
  absl::StatusOr<nlohmann::json> Join(const nlohmann::json& body, const std::string& address,
                                      const std::function<bool(const std::string&)>& connected,
                                      std::time_t now);
  absl::StatusOr<nlohmann::json> Renew(const std::string& host, const nlohmann::json& body,
                                       std::time_t now);
  absl::StatusOr<nlohmann::json> Token(std::time_t now);
  absl::Status ThrowOut(const std::string& host, std::time_t now);

  // Errors:
  //   Unavailable - the desk could not be kept. It is another than its file, and counts no more.
  absl::Status KeepChanges();

 private:
  TrustOffice(const TrustFolder& folder, std::string join_at, Authority authority, JoinDesk desk);

  const TrustFolder* folder_;
  std::string join_at_;
  Authority authority_;
  HostIdentity identity_;
  std::time_t own_issued_ = 0;
  JoinDesk desk_;
  bool changed_ = false;                    // The desk is another than its file.
  RareLog refused_joins_;                   // Of strangers.
  std::map<std::string, RareLog> refused_;  // Of each host with a certificate that counts no more.
  std::map<std::string, CertifiedHost> shown_;  // What each host has shown last.
  std::map<std::string, std::time_t> expires_;  // Of the newest certificate of each.
};

}  // namespace hlaunch
