// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/observation.h"

#include <unistd.h>

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "launcher/text/environment.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"

namespace hlaunch {

namespace {

// The time after the grace to kill workers that do not end, and to tell the other nodes.
constexpr Duration kStopMargin = std::chrono::seconds(20);

// Returns in one line what a node does after an event; empty if the event does not change it.
struct Status {
  std::string operator()(const NodeJoined&) const { return "waiting for the first round"; }
  std::string operator()(const NodeWaiting& e) const { return e.reason; }
  std::string operator()(const JobRestarted& e) const {
    return absl::StrCat("restart ", e.restart_count);
  }
  std::string operator()(const RoundStarted& e) const {
    const Assignment& a = e.assignment;
    return absl::StrCat("round ", a.round, " runs: rank", e.nproc == 1 ? " " : "s ", a.first_rank,
                        e.nproc == 1 ? "" : absl::StrCat(" to ", a.first_rank + e.nproc - 1),
                        " of ", a.world_size);
  }
  std::string operator()(const WorkerStarted&) const { return ""; }
  std::string operator()(const WorkerEnded&) const { return ""; }
  std::string operator()(const WorkerStalled&) const { return ""; }
  std::string operator()(const LogValue&) const { return ""; }
  std::string operator()(const HealthChanged&) const { return ""; }
  std::string operator()(const SlowRanksFound&) const { return ""; }
  std::string operator()(const TimeLost&) const { return ""; }
  std::string operator()(const RoundStopped& e) const {
    return absl::StrCat("stopping the workers", e.reason.empty() ? "" : ": ", e.reason);
  }
  std::string operator()(const ContactChanged& e) const { return e.connected ? "" : e.detail; }
  std::string operator()(const NodeFinished& e) const {
    return absl::StrCat("finished with ", e.exit_code, e.reason.empty() ? "" : ": ", e.reason);
  }
};

}  // namespace

Observation::Observation(asio::io_context& loop, const OutputRelay& relay, const Options& options,
                         const std::string& directory, const std::string& job_id,
                         const std::string& host)
    : longest_stop_(options.worker.stop_grace + kStopMargin),
      manager_(loop, FindNotifyPlace(Environment::OfThisProcess(), ::getpid(), ::getppid())),
      doing_("looking for the rendezvous"),
      status_(doing_),
      metrics_(job_id, host),
      source_{job_id, host, -1} {
  if (!directory.empty()) StartLog(directory + "/events.jsonl");
  if (options.output.metrics) StartServer(loop, relay, options);
  // The process is ready now: all checks that could refuse the start are done, and the service
  // manager may start other nodes only after this one.
  asio::post(loop, [this] { manager_.Ready(status_); });
}

// Returns why the node is not ready; empty if its workers run.
std::string Observation::NotReady() const {
  return metrics_.state() == std::string("running") ? "" : status_;
}

void Observation::StartLog(const std::string& path) {
  auto log = EventLog::Open(path);
  if (log.ok()) {
    log_ = std::move(log).value();
  } else {
    LogWarning(absl::StrCat(log.status().message(), "; the job goes on without"));
  }
}

void Observation::StartServer(asio::io_context& loop, const OutputRelay& relay,
                              const Options& options) {
  auto server = MetricsServer::Start(
      loop, options.output.metrics->host, options.output.metrics->port,
      {[this, &relay] { return metrics_.Text(relay.bytes_read(), MonotonicClock().Now()); },
       [this] { return NotReady(); }});
  if (server.ok()) {
    server_ = std::move(server).value();
    LogInfo(absl::StrCat("metrics are at http://",
                         HostPort(options.output.metrics->host, server_->port()), "/metrics"));
  } else {
    LogWarning(absl::StrCat(server.status().message(), "; the job goes on without"));
  }
}

void Observation::Tell(const NodeEvent& event) {
  const Instant now = MonotonicClock().Now();
  metrics_.Count(event, now);
  goodput_.Count(event, now);
  if (const std::string status = std::visit(Status(), event); !status.empty()) {
    status_ = status;
    if (!std::holds_alternative<ContactChanged>(event)) doing_ = status;
    if (std::holds_alternative<NodeFinished>(event)) {
      manager_.Stopping(status_, longest_stop_);
    } else {
      manager_.Status(status_);
    }
  }
  if (const auto* contact = std::get_if<ContactChanged>(&event); contact && contact->connected) {
    status_ = doing_;
    manager_.Status(status_);
  }
  if (std::holds_alternative<RoundStopped>(event)) manager_.MayTake(longest_stop_);
  Pass(event);
}

// Passes the event to the event log and the hook.
void Observation::Pass(const NodeEvent& event) {
  if (const auto* started = std::get_if<RoundStarted>(&event)) {
    source_.node_rank = started->assignment.node_rank;
  }
  const bool told = choice_ && choice_->Tells(event);
  if (log_ == nullptr && !told) return;
  const std::string line = EventLine(event, source_, EventTimeNow());
  if (told) hook_->Send(line);
  if (log_ != nullptr) log_->Write(line);
}

void Observation::TellOthers(EventHook* hook, bool speaks_first) {
  if (!hook->any()) return;
  hook_ = hook;
  choice_.emplace(speaks_first);
}

}  // namespace hlaunch
