// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "rendezvous/cluster/membership/join_token.h"
#include "rendezvous/cluster/membership/trust_folder.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {

inline constexpr std::time_t kTokenLife = 600;          // In seconds.
inline constexpr char kRegistrarFile[] = "hosts.json";  // In the head's folder.

// The question of a host without a certificate: the body of `join`. A value; `token` is secret.
struct JoinQuestion {
  std::string token;
  std::string host;
  std::string request;  // A CSR, in PEM.
};

nlohmann::json ToJson(const JoinQuestion& question);

// Errors:
//   InvalidArgument - `body` is not such a question; the message names the field.
absl::StatusOr<JoinQuestion> ReadJoinQuestion(const nlohmann::json& body);

// The head's registrar, which lets hosts into the cluster and throws them out. It makes join
// tokens, accepts each once, signs certificates, and knows which of them are still valid. Of a
// token it keeps only a hash.
//
// Belongs to one thread. All functions are pure except for random numbers: the caller passes the
// time, logs each refusal with the host's name and address, and saves ToJson() in the head's folder
// after each change and before it answers. `now` is in seconds since 1970.
class JoinRegistrar {
 public:
  explicit JoinRegistrar(Authority authority);

  // Errors:
  //   InvalidArgument - `state` was not made by ToJson; the message names the field.
  static absl::StatusOr<JoinRegistrar> FromJson(Authority authority, const nlohmann::json& state);
  nlohmann::json ToJson() const;

  // Makes a token that is valid for one host, for kTokenLife.
  JoinToken MakeToken(std::time_t now);

  // Returns a certificate for a host that shows a token. The token is then used up: another request
  // with it is refused; the same request, whose answer was lost, is answered again. Former
  // certificates of that name become invalid, so a reinstalled host can join by its old name.
  // `address`: where the request comes from, without the port. `connected`: a host of that name is
  // connected now.
  //
  // Errors: the token stays as valid as before.
  //   InvalidArgument - the name is not a host's name, or the request is not one.
  //   PermissionDenied - the token is not of this cluster, or is wrong.
  //   DeadlineExceeded - the token has expired.
  //   FailedPrecondition - another host, or another request of this host, has used the token.
  //   AlreadyExists - the name is in use: by a connected host, or by the head's own host.
  //   ResourceExhausted - the token is wrong, like many before it from that address; wait a minute.
  //       Or the cluster has as many hosts as it may have, without those that were thrown out or
  //       whose certificates have expired.
  //   Internal - OpenSSL refuses.
  absl::StatusOr<std::string> Join(const JoinQuestion& question, const std::string& address,
                                   bool connected, std::time_t now);

  // Returns a further certificate for a host that has shown one. The shown certificate stays valid
  // until it expires.
  //
  // Errors:
  //   InvalidArgument - `request` is not a request.
  //   PermissionDenied - as of Admits.
  //   Internal - OpenSSL refuses.
  absl::StatusOr<std::string> Renew(const CertifiedHost& shown, const std::string& request,
                                    std::time_t now);

  // Returns a certificate without a token for `host`, which is the head's own host from then on.
  // Used by `hlaunch cluster init`. Errors: as of SignHostRequest.
  absl::StatusOr<std::string> Certify(const std::string& host, const std::string& request,
                                      std::time_t now);
  // The host whose root user may make tokens and throw hosts out. Empty if none was certified.
  const std::string& own_host() const { return own_host_; }

  // Makes all certificates of the host invalid. The caller closes its connection.
  //
  // Errors:
  //   NotFound - no host of that name has joined, or it was thrown out before.
  //   FailedPrecondition - it is the head's own host.
  absl::Status ThrowOut(const std::string& host, std::time_t now);

  // Checks whether a certificate that this authority has signed is still valid. The one of the
  // head's own host is valid even after it has expired, or no user could make tokens any more: only
  // root on that host has its key, and the caller makes sure that the connection comes from there.
  //
  // Errors:
  //   PermissionDenied - it is not valid; the message says why, for the log.
  absl::Status Admits(const CertifiedHost& shown, std::time_t now) const;

 private:
  struct Token {
    std::string hash;
    std::time_t until = 0;
    std::string used_by;       // A host; empty if it is unused.
    std::string used_request;  // The hash of that host's request.
  };
  struct Host {
    std::time_t issued = 0;      // When its latest certificate was issued.
    std::time_t expires = 0;     // When that certificate expires.
    std::time_t refused = 0;     // Certificates issued then or before are invalid.
    std::time_t thrown_out = 0;  // 0 if it was not.
    std::string token;           // The id of its join token; empty once it was thrown out.
  };
  struct Failures {
    int count = 0;
    std::time_t since = 0;
  };

  absl::StatusOr<std::string> CheckToken(const JoinQuestion& question, std::time_t now) const;
  bool IsAskedAgain(const JoinQuestion& question, const std::string& id) const;
  absl::StatusOr<std::string> Issue(const std::string& host, const std::string& request,
                                    std::time_t now);
  bool IsSuspect(const std::string& address, std::time_t now);
  void CountFailure(const std::string& address, std::time_t now);
  void ForgetTokens(std::time_t now);
  void ForgetHosts(std::time_t now);
  void ForgetRefusedHosts(std::time_t now);

  Authority authority_;
  std::string pin_;
  std::string own_host_;
  std::map<std::string, Token> tokens_;       // By id.
  std::map<std::string, Host> hosts_;         // By name.
  std::map<std::string, Failures> failures_;  // By address; not saved.
};

// Reads the registrar of the head from its folder: the authority, and the saved hosts and tokens.
//
// Errors: as of TrustFolder::Read and FromJson. Without a saved registrar it is empty.
absl::StatusOr<JoinRegistrar> ReadJoinRegistrar(const TrustFolder& folder);
// Errors: as of TrustFolder::Replace.
absl::Status KeepJoinRegistrar(const TrustFolder& folder, const JoinRegistrar& registrar);

}  // namespace hlaunch
