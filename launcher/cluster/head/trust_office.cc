// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/trust_office.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

absl::StatusOr<std::string> ReadRequest(const nlohmann::json& body) {
  std::string request;
  JsonFields fields(body, "renew");
  fields.Text("request", &request, kMaxRequestBytes);
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  return request;
}

void WarnRarely(RareLog& log, const std::string& line) {
  const std::string admitted = log.Admit(line, MonotonicClock().Now());
  if (!admitted.empty()) LogWarning(admitted);
}

}  // namespace

TrustOffice::TrustOffice(const TrustFolder& folder, std::string join_at, Authority authority,
                         JoinRegistrar registrar)
    : folder_(&folder),
      join_at_(std::move(join_at)),
      authority_(std::move(authority)),
      registrar_(std::move(registrar)) {}

absl::StatusOr<TrustOffice> TrustOffice::Open(const TrustFolder& folder, std::string join_at,
                                              std::time_t now) {
  HLAUNCH_ASSIGN_OR_RETURN(Authority authority, ReadAuthority(folder));
  HLAUNCH_ASSIGN_OR_RETURN(JoinRegistrar registrar, ReadJoinRegistrar(folder));
  TrustOffice office(folder, std::move(join_at), std::move(authority), std::move(registrar));
  HLAUNCH_RETURN_IF_ERROR(office.RenewOwn(now));
  return office;
}

absl::Status TrustOffice::KeepChanges() {
  if (!changed_) return absl::OkStatus();
  HLAUNCH_RETURN_IF_ERROR(KeepJoinRegistrar(*folder_, registrar_));
  changed_ = false;
  return absl::OkStatus();
}

bool TrustOffice::OwnIsOld(std::time_t now) const {
  return now >= own_issued_ + kRenewAfter || now < own_issued_ - kClockTolerance;
}

absl::Status TrustOffice::RenewOwn(std::time_t now) {
  HLAUNCH_ASSIGN_OR_RETURN(HostIdentity identity, MakeHeadIdentity(authority_, now));
  HLAUNCH_RETURN_IF_ERROR(KeepIdentity(*folder_, kOfHead, identity));
  identity_ = std::move(identity);
  own_issued_ = now;
  return absl::OkStatus();
}

std::optional<std::time_t> TrustOffice::first_host_expires() const {
  std::optional<std::time_t> first;
  for (const auto& [host, expires] : expires_) first = std::min(first.value_or(expires), expires);
  return first;
}

bool TrustOffice::Admits(const CertifiedHost& shown, std::time_t now) {
  const absl::Status admits = registrar_.Admits(shown, now);
  if (!admits.ok()) {
    WarnRarely(refused_[shown.host],
               absl::StrCat("host ", shown.host, " is refused: ", admits.message()));
    return false;
  }
  shown_[shown.host] = shown;
  expires_[shown.host] = std::max(expires_[shown.host], shown.expires);
  return true;
}

absl::StatusOr<nlohmann::json> TrustOffice::Join(
    const nlohmann::json& body, const std::string& address,
    const std::function<bool(const std::string&)>& connected, std::time_t now) {
  HLAUNCH_ASSIGN_OR_RETURN(const JoinQuestion question, ReadJoinQuestion(body));
  const absl::StatusOr<std::string> certificate =
      registrar_.Join(question, address, connected(question.host), now);
  if (!certificate.ok()) {  // The registrar's file does not change: refused joins cost no writes.
    const std::string host = IsClusterHostName(question.host) ? question.host : "?";
    WarnRarely(refused_joins_, absl::StrCat("host ", host, " at ", address,
                                            " may not join: ", certificate.status().message()));
    return certificate.status();
  }
  changed_ = true;
  LogInfo(absl::StrCat("host ", question.host, " at ", address, " has joined"));
  return nlohmann::json{{"certificate", *certificate}, {"authority", authority_.certificate}};
}

absl::StatusOr<nlohmann::json> TrustOffice::Renew(const std::string& host,
                                                  const nlohmann::json& body, std::time_t now) {
  const auto shown = shown_.find(host);
  if (shown == shown_.end()) return absl::PermissionDeniedError("only hosts may ask that");
  HLAUNCH_ASSIGN_OR_RETURN(const std::string request, ReadRequest(body));
  HLAUNCH_ASSIGN_OR_RETURN(const std::string certificate,
                           registrar_.Renew(shown->second, request, now));
  changed_ = true;
  expires_[host] = now + kCertificateLife;
  LogInfo(absl::StrCat("host ", host, " has a new certificate"));
  return nlohmann::json{{"certificate", certificate}, {"authority", authority_.certificate}};
}

absl::StatusOr<nlohmann::json> TrustOffice::Token(std::time_t now) {
  const JoinToken token = registrar_.MakeToken(now);
  changed_ = true;
  LogInfo("a join token was made");
  return nlohmann::json{{"join", join_at_}, {"token", TextOf(token)}, {"valid_s", kTokenLife}};
}

absl::Status TrustOffice::ThrowOut(const std::string& host, std::time_t now) {
  HLAUNCH_RETURN_IF_ERROR(registrar_.ThrowOut(host, now));
  shown_.erase(host);
  changed_ = true;
  expires_.erase(host);
  LogInfo(absl::StrCat("host ", host, " is thrown out"));
  return absl::OkStatus();
}

}  // namespace hlaunch
