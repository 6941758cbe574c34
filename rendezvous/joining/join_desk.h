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
#include "rendezvous/joining/join_token.h"
#include "rendezvous/joining/trust_folder.h"
#include "rendezvous/trust/cluster_authority.h"

namespace hlaunch {

inline constexpr std::time_t kTokenLife = 600;     // In seconds.
inline constexpr char kDeskFile[] = "hosts.json";  // In the head's folder.

// What a host without a certificate asks: the body of `join`. A value; `token` is secret.
struct JoinQuestion {
  std::string token;
  std::string host;
  std::string request;  // A CSR, in PEM.
};

nlohmann::json ToJson(const JoinQuestion& question);

// Errors:
//   InvalidArgument - it is none; the message names the field.
absl::StatusOr<JoinQuestion> ReadJoinQuestion(const nlohmann::json& body);

// The head's desk where hosts are let into the cluster and shown out: it makes join tokens, takes
// each once, signs certificates, and knows which of them still count. Of a token it keeps a hash.
//
// Belongs to one thread. All is pure but for random numbers: the caller says what time it is, logs
// what is refused with the host's name and address, and keeps ToJson() in the head's folder after
// each change and before it answers. `now` is in seconds since 1970.
class JoinDesk {
 public:
  explicit JoinDesk(Authority authority);

  // Errors:
  //   InvalidArgument - it is not what ToJson has made; the message names the field.
  static absl::StatusOr<JoinDesk> FromJson(Authority authority, const nlohmann::json& state);
  nlohmann::json ToJson() const;

  // Good for one host, for kTokenLife.
  JoinToken MakeToken(std::time_t now);

  // The certificate of a host that shows a token, which is used up then: another request with it is
  // refused, the same one, whose answer was lost, is answered again. Former certificates of that
  // name end, so a host that was made anew joins by its old name. `address`: where it asks from,
  // without the port. `connected`: a host of that name is connected now.
  //
  // Errors: the token is as good as before.
  //   InvalidArgument - the name or the request is none.
  //   PermissionDenied - the token is not of this cluster, or is wrong.
  //   DeadlineExceeded - its time is up.
  //   FailedPrecondition - another host, or another request of this one, has used it.
  //   AlreadyExists - `connected`, or it is the head's own host: the name is in use.
  //   ResourceExhausted - the token is wrong, as many before it from there were; wait a minute. Or
  //       there are as many hosts as a cluster may have.
  //   Internal - OpenSSL refuses.
  absl::StatusOr<std::string> Join(const JoinQuestion& question, const std::string& address,
                                   bool connected, std::time_t now);

  // A further certificate for a host that has shown one. The one it has shown counts until it
  // expires.
  //
  // Errors:
  //   InvalidArgument - the request is none.
  //   PermissionDenied - as of Admits.
  //   Internal - OpenSSL refuses.
  absl::StatusOr<std::string> Renew(const CertifiedHost& shown, const std::string& request,
                                    std::time_t now);

  // A certificate without a token, for the head's own host, which this is from then on: for
  // `hlaunch cluster init`. Errors: as of SignHostRequest.
  absl::StatusOr<std::string> Certify(const std::string& host, const std::string& request,
                                      std::time_t now);
  // Whose root may make tokens and throw hosts out. Empty: none was certified.
  const std::string& own_host() const { return own_host_; }

  // No certificate that the host has counts any more. The caller cuts it off.
  //
  // Errors:
  //   NotFound - no host of that name has joined, or it was thrown out before.
  //   FailedPrecondition - it is the head's own host.
  absl::Status ThrowOut(const std::string& host, std::time_t now);

  // Whether a certificate that this authority has signed counts still. The one of the head's own
  // host does though it has expired, or nobody could make tokens any more: only who is root there
  // has its key, and the caller sees to it that it comes from there.
  //
  // Errors:
  //   PermissionDenied - it does not; the message says why, for the log.
  absl::Status Admits(const CertifiedHost& shown, std::time_t now) const;

 private:
  struct Token {
    std::string hash;
    std::time_t until = 0;
    std::string used_by;       // A host; empty: nobody yet.
    std::string used_request;  // Its request's hash.
  };
  struct Host {
    std::time_t issued = 0;      // Its latest certificate.
    std::time_t expires = 0;     // The same one's.
    std::time_t refused = 0;     // Certificates issued then or before do not count.
    std::time_t thrown_out = 0;  // 0: it was not.
    std::string token;  // The id of the one it has joined with; empty once it was thrown out.
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

  Authority authority_;
  std::string pin_;
  std::string own_host_;
  std::map<std::string, Token> tokens_;       // By id.
  std::map<std::string, Host> hosts_;         // By name.
  std::map<std::string, Failures> failures_;  // By address; not kept.
};

// The desk of a head whose folder this is: its authority, and what was kept of hosts and tokens.
//
// Errors: as of TrustFolder::Read; a folder without a desk has an empty one.
absl::StatusOr<JoinDesk> ReadJoinDesk(const TrustFolder& folder);
// Errors: as of TrustFolder::Replace.
absl::Status KeepJoinDesk(const TrustFolder& folder, const JoinDesk& desk);

}  // namespace hlaunch
