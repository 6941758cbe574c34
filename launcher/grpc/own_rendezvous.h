// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "launcher/job/job_spec.h"
#include "rendezvous/c10d/c10d_server.h"
#include "rendezvous/grpc/rendezvous_server.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/listening/listen.h"
#include "rendezvous/trust/trust.h"
#include "rendezvous/witnesses/job_witness.h"

namespace hlaunch {

// A rendezvous of one job in this process.
//
// Thread-safe.
class OwnRendezvous {
 public:
  // Says aloud if this host carries fewer nodes than the job may have.
  //
  // Errors: as RendezvousServer::Start.
  // With `self`, the agent of this process, the job outlives this rendezvous: its own agents keep
  // its record, see JobWitness. `on_lost` is called once another one leads, `on_places` once others
  // keep the record; neither may block.
  static absl::StatusOr<std::unique_ptr<OwnRendezvous>> Start(
      const JobSpec& spec, const Trust& trust, ListeningSocket listening,
      std::optional<WitnessMember> self = std::nullopt, std::function<void()> on_lost = nullptr,
      std::function<void()> on_places = nullptr);
  ~OwnRendezvous() {
    Shutdown();
    witness_.reset();  // It may end the server's streams until then.
  }

  // Lets every node hear its last directive.
  void Shutdown();

  // The one that began here.
  JobRendezvous& job() { return witness_ ? *founded_ : *job_; }
  // Whether the job is decided here; the one that is; and who keeps its record.
  bool leads() const { return witness_ == nullptr || witness_->leads(); }
  std::shared_ptr<JobRendezvous> led_job();
  // Whether other nodes hold the job's record.
  bool outlived() const { return witness_ && witness_->Outlived(); }
  WitnessMembers witnesses() const { return witness_ ? witness_->Places() : WitnessMembers(); }
  uint16_t store_port() const { return store_port_; }
  // Whether nodes have come but for `own`, those of this process. A round needs no more of them.
  bool alone(size_t own) const { return !formed_ && streams() <= own; }
  bool formed() const { return formed_; }  // A round has begun.
  // Whether it is, or was, the job's.
  bool has_job() const { return !alone(0); }

 private:
  OwnRendezvous() = default;
  size_t streams() const { return server_->open_streams(); }

  // In the order in which they may be destroyed last to first.
  std::unique_ptr<C10dServer> store_;  // Null: workers get a port of their own.
  uint16_t store_port_ = 0;
  std::atomic<bool> formed_ = false;  // A round.
  std::optional<JobRendezvous> job_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<JobWitness> witness_;  // In the place of these two, if there is one.
  JobRendezvous* founded_ = nullptr;     // Its first job.
  std::unique_ptr<RendezvousServer> server_;
  std::atomic<RendezvousServer*> serving_ = nullptr;  // `server_`, for its own threads.
};

}  // namespace hlaunch
