// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/death_report.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launcher/grpc/link/link_facts.h"
#include "launcher/job/spec/credentials.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/environment.h"
#include "launcher/text/programs.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "proto/contract/ids.h"
#include "rendezvous/rpc/client/report_node_death.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {
namespace {

constexpr int kDeathReportWords = 7;  // argv[0], the word, host, port, job, node, incarnation.
constexpr Duration kDeathReportTime = std::chrono::seconds(4);

// The reverse of AllEndpoints. Requires: AllEndpoints wrote `text`, whose first port is `port`.
absl::StatusOr<RendezvousEndpoint> EndpointIn(const std::string& text, uint16_t port,
                                              const Trust& trust) {
  if (!absl::StrContains(text, ',')) return RendezvousEndpoint{text, port, trust, {}};
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<Endpoint> all, ParseEndpoints(text, port));
  const Endpoint first = all.front();
  all.erase(all.begin());
  return RendezvousEndpoint{first.host, first.port, trust, PlacesOf(all)};
}

}  // namespace

NodeLink::DeathReport DeathReportFor(const JobSpec& spec, const std::string& places, uint16_t port,
                                     const NodeInfo& info) {
  NodeLink::DeathReport death_report;
  // A program that was pushed to this host has no file. The keeper runs the same program then.
  const std::string path = PathOfThisProgram();
  death_report.argv = {::access(path.c_str(), X_OK) == 0 ? path : kThisProgram,
                       kDeathReportWord,
                       places,
                       absl::StrCat(port),
                       info.job_id,
                       info.node_id,
                       absl::StrCat(info.incarnation)};
  death_report.env = EnvironmentOf(spec.certificates, spec.tls);
  if (!spec.token.empty()) death_report.env.push_back(absl::StrCat(kEnvToken, "=", spec.token));
  return death_report;
}

NodeLink::TellDeath DeathOf(const VoterMembers& others, const Trust& trust, const NodeInfo& info,
                            const std::string& why) {
  if (others.empty()) return nullptr;
  const VoterAddress first = SplitAddress(others.front().address);
  RendezvousEndpoint places{first.literal, first.port, trust, {}};
  for (const VoterMember& other : Without(others, others.front().incarnation)) {
    const VoterAddress address = SplitAddress(other.address);
    places.others.emplace_back(address.literal, address.port);
  }
  return [places, job_id = info.job_id, node_id = info.node_id, incarnation = info.incarnation,
          why](Instant deadline) mutable {
    const absl::Status told = ReportNodeDeath(places, job_id, node_id, incarnation, why, deadline);
    if (!told.ok()) LogDebug(absl::StrCat("the death of this node: ", told.message()));
    // The next call begins with another one, since this one may have taken all the time.
    places.others.emplace_back(places.host, places.port);
    std::tie(places.host, places.port) = places.others.front();
    places.others.erase(places.others.begin());
    return told.ok() || absl::IsAborted(told);
  };
}

int SendDeathReport(int argc, char** argv) {
  const char* form = std::getenv(kEnvLogForm);
  if (form != nullptr) SetLogForm(form);
  int port = 0;
  Incarnation incarnation = 0;
  if (argc != kDeathReportWords || !absl::SimpleAtoi(argv[3], &port) ||
      !absl::SimpleAtoi(argv[6], &incarnation)) {
    LogError(absl::StrCat(kDeathReportWord, " is for hlaunch's own use; see hlaunch --help"));
    return kExitUsage;
  }
  const char* given = std::getenv(kEnvToken);
  const std::string token = given == nullptr ? "" : given;
  WipeFromEnvironment(kEnvToken);
  ::prctl(PR_SET_DUMPABLE, 0);
  const Environment environment = Environment::OfThisProcess();
  const absl::StatusOr<Trust> trust =
      Trust::Of(token, CertificateFilesIn(environment), TlsIn(environment));
  if (!trust.ok()) {
    LogError(trust.status().message());
    return kExitUsage;
  }
  const absl::StatusOr<RendezvousEndpoint> endpoint =
      EndpointIn(argv[2], static_cast<uint16_t>(port), *trust);
  if (!endpoint.ok()) {
    LogError(endpoint.status().message());
    return kExitUsage;
  }
  const char* reason = std::getenv(kEnvDeathReportReason);
  const absl::Status told = ReportNodeDeath(*endpoint, argv[4], argv[5], incarnation,
                                            reason == nullptr ? "its agent was killed" : reason,
                                            MonotonicClock().Now() + kDeathReportTime);
  if (told.ok()) return kExitOk;
  LogWarning(absl::StrCat("cannot tell the rendezvous that this node is gone: ", told.message()));
  return kExitRendezvousLost;
}

}  // namespace hlaunch
