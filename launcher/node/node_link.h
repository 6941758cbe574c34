// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// Connects this node to its job's rendezvous. Hosts the rendezvous if this node is its host.
//
// Belongs to the main thread. The destructor sends what is left to send before it closes the
// connection.
class NodeLink {
 public:
  virtual ~NodeLink() = default;

  // Lives as long as the link.
  virtual RendezvousClient& client() = 0;

  // Whether the job's rendezvous is in this process. May become true while the nodes gather.
  virtual bool hosts() const = 0;

  // Explains in one line what may be wrong with the rendezvous if this node has met no other node
  // for `waited`; empty if there is nothing to say. Blocks for a fraction of a second.
  virtual std::string Belief(Duration waited) const = 0;

  // The port on which the listener of the rendezvous also serves the master store; 0 if it does
  // not.
  virtual uint16_t shared_store_port() const = 0;

  // Whether this host owns the endpoint but its port was taken. Another agent of the job holds the
  // port, or, if no rendezvous answers there, another program.
  virtual bool port_was_taken() const = 0;

  // Ends the job for all nodes. No effect unless hosts().
  virtual void End(const Outcome& outcome) = 0;

  // Waits until all other live nodes have heard the outcome, at most until `deadline`. Returns the
  // hosts that have not heard it; empty unless hosts().
  virtual std::vector<std::string> AwaitOthers(Instant deadline) = 0;

  // Whether a round of the job may have begun, as far as this node was told.
  virtual bool round_begun() const { return true; }

  // Whether other nodes hold the job's record, so that the job can continue without this node,
  // which hosts.
  virtual bool outlived() const { return false; }

  // Tells other nodes until `deadline` that this node is dead, as its keeper would. Returns true
  // once one that leads has heard it. May be called again, and after the end of the link.
  using TellDeath = std::function<bool(Instant deadline)>;
  // Stops hosting and keeping the job's record, so that those who hear of the death may go on as if
  // this process were gone. Returns what tells them; null if nobody is known who could hear it.
  // Must be the last call. Requires: no worker lives here.
  virtual TellDeath Die(const NodeInfo& /*info*/, const std::string& /*why*/) { return nullptr; }

  // The status of the job if its rendezvous is in this process. Any thread may call this.
  virtual std::optional<JobStatus> Status() const { return std::nullopt; }

  // Where commands of this host reach the rendezvous, as HOST:PORT, several with commas between
  // them: it may be elsewhere than at first. Empty: at the job's endpoint, if it has one.
  virtual std::string meeting_places() const { return ""; }

  // Asks the ranks of a job that is decided in this process. `done` is called once, from any
  // thread, unless this returns an error. Requires: the link outlives the question.
  //
  // Errors:
  //   FailedPrecondition - the job's rendezvous answers such questions.
  //   ResourceExhausted - too many questions are open.
  virtual absl::Status Ask(const RankQuestion& /*question*/,
                           std::function<void(JobAnswer)> /*done*/) {
    return absl::FailedPreconditionError("the job's rendezvous answers such questions");
  }

  // The command that reports this node's death if its agent is killed; empty if no other node could
  // hear it. Secrets are in `env`, never in `argv`.
  struct DeathReport {
    std::vector<std::string> argv;
    std::vector<std::string> env;
  };
  virtual DeathReport death_report(const NodeInfo& info) const = 0;

  // Completes what this node tells about itself. Call before the node joins.
  virtual void Complete(NodeInfo& /*info*/) {}

  // From now on calls `changed`, from any thread, when the result of death_report() changes. Call
  // once, before this node joins.
  virtual void WatchDeathReport(std::function<void()> /*changed*/) {}
};

// Makes the link of a job with several nodes. Ctrl-C ends the wait for the resolver.
//
// A name that does not resolve is not an error here: the client asks again until its join timeout,
// and this node hosts once the name turns out to be its own. A port that is taken is not an error
// either: this node then tries to join the process that holds the port.
//
// Errors:
//   InvalidArgument - this host has no address to listen on, or none that other hosts can reach.
//   Unauthenticated - the token or the certificates of this node cannot be used.
//   AlreadyExists - the user named no port, and all ports that were tried are taken.
//   PermissionDenied - the endpoint's port needs a privilege.
//   ResourceExhausted - this process is out of descriptors or threads.
//   Internal - the kernel does not list this host's addresses, or gRPC refuses to serve.
using ConnectFn =
    std::function<absl::StatusOr<std::unique_ptr<NodeLink>>(const JobSpec&, const Options&)>;

// Returns the rules with which the rendezvous of the job of `spec` is made.
JobRules RulesOf(const JobSpec& spec);

// Makes the link of a job with one node. All of it is in this process, without a socket.
std::unique_ptr<NodeLink> MakeLocalLink(const JobSpec& spec);

}  // namespace hlaunch
