// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/cluster_status.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/json_fields.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {
namespace {

void ReadFiles(const ClusterPaths& paths, ClusterStatus& status) {
  status.member = IsMember(paths);
  status.is_head = IsHead(paths);
  status.head = HeadOf(paths);
  const absl::StatusOr<TrustFolder> folder = TrustFolder::Open(paths.host);
  if (!folder.ok()) return;
  const absl::StatusOr<std::string> certificate = folder->Read("host.pem");
  if (!certificate.ok()) return;
  const absl::StatusOr<CertifiedHost> host = ReadHostCertificate(*certificate);
  if (!host.ok()) return;
  status.host = host->host;
  status.expires = host->expires;
}

absl::StatusOr<HereAnswer> AskHere(const std::string& socket, Duration patience) {
  LocalClient daemon(socket);
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json answer,
                           daemon.Ask("here", nlohmann::json::object(), patience));
  return ReadHereAnswer(answer);
}

std::string HeadLine(const ClusterStatus& status) {
  if (status.connected) return absl::StrCat(status.head, ", connected\n");
  const std::string& why = status.trouble;
  return absl::StrCat(status.head.empty() ? "unknown" : status.head, ", not connected",
                      why.empty() ? "" : ": ", PrintableLine(why), "\n");
}

}  // namespace

ClusterStatus FindStatus(const ClusterPaths& paths, const std::string& socket, Duration patience) {
  ClusterStatus status;
  ReadFiles(paths, status);
  const absl::StatusOr<HereAnswer> here = AskHere(socket, patience);
  status.daemon = here.ok();
  if (!here.ok()) {
    status.trouble = std::string(here.status().message());
    return status;
  }
  status.member = status.member || !here->head.empty();
  status.host = here->host;
  status.head = here->head;
  status.version = here->version;
  status.connected = here->connected;
  status.trouble = here->trouble;
  return status;
}

std::string StatusText(const ClusterStatus& status) {
  if (!status.member) {
    return absl::StrCat(
        "This host belongs to no cluster",
        status.daemon ? "" : ", as far as this user can see: ", PrintableLine(status.trouble),
        ".\nTo make one: hlaunch cluster init. To join one: hlaunch cluster join\n");
  }
  return absl::StrCat(
      "host         ", status.host.empty() ? "unknown" : status.host,
      status.is_head ? ", the head's own" : "", "\nhead         ", HeadLine(status),
      "hlaunchd     ",
      status.daemon ? absl::StrCat("runs, version ", status.version)
                    : std::string("does not answer here; it starts by: systemctl start hlaunchd"),
      status.expires == 0 ? ""
                          : absl::StrCat("\ncertificate  until ", WallTimeOfMinute(status.expires),
                                         ", renewed by itself"),
      "\n");
}

std::string StatusJson(const ClusterStatus& status) {
  nlohmann::json json = {{"member", status.member},   {"is_head", status.is_head},
                         {"hlaunchd", status.daemon}, {"connected", status.connected},
                         {"host", status.host},       {"head", status.head},
                         {"version", status.version}, {"trouble", status.trouble}};
  if (status.expires != 0) json["certificate_expires"] = status.expires;
  return absl::StrCat(TextOf(json), "\n");
}

std::string WallTimeOfMinute(std::time_t time) {
  std::tm parts = {};
  std::array<char, 32> text{};
  ::gmtime_r(&time, &parts);
  return std::string(text.data(),
                     std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts));
}

}  // namespace hlaunch
