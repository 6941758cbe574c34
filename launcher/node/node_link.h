// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/job/job_spec.h"
#include "launcher/options/options.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// What ties this node to its job's rendezvous; hosts the rendezvous where this node does.
//
// Belongs to the main thread. Destruction ends the conversation after its last word was sent.
class NodeLink {
 public:
  virtual ~NodeLink() = default;

  // Lives as long as the link.
  virtual RendezvousClient& client() = 0;

  // Whether the job's rendezvous lives in this process; may become true while the nodes gather.
  virtual bool hosts() const = 0;

  // What this node believes of where the rendezvous is, after `waited` without meeting any other
  // node, in one line; empty if there is nothing to say. Blocks for a fraction of a second.
  virtual std::string Belief(Duration waited) const = 0;

  // The port on which the rendezvous' own listener serves the master store too; 0 if it does not.
  virtual uint16_t shared_store_port() const = 0;

  // Whether this host owns the endpoint and its port was taken: by another agent of the job, or,
  // if nobody answers there, by another program.
  virtual bool port_was_taken() const = 0;

  // Ends the job for all nodes. Nothing unless hosts().
  virtual void End(const Outcome& outcome) = 0;

  // Waits until all other live nodes have heard the outcome, or until `deadline`; returns the
  // hosts that have not. Empty unless hosts().
  virtual std::vector<std::string> AwaitOthers(Instant deadline) = 0;

  // Whether other nodes hold the job's record, so that it can go on without this one, which hosts.
  virtual bool outlived() const { return false; }

  // Ends what is hosted here and then tells those nodes that this one is dead, as its keeper would:
  // one of them leads at once. The last call. Requires: no worker lives here.
  virtual void Die(const NodeInfo& /*info*/, const std::string& /*why*/) {}

  // Where the job stands, if its rendezvous lives in this process. Any thread may ask.
  virtual std::optional<JobStatus> Status() const { return std::nullopt; }

  // The command that reports this node's death if its agent is killed; empty if nobody would be
  // left to hear it. Secrets are in `env`, never in `argv`.
  struct Obituary {
    std::vector<std::string> argv;
    std::vector<std::string> env;
  };
  virtual Obituary obituary(const NodeInfo& info) const = 0;

  // Completes what this node says of itself. Before it joins.
  virtual void Complete(NodeInfo& /*info*/) {}

  // `changed` is called from now on, from any thread, when obituary() would be another one. Once,
  // before this node joins.
  virtual void WatchObituary(std::function<void()> /*changed*/) {}
};

// Makes the link of a job with several nodes; waits for a name no longer than it takes to hear
// Ctrl-C.
//
// A name that does not resolve is no error here: the client asks again until its join time-out,
// and this node hosts once the name turns out to be its own.
// Nor is a port that is taken: whoever holds it is asked to take this node in.
//
// Errors:
//   InvalidArgument - no address of this host to listen on, or none that others could reach.
//   Unauthenticated - the token or the certificates of this node cannot be used.
//   AlreadyExists - nobody named a port, and all that were tried are taken.
//   PermissionDenied - the endpoint's port needs a privilege.
//   ResourceExhausted - out of descriptors or threads.
//   Internal - the kernel does not tell this host's addresses, or gRPC refuses to serve.
using ConnectFn =
    std::function<absl::StatusOr<std::unique_ptr<NodeLink>>(const JobSpec&, const Options&)>;

// What the rendezvous of `spec`'s job is told when it is made.
JobRules RulesOf(const JobSpec& spec);

// The link of a job with a single node: all in this process, no socket.
std::unique_ptr<NodeLink> MakeLocalLink(const JobSpec& spec);

}  // namespace hlaunch
