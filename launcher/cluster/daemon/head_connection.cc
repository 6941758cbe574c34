// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/head_connection.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "launcher/text/endpoint.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/json_fields.h"
#include "rendezvous/cluster/membership/trust_folder.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {
namespace {

constexpr Duration kLookTime = std::chrono::seconds(2);
// The head may hold an answer back for 20 s.
constexpr Duration kAnswerTime = std::chrono::seconds(40);
constexpr Duration kNamesTime = std::chrono::seconds(10);
constexpr Duration kRenewLook = std::chrono::minutes(10);
constexpr size_t kMaxPem = 64 << 10;

// Returns a text that changes whenever one of the files is replaced.
std::string SightOf(const std::string& folder) {
  std::string sight;
  for (const char* name : {"head", "host.pem", "host.key", "authority.pem"}) {
    struct stat found = {};
    if (::stat(absl::StrCat(folder, "/", name).c_str(), &found) != 0) continue;
    absl::StrAppend(&sight, name, found.st_ino, " ", found.st_mtim.tv_sec, " ",
                    found.st_mtim.tv_nsec, "\n");
  }
  return sight;
}

std::time_t Now() { return static_cast<std::time_t>(WallMillis() / 1000); }

}  // namespace

std::time_t RenewalTime(const CertifiedHost& certified) {
  const std::time_t life = certified.expires - certified.issued;
  const std::time_t spread = std::max<std::time_t>(life / 15, 1);
  const size_t own = std::hash<std::string>()(absl::StrCat(certified.host, certified.issued));
  return certified.issued + life / 3 * 2 + static_cast<std::time_t>(own % spread);
}

HeadConnection::HeadConnection(asio::io_context& loop, std::string folder, Events events)
    : loop_(loop),
      folder_(std::move(folder)),
      events_(std::move(events)),
      look_(loop),
      renew_(loop),
      seen_("never"),
      host_(HostName()) {
  asio::post(loop_, [this] { Look(); });
}

HeadConnection::~HeadConnection() = default;

void HeadConnection::Look() {
  std::string sight = SightOf(folder_);
  if (sight != seen_) {
    seen_ = std::move(sight);
    Open();
  }
  look_.expires_after(kLookTime);
  look_.async_wait([this](std::error_code error) {
    if (!error) Look();
  });
}

void HeadConnection::Open() {
  link_.reset();
  renew_.cancel();
  head_.clear();
  const absl::Status begun = Begin();
  if (!begun.ok()) {
    trouble_ = std::string(begun.message());
    LogInfo(trouble_);
  }
  events_.changed();
}

absl::Status HeadConnection::Begin() {
  const absl::StatusOr<TrustFolder> folder = TrustFolder::Open(folder_);
  if (!folder.ok() && !absl::IsNotFound(folder.status())) return folder.status();
  if (!folder.ok() || !folder->Has(kHeadPlaceFile)) {
    return absl::FailedPreconditionError(
        "this host is in no cluster; on the head run `hlaunch cluster token`, which prints the "
        "command that joins it");
  }
  HLAUNCH_ASSIGN_OR_RETURN(const std::string text, folder->Read(kHeadPlaceFile));
  HLAUNCH_ASSIGN_OR_RETURN(const Endpoint head,
                           ParseEndpoint(absl::StripAsciiWhitespace(text), kClusterPort));
  HLAUNCH_ASSIGN_OR_RETURN(identity_, ReadIdentity(*folder, kOfHost));
  HLAUNCH_ASSIGN_OR_RETURN(const CertifiedHost certified,
                           ReadHostCertificate(identity_.certificate));
  host_ = certified.host;
  head_ = HostPort(head);
  trouble_ = absl::StrCat("no connection to the head, ", head_, ", yet");
  if (certified.expires <= Now()) {
    LogWarning(
        "this host's certificate has expired: on the head run `hlaunch cluster token`, and what it "
        "prints here (the head's own host renews it by itself)");
  }
  ClusterLink::Events events;
  events.up = [this] { Up(); };
  events.said = [this](const Envelope& envelope) {
    if (!envelope.ask.empty()) events_.ordered(envelope);
  };
  events.down = [this](const absl::Status& why) {
    std::string trouble = absl::StrCat("no connection to the head, ", head_, ": ", why.message());
    if (trouble != trouble_) LogWarning(trouble);  // The link retries, so each reason is told once.
    trouble_ = std::move(trouble);
    events_.changed();
  };
  link_ = std::make_unique<ClusterLink>(loop_, head.host, head.port, identity_, std::move(events));
  RenewInTime();
  return absl::OkStatus();
}

