// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/grpc/link/endpoint_standby.h"
#include "launcher/grpc/link/endpoint_watch.h"
#include "launcher/grpc/link/own_rendezvous.h"
#include "launcher/job/spec/hosting.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/node/node_link.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/failover/voters/job_voter.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/rpc/client/grpc_rendezvous_client.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"
#include "rendezvous/rpc/rendezvous_server.h"
#include "rendezvous/voter/group.h"
#include "rendezvous/voter/voter.h"

namespace hlaunch {

// The link of a node that joins where the endpoint leads. The endpoint may lead to this host: this
// node offers to host, or the name turns out to be its own. Then a rendezvous listens in this
// process too; it gets no nodes if another node hosts. So there is one rendezvous, whatever each
// node believes. If the port is taken, this node listens once it is free.
class JoinLink final : public NodeLink {
 public:
  JoinLink(const JobSpec& spec, const Trust& trust, HostingVerdict verdict,
           std::shared_ptr<Lookup> lookup, bool port_was_taken);

  ~JoinLink() override { Stop(); }

  RendezvousClient& client() override { return *client_; }
  bool hosts() const override { return LedHere() != nullptr; }
  std::optional<JobStatus> Status() const override { return StatusOf(LedHere()); }
  uint16_t shared_store_port() const override { return 0; }
  bool port_was_taken() const override;

  std::string Belief(Duration waited) const override;

  void End(const Outcome& outcome) override;
  std::vector<std::string> AwaitOthers(Instant deadline) override;
  // The order to run a round comes with the voters.
  bool round_begun() const override;
  bool outlived() const override;
  TellDeath Die(const NodeInfo& info, const std::string& why) override;
  std::string meeting_places() const override;
  DeathReport death_report(const NodeInfo& info) const override;
  void Complete(NodeInfo& info) override;
  void WatchDeathReport(std::function<void()> changed) override;

 private:
  void Stop();

  // Each is null if there is none, stays once it is set, and outlives the client.
  JobVoter* Voter() const;
  OwnRendezvous* Own() const;

  // Null if the voter does not lead or there is none.
  JobVoter* LeadingVoter() const;

  // The job if it is decided here, else null.
  std::shared_ptr<JobRendezvous> LedHere() const;

  // The client calls this from its thread.
  void Voters(const JobPolicy& policy, const VoterMembers& voters);

  absl::Status BecomeVoter(const JobPolicy& policy, const VoterMember& self);

  // Serves it at the port that this node has told. A voter of this node's own rendezvous is served
  // at the endpoint, too, but the next leader knows only what the node has told.
  absl::Status ServeVoter(JobVoter& voter);

  void EndVoterStreams(const absl::Status& why);

  // The voter calls this from its thread.
  void Led(const VoterMembers& places);

  // The client calls this and WayHome from its thread. The address of a name may change: it
  // resolves late, or a virtual address moves here.
  void Reconsider(const Resolved& found);

  // The owner of a port that is taken may be about to end, as the agent of a host whose keeper was
  // killed: nobody would listen at the endpoint then, and no node could come any more.
  void WatchEndpointLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Returns true if there is nothing more to look for. The watch calls it from its thread.
  bool LookAtEndpoint();

  // A taken port is no error: another agent of this host may host, or another program may use the
  // port while the endpoint leads elsewhere.
  void Listen(const HostingVerdict& verdict);

  absl::StatusOr<std::unique_ptr<OwnRendezvous>> Open(const HostingVerdict& verdict);

  // Returns an address of this rendezvous if nodes reached it but this node did not. The cause is
  // most often a NAT that does not route its own traffic back.
  std::optional<std::string> WayHome() const;

  const JobSpec spec_;
  const bool port_was_taken_;
  const RendezvousEndpoint endpoint_;
  mutable Mutex mu_;
  HostingVerdict verdict_ ABSL_GUARDED_BY(mu_);  // From what is known now.
  Resolved resolved_ ABSL_GUARDED_BY(mu_) =
      absl::UnavailableError("no name server has answered yet");
  std::unique_ptr<OwnRendezvous> own_ ABSL_GUARDED_BY(mu_);
  // The state as a voter. The socket belongs to the client's thread once that runs.
  const Incarnation incarnation_ = NewIncarnation();
  uint16_t voter_port_ = 0;
  std::optional<ListeningSocket> voter_socket_;
  VoterMembers voters_ ABSL_GUARDED_BY(mu_);              // The job's voters, as last reported.
  std::optional<JobPolicy> policy_ ABSL_GUARDED_BY(mu_);  // As last reported with them.
  std::function<void()> death_report_changed_ ABSL_GUARDED_BY(mu_);
  GrpcRendezvousClient* turning_ ABSL_GUARDED_BY(mu_) =
      nullptr;  // client_, while it may be called.
  std::unique_ptr<JobVoter> voter_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<RendezvousServer> voter_server_ ABSL_GUARDED_BY(mu_);
  std::atomic<RendezvousServer*> serving_ = nullptr;  // voter_server_, for its own threads.
  EndpointStandby standby_;                           // For the watch's thread while there is one.
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<EndpointWatch> watch_ ABSL_GUARDED_BY(mu_);
  std::optional<GrpcRendezvousClient> client_;  // Last: it calls this object until it is gone.
};

}  // namespace hlaunch
