// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/grpc/link/host_client.h"
#include "launcher/grpc/link/own_rendezvous.h"
#include "launcher/job/spec/hosting.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/node/node_link.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// The link of the node that hosts. It joins by plain calls, and over the network once another node
// leads.
class HostLink final : public NodeLink {
 public:
  // `address`: where other hosts reach this host; unset: they reach it only by the endpoint.
  static absl::StatusOr<std::unique_ptr<NodeLink>> Make(const JobSpec& spec, const Trust& trust,
                                                        HostingVerdict verdict,
                                                        ListeningSocket listening,
                                                        const std::optional<std::string>& address);

  ~HostLink() override;

  RendezvousClient& client() override { return *client_; }
  bool hosts() const override { return own_->leads(); }
  std::optional<JobStatus> Status() const override { return StatusOf(own_->led_job()); }
  std::string Belief(Duration waited) const override;
  std::string meeting_places() const override;
  uint16_t shared_store_port() const override { return own_->store_port(); }
  bool port_was_taken() const override { return false; }
  void End(const Outcome& outcome) override { own_->led_job()->End(outcome); }
  std::vector<std::string> AwaitOthers(Instant deadline) override;
  bool outlived() const override { return own_->outlived(); }
  TellDeath Die(const NodeInfo& info, const std::string& why) override;
  // Empty while no other node could take over.
  DeathReport death_report(const NodeInfo& info) const override;
  void Complete(NodeInfo& info) override;
  void WatchDeathReport(std::function<void()> changed) override;

 private:
  HostLink(const JobSpec& spec, const Trust& trust, HostingVerdict verdict, uint16_t port)
      : spec_(spec), trust_(trust), verdict_(std::move(verdict)), port_(port) {}

  absl::Status Open(ListeningSocket listening, const std::optional<std::string>& address);

  // CallNobody ends the calls of the two below. The rendezvous calls those from its own threads.
  void CallNobody();
  void Lost();
  void Led(const VoterMembers& places);
  void TellDeathReportChanged();

  const JobSpec spec_;
  const Trust trust_;
  const HostingVerdict verdict_;
  const uint16_t port_;
  std::string own_address_;  // By which other hosts reach this host, if that is known.
  const Incarnation incarnation_ = NewIncarnation();
  std::optional<VoterMember> self_;  // Unset: the job ends with this node.
  Mutex mu_;
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> death_report_changed_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<OwnRendezvous> own_;
  HostClient* leaving_ ABSL_GUARDED_BY(mu_) = nullptr;  // client_, while it may be called.
  std::unique_ptr<RendezvousClient> client_;
};

}  // namespace hlaunch
