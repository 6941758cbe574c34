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
#include "rendezvous/cluster/membership/join_registrar.h"
#include "rendezvous/cluster/membership/trust_folder.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {

// Decides which hosts belong to this cluster. It has the join registrar, the registrar's file, and
// the head's own certificate. A decision is on the disk once KeepChanges has returned, and is
// answered after that. Refusals are logged, but not every one. The head makes its own certificate
// at each start, and again long before the certificate expires.
//
// Belongs to one thread; `folder` outlives it.
class TrustOffice {
 public:
  // Makes a new certificate for the head. `join_at` is where hosts find the head, HOST:PORT.
  //
  // Errors:
  //   NotFound, FailedPrecondition - the folder is not a head's, or is incomplete.
  //   Unavailable - the folder cannot be written.
  static absl::StatusOr<TrustOffice> Open(const TrustFolder& folder, std::string join_at,
                                          std::time_t now);

  // The host on which the head runs; empty: unknown.
  const std::string& own_host() const { return registrar_.own_host(); }

  // The certificate that the head shows.
  const HostIdentity& identity() const { return identity_; }
  // Returns true if it is time for a new one.
  bool OwnIsOld(std::time_t now) const;
  // Makes a new one. Errors: those of MakeHeadIdentity and KeepIdentity.
  absl::Status RenewOwn(std::time_t now);

  // When the head's certificate expires, and when the first of the hosts' certificates does. The
  // latter counts certificates that were shown or given since this head began; unset: none.
  std::time_t own_expires() const { return own_issued_ + kCertificateLife; }
  std::optional<std::time_t> first_host_expires() const;

  // Returns true if a host with this certificate is let in.
  bool Admits(const CertifiedHost& shown, std::time_t now);

  // The answers to `join` (from a stranger), `renew` (from an admitted host) and `token`, and what
  // `throw_out` does here.
  //
  // Errors: those of JoinRegistrar.
  absl::StatusOr<nlohmann::json> Join(const nlohmann::json& body, const std::string& address,
                                      const std::function<bool(const std::string&)>& connected,
                                      std::time_t now);
  absl::StatusOr<nlohmann::json> Renew(const std::string& host, const nlohmann::json& body,
                                       std::time_t now);
  absl::StatusOr<nlohmann::json> Token(std::time_t now);
  absl::Status ThrowOut(const std::string& host, std::time_t now);

  // Errors:
  //   Unavailable - the registrar could not be written. It differs from its file, and must not be
  //   used.
  absl::Status KeepChanges();

 private:
  TrustOffice(const TrustFolder& folder, std::string join_at, Authority authority,
              JoinRegistrar registrar);

  const TrustFolder* folder_;
  std::string join_at_;
  Authority authority_;
  HostIdentity identity_;
  std::time_t own_issued_ = 0;
  JoinRegistrar registrar_;
  bool changed_ = false;                        // The registrar differs from its file.
  RareLog refused_joins_;                       // Refused strangers.
  std::map<std::string, RareLog> refused_;      // Hosts whose certificates do not count any more.
  std::map<std::string, CertifiedHost> shown_;  // The certificate that each host showed last.
  std::map<std::string, std::time_t> expires_;  // When each host's newest certificate expires.
};

}  // namespace hlaunch
