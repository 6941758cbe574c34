// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/membership/join_registrar.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/wall_time.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/json_fields.h"
#include "rendezvous/net/trust/page_password.h"

namespace hlaunch {
namespace {

constexpr std::time_t kRemembered = 86400;  // Invalid tokens are kept this long, to say why.
constexpr size_t kMaxTokens = 256;
constexpr size_t kMaxRegistrar = 64 << 20;  // Bytes of its file: more than all hosts can need.
constexpr int kMaxFailures = 5;             // Of one address within kFailureSpan.
constexpr std::time_t kFailureSpan = 60;
constexpr size_t kMaxAddresses = 1024;
constexpr size_t kMaxTokenText = 256;
constexpr int64_t kLatest = INT64_C(253402300799);  // The last second of the year 9999.

constexpr char kAnother[] = "; the head makes another one by: hlaunch cluster token";

}  // namespace

nlohmann::json ToJson(const JoinQuestion& question) {
  return {{"token", question.token}, {"host", question.host}, {"request", question.request}};
}

absl::StatusOr<JoinQuestion> ReadJoinQuestion(const nlohmann::json& body) {
  JoinQuestion read;
  JsonFields fields(body, "join");
  fields.Text("token", &read.token, kMaxTokenText);
  fields.Text("host", &read.host, kMaxHostName);
  fields.Text("request", &read.request, kMaxRequestBytes);
  if (!fields.status().ok()) return fields.status();
  return read;
}

JoinRegistrar::JoinRegistrar(Authority authority)
    : authority_(std::move(authority)), pin_(KeyPinOf(authority_.certificate)) {}

JoinToken JoinRegistrar::MakeToken(std::time_t now) {
  ForgetTokens(now);
  ForgetHosts(now);
  JoinToken token = MakeJoinToken(pin_);
  tokens_[token.id] = {HashOfSecret(token.secret), now + kTokenLife, "", ""};
  return token;
}

absl::StatusOr<std::string> JoinRegistrar::Join(const JoinQuestion& question,
                                                const std::string& address, bool connected,
                                                std::time_t now) {
  if (!IsClusterHostName(question.host)) {
    return absl::InvalidArgumentError("that is not a host's name; choose one with --name");
  }
  const absl::StatusOr<std::string> id = CheckToken(question, now);
  if (!id.ok() && IsSuspect(address, now)) {
    return absl::ResourceExhaustedError(
        "too many wrong join tokens came from this address; wait a minute");
  }
  if (!id.ok()) {
    CountFailure(address, now);
    return id.status();
  }
  if (question.host == own_host_) {
    return absl::AlreadyExistsError(absl::StrCat(
        question.host, " is the head's own host; give this one another name with --name"));
  }
  const bool again = IsAskedAgain(question, *id);
  if (connected && !again) {
    return absl::AlreadyExistsError(absl::StrCat(
        "a host named ", question.host, " is connected to the cluster now; if this is another ",
        "host, give it another name with --name, else stop hlaunchd there"));
  }
  const bool known = hosts_.contains(question.host);
  if (!known && hosts_.size() >= kMaxClusterHosts) ForgetRefusedHosts(now);
  if (!known && hosts_.size() >= kMaxClusterHosts) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this cluster has ", hosts_.size(), " hosts, which is as many as it may"));
  }
  HLAUNCH_ASSIGN_OR_RETURN(std::string certificate, Issue(question.host, question.request, now));
  if (again) return certificate;
  Host& host = hosts_[question.host];
  host.refused = host.issued - 1;
  host.thrown_out = 0;
  host.token = *id;
  tokens_[*id].used_by = question.host;
  tokens_[*id].used_request = HashOfSecret(question.request);
  return certificate;
}

// Returns the id of the token, if it is valid. A caller that does not know the secret does not
// learn whether there is such a token.
absl::StatusOr<std::string> JoinRegistrar::CheckToken(const JoinQuestion& question,
                                                      std::time_t now) const {
  HLAUNCH_ASSIGN_OR_RETURN(const JoinToken shown, ReadJoinToken(question.token));
  const auto at = tokens_.find(shown.id);
  if (shown.pin != pin_ || at == tokens_.end() ||
      !SamePassword(at->second.hash, HashOfSecret(shown.secret))) {
    return absl::PermissionDeniedError(
        absl::StrCat("the join token is wrong: the head knows no such token", kAnother));
  }
  const Token& token = at->second;
  if (!token.used_by.empty() && !IsAskedAgain(question, shown.id)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the join token was used already, by ", token.used_by, kAnother));
  }
  if (now >= token.until) {
    return absl::DeadlineExceededError(
        absl::StrCat("the join token expired ", now - token.until, "s ago", kAnother));
  }
  return shown.id;
}

