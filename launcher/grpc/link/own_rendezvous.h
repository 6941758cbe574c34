// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "launcher/job/spec/job_spec.h"
#include "rendezvous/failover/voters/job_voter.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/rpc/rendezvous_server.h"
#include "rendezvous/store/c10d/c10d_server.h"

namespace hlaunch {

// A rendezvous of one job in this process.
//
// Thread-safe.
class OwnRendezvous {
 public:
  // Starts it. Warns if this host carries fewer nodes than the job may have.
  //
  // With `self`, the agent of this process, the job outlives this rendezvous: its own agents keep
  // its record, see JobVoter. `on_lost` is called once another rendezvous leads, `on_places` when
  // the nodes that keep the record change, `on_led` as JobVoter's; none may block.
  //
  // Errors: as RendezvousServer::Start.
  static absl::StatusOr<std::unique_ptr<OwnRendezvous>> Start(
      const JobSpec& spec, const Trust& trust, ListeningSocket listening,
      std::optional<VoterMember> self = std::nullopt, std::function<void()> on_lost = nullptr,
      std::function<void()> on_places = nullptr,
      std::function<void(const VoterMembers&)> on_led = nullptr);
  ~OwnRendezvous() {
    Shutdown();
    voter_.reset();  // It may end the server's streams until then.
  }

  // Lets every node hear its last directive, then stops the server.
  void Shutdown();

  // The job as it began here.
  JobRendezvous& job() { return voter_ ? *founded_ : *job_; }
  // Whether the job is decided here; and the job that is, or was last, decided here.
  bool leads() const { return voter_ == nullptr || voter_->leads(); }
  std::shared_ptr<JobRendezvous> led_job();
  // Whether other nodes hold the job's record.
  bool outlived() const { return voter_ && voter_->Outlived(); }
  JobVoter* voter() { return voter_.get(); }  // Null if the job ends with this rendezvous.
  VoterMembers voters() const { return voter_ ? voter_->Places() : VoterMembers(); }
  // As JobVoter::TakenAt and Patience.
  Instant taken_at() const { return voter_ ? voter_->TakenAt() : Instant::min(); }
  Duration patience() const { return voter_ ? voter_->Patience() : Duration::max(); }
  uint16_t store_port() const { return store_port_; }
  // True if no round has begun and no node has connected except `own`, those of this process. A
  // round needs no more nodes than those it began with.
  bool alone(size_t own) const { return !formed_ && streams() <= own; }
  bool formed() const { return formed_; }  // A round has begun.
  // Whether this is, or was, the rendezvous of the job.
  bool has_job() const { return !alone(0); }

 private:
  OwnRendezvous() = default;
  size_t streams() const { return server_->open_streams(); }

  // Members are destroyed from the last to the first, and need this order.
  std::unique_ptr<C10dServer> store_;  // Null: the workers' store has a port of its own.
  uint16_t store_port_ = 0;
  std::atomic<bool> formed_ = false;  // A round has begun.
  std::optional<JobRendezvous> job_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<JobVoter> voter_;   // Used instead of these two, if set.
  JobRendezvous* founded_ = nullptr;  // The job that the voter began with.
  std::unique_ptr<RendezvousServer> server_;
  std::atomic<RendezvousServer*> serving_ = nullptr;  // `server_`, for its own threads.
};

}  // namespace hlaunch