void HeadConnection::Up() {
  LogInfo(absl::StrCat("connected to the head, ", head_));
  events_.changed();
  events_.up();
  FindAddress();
  RenewInTime();
}

// Other hosts of the cluster reach this host by the address that it uses towards the head.
void HeadConnection::FindAddress() {
  const auto take = [this](const std::string& literal) {
    const absl::StatusOr<std::string> own = LocalAddressTowards(literal);
    if (own.ok() && !IsLoopbackLiteral(*own)) events_.reachable_at(*own);
  };
  const absl::StatusOr<Endpoint> head = ParseEndpoint(head_, kClusterPort);
  if (!head.ok()) return;
  if (IsAddressLiteral(head->host)) return take(head->host);
  address_ = std::make_unique<ToolRun>(
      loop_, std::vector<std::string>{"getent", "ahosts", "--", head->host}, kNamesTime,
      [take](const ToolOutput& output) {
        const size_t end = output.text.find_first_of(" \t\n");
        if (end != std::string::npos) take(output.text.substr(0, end));
      });
}

void HeadConnection::Send(const Envelope& envelope) {
  if (link_ != nullptr) link_->Send(envelope);
}

void HeadConnection::Ask(const std::string& verb, nlohmann::json body,
                         std::optional<ClusterUser> user, Done done) {
  if (link_ == nullptr) return done(absl::FailedPreconditionError(trouble_));
  if (!connected()) {
    return done(absl::UnavailableError(
        absl::StrCat(trouble_, "; jobs that run go on, and nothing is started meanwhile")));
  }
  // The answer and the deadline share it. The first of them takes it.
  const auto waits = std::make_shared<Done>(std::move(done));
  const auto finish = [waits](absl::StatusOr<nlohmann::json> answer) {
    if (const Done first = std::exchange(*waits, nullptr)) first(std::move(answer));
  };
  const auto limit = std::make_shared<asio::steady_timer>(loop_, kAnswerTime);
  limit->async_wait([finish, limit, head = head_,
                     alive = std::weak_ptr<const bool>(alive_)](std::error_code error) {
    if (error || alive.expired()) return;
    finish(absl::DeadlineExceededError(absl::StrCat("the head, ", head, ", did not answer")));
  });
  link_->Ask(verb, std::move(body), std::move(user),
             [finish, limit](absl::StatusOr<nlohmann::json> answer) {
               limit->cancel();
               finish(std::move(answer));
             });
}

void HeadConnection::RenewInTime() {
  const absl::StatusOr<CertifiedHost> certified = ReadHostCertificate(identity_.certificate);
  const bool due = certified.ok() && Now() >= RenewalTime(*certified);
  if (due && connected() && !renewing_) {
    absl::StatusOr<HostRequest> request = MakeHostRequest(host_);
    if (request.ok()) {
      renewing_ = true;
      Ask("renew", {{"request", request->request}}, std::nullopt,
          [this, key = request->key](const absl::StatusOr<nlohmann::json>& answer) {
            renewing_ = false;
            Renewed(key, answer);
          });
    }
  }
  renew_.expires_after(kRenewLook);
  renew_.async_wait([this](std::error_code error) {
    if (!error) RenewInTime();
  });
}

void HeadConnection::Renewed(const std::string& key, const absl::StatusOr<nlohmann::json>& answer) {
  if (!answer.ok()) {
    return LogWarning(
        absl::StrCat("this host's certificate could not be renewed: ", answer.status().message()));
  }
  HostIdentity identity;
  identity.key = key;
  JsonFields fields(*answer, "answer");
  fields.Text("certificate", &identity.certificate, kMaxPem);
  fields.Text("authority", &identity.authority, kMaxPem);
  const absl::StatusOr<CertifiedHost> certified = ReadHostCertificate(identity.certificate);
  if (!fields.status().ok() || !certified.ok() || certified->host != host_) {
    return LogWarning(
        "the head has answered without a certificate that this host could use; it keeps the one it "
        "has");
  }
  // Only the host's certificate is new. Which authority the host trusts was decided when it joined.
  identity.authority = identity_.authority;
  const absl::StatusOr<TrustFolder> folder = TrustFolder::Open(folder_);
  const absl::Status kept =
      folder.ok() ? KeepIdentity(*folder, kOfHost, identity) : folder.status();
  if (!kept.ok()) return LogWarning(absl::StrCat("the new certificate: ", kept.message()));
  seen_ = SightOf(folder_);
  identity_ = std::move(identity);
  link_->Renew(identity_);
  LogInfo("this host's certificate was renewed");
}

}  // namespace hlaunch