// Returns whether this is the question that has used the token, and the token is still its host's
// last.
bool JoinRegistrar::IsAskedAgain(const JoinQuestion& question, const std::string& id) const {
  const Token& token = tokens_.at(id);
  const auto host = hosts_.find(question.host);
  return host != hosts_.end() && host->second.token == id && token.used_by == question.host &&
         token.used_request == HashOfSecret(question.request);
}

absl::StatusOr<std::string> JoinRegistrar::Renew(const CertifiedHost& shown,
                                                 const std::string& request, std::time_t now) {
  HLAUNCH_RETURN_IF_ERROR(Admits(shown, now));
  return Issue(shown.host, request, now);
}

absl::StatusOr<std::string> JoinRegistrar::Certify(const std::string& host,
                                                   const std::string& request, std::time_t now) {
  HLAUNCH_ASSIGN_OR_RETURN(std::string certificate, Issue(host, request, now));
  own_host_ = host;
  return certificate;
}

// Each certificate of a name is issued in another second, so that one can be refused and the next
// be valid.
absl::StatusOr<std::string> JoinRegistrar::Issue(const std::string& host,
                                                 const std::string& request, std::time_t now) {
  const auto known = hosts_.find(host);
  Host next = known == hosts_.end() ? Host{} : known->second;
  next.issued = std::max({now, next.issued + 1, next.refused + 1});
  next.expires = next.issued + kCertificateLife;
  HLAUNCH_ASSIGN_OR_RETURN(std::string certificate,
                           SignHostRequest(authority_, request, host, next.issued, next.expires));
  ForgetHosts(now);
  hosts_[host] = next;
  return certificate;
}

absl::Status JoinRegistrar::ThrowOut(const std::string& host, std::time_t now) {
  const auto at = hosts_.find(host);
  if (at == hosts_.end() || at->second.thrown_out != 0) {
    return absl::NotFoundError(absl::StrCat("no host named ", host, " is in the cluster"));
  }
  if (host == own_host_) {
    return absl::FailedPreconditionError(
        absl::StrCat(host, " is the head's own host: the cluster ends with it"));
  }
  at->second.refused = std::max(now, at->second.issued);
  at->second.thrown_out = now;
  at->second.token.clear();
  return absl::OkStatus();
}

absl::Status JoinRegistrar::Admits(const CertifiedHost& shown, std::time_t now) const {
  const auto at = hosts_.find(shown.host);
  if (at == hosts_.end()) {
    return absl::PermissionDeniedError("the head knows no host of that name; join it again");
  }
  if (shown.issued <= at->second.refused) {
    const std::time_t when = at->second.thrown_out;
    return absl::PermissionDeniedError(
        when != 0 ? absl::StrCat("it was thrown out at ", WallTime(int64_t{when} * 1000))
                  : std::string("another host has joined by that name since"));
  }
  if (now >= shown.expires && shown.host != own_host_) {
    return absl::PermissionDeniedError(absl::StrCat(
        "its certificate expired at ", WallTime(int64_t{shown.expires} * 1000), "; join it again"));
  }
  return absl::OkStatus();
}

bool JoinRegistrar::IsSuspect(const std::string& address, std::time_t now) {
  const auto at = failures_.find(address);
  if (at != failures_.end() && now - at->second.since >= kFailureSpan) failures_.erase(at);
  const auto left = failures_.find(address);
  return left != failures_.end() && left->second.count >= kMaxFailures;
}

void JoinRegistrar::CountFailure(const std::string& address, std::time_t now) {
  if (failures_.size() >= kMaxAddresses) {
    std::erase_if(failures_,
                  [now](const auto& of) { return now - of.second.since >= kFailureSpan; });
  }
  if (failures_.size() >= kMaxAddresses) failures_.clear();
  Failures& of = failures_[address];
  if (of.count++ == 0) of.since = now;
}

