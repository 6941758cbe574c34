// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "rendezvous/net/port/greeting_relay.h"
#include "rendezvous/net/port/peer_jobs.h"
#include "rendezvous/net/trust/trust.h"

// Only this file makes gRPC channels and sets up servers, so all of them have the same credentials,
// limits and keepalive. The logs of gRPC and protobuf go to hlaunch's log as debug lines.
//
// With a Trust both ends speak TLS and show certificates, or speak in clear. With a token, both
// show in a greeting before it that they hold the token; else each accepts only a peer that has one
// of the site's certificates. Without a Trust they speak in clear with any peer.

namespace hlaunch {

// A client's line to one address: a channel without name lookup and without proxy, on a connection
// that no other channel shares. It also knows why there is no connection. Connects with the first
// call.
//
// Thread-safe.
class Line {
 public:
  // `host` is the user's name for the server; empty means `literal`. If `trust` was made of files,
  // they are read anew, and the server's certificate must name `host`.
  Line(absl::string_view literal, uint16_t port, const Trust& trust, const std::string& host = "");

  // The channel may outlive the line.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  // Returns what a call's status means. gRPC reports a connection that was refused because of its
  // token in the same way as one that broke.
  //
  // Errors:
  //   PermissionDenied - the two ends do not hold the same token, do not trust the same
  //       certificates, or do not both encrypt; the message says which end has what, and what to
  //       do.
  //   any other - the call's own status.
  absl::Status StatusOfCall(const grpc::Status& status) const;

  // Describes for people what is wrong with the line, given the status of a call without an answer.
  std::string TroubleOf(const grpc::Status& status) const;

 private:
  absl::Status TroubleOfRelay() const;

  Trust trust_;
  // Used by a line with a token; shared with the channel. `unable_` says why it is null.
  std::shared_ptr<GreetingRelay> relay_;
  absl::Status unable_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Makes the credentials that protect a server's connections. They must outlive the server. After a
// change of the trust's files, new connections are judged by what the files hold then.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Trust& trust);

// Sets limits and keepalive.
void PrepareServer(grpc::ServerBuilder* builder);

// Return the address literal and the port in ServerContext::peer(), such as "ipv6:%5B::1%5D:52082";
// empty and 0 if it has none.
std::string PeerAddress(absl::string_view peer);
uint16_t PeerPortOf(absl::string_view peer);

// Checks whether the peer of this call may speak of job `job_id`. A peer that has proved with a
// job's own token that it belongs to that job, by its certificate (see UriOfJob) or in its greeting
// (`peers`; null: no peer has to greet), may speak of that job only; others may speak of every job.
// No other function checks this, and every rpc must. Logs a refusal, but not too often.
//
// Errors:
//   PermissionDenied - the peer may not; the message names both jobs.
absl::Status CheckPeerMayUseJob(const grpc::ServerContextBase& context, const PeerJobs* peers,
                                absl::string_view job_id);

// Returns the same verdict without logging it.
bool PeerMayUseJob(const grpc::ServerContextBase& context, const PeerJobs* peers,
                   absl::string_view job_id);

}  // namespace hlaunch