// Removes invalid tokens first, whose loss only makes an answer less exact; then the oldest.
void JoinRegistrar::ForgetTokens(std::time_t now) {
  std::erase_if(tokens_, [now](const auto& of) { return now >= of.second.until + kRemembered; });
  const auto worth = [now](const Token& token) {
    return std::make_pair(token.used_by.empty() && now < token.until, token.until);
  };
  while (tokens_.size() >= kMaxTokens) {
    tokens_.erase(std::min_element(
        tokens_.begin(), tokens_.end(),
        [&](const auto& a, const auto& b) { return worth(a.second) < worth(b.second); }));
  }
}

void JoinRegistrar::ForgetHosts(std::time_t now) {
  std::erase_if(hosts_, [&](const auto& of) {
    return now >= of.second.expires + kRemembered && of.first != own_host_;
  });
}

// Their loss only makes an answer less exact. A host that was thrown out in this very second stays,
// so that a next certificate of its name is issued later than its last.
void JoinRegistrar::ForgetRefusedHosts(std::time_t now) {
  std::erase_if(hosts_, [&](const auto& of) {
    const Host& host = of.second;
    const bool thrown_out = host.thrown_out != 0 && host.refused < now;
    return (thrown_out || now >= host.expires) && of.first != own_host_;
  });
}

nlohmann::json JoinRegistrar::ToJson() const {
  nlohmann::json tokens = nlohmann::json::array();
  for (const auto& [id, of] : tokens_) {
    tokens.push_back({{"id", id},
                      {"hash", of.hash},
                      {"until", of.until},
                      {"used_by", of.used_by},
                      {"request", of.used_request}});
  }
  nlohmann::json hosts = nlohmann::json::array();
  for (const auto& [name, of] : hosts_) {
    hosts.push_back({{"name", name},
                     {"issued", of.issued},
                     {"expires", of.expires},
                     {"refused", of.refused},
                     {"thrown_out", of.thrown_out},
                     {"token", of.token}});
  }
  return {{"tokens", tokens}, {"hosts", hosts}, {"own_host", own_host_}};
}

absl::StatusOr<JoinRegistrar> JoinRegistrar::FromJson(Authority authority,
                                                      const nlohmann::json& state) {
  JoinRegistrar read(std::move(authority));
  JsonFields fields(state, kRegistrarFile);
  fields.Text("own_host", &read.own_host_, kMaxHostName);
  for (const nlohmann::json* const of : fields.Objects("tokens", kMaxTokens)) {
    std::string id;
    Token token;
    int64_t until = 0;
    JsonFields part(*of, "a token");
    part.Text("id", &id);
    part.Text("hash", &token.hash);
    part.Number("until", &until, 0, kLatest);
    part.Text("used_by", &token.used_by);
    part.Text("request", &token.used_request);
    token.until = until;
    fields.Merge(part.status());
    read.tokens_[id] = token;
  }
  for (const nlohmann::json* const of : fields.Objects("hosts", kMaxClusterHosts)) {
    std::string name, token;
    int64_t issued = 0, expires = 0, refused = 0, thrown_out = 0;
    JsonFields part(*of, "a host");
    part.Text("name", &name, kMaxHostName);
    part.Number("issued", &issued, 0, kLatest);
    part.Number("expires", &expires, 0, kLatest);
    part.Number("refused", &refused, 0, kLatest);
    part.Number("thrown_out", &thrown_out, 0, kLatest);
    part.Text("token", &token);
    fields.Merge(part.status());
    read.hosts_[name] = {issued, expires, refused, thrown_out, token};
  }
  if (!fields.status().ok()) return fields.status();
  return read;
}

absl::StatusOr<JoinRegistrar> ReadJoinRegistrar(const TrustFolder& folder) {
  HLAUNCH_ASSIGN_OR_RETURN(Authority authority, ReadAuthority(folder));
  const absl::StatusOr<std::string> text = folder.Read(kRegistrarFile, kMaxRegistrar);
  if (absl::IsNotFound(text.status())) return JoinRegistrar(std::move(authority));
  if (!text.ok()) return text.status();
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json state, ParseObject(*text));
  return JoinRegistrar::FromJson(std::move(authority), state);
}

absl::Status KeepJoinRegistrar(const TrustFolder& folder, const JoinRegistrar& registrar) {
  return folder.Replace(kRegistrarFile, absl::StrCat(TextOf(registrar.ToJson()), "\n"));
}

}  // namespace hlaunch
