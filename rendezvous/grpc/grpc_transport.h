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
#include "rendezvous/front/greeting_relay.h"
#include "rendezvous/front/peer_jobs.h"
#include "rendezvous/trust/trust.h"

// The one place where gRPC channels and servers are made, so that all of them have the same
// credentials, limits and keepalive. gRPC's and protobuf's own logs go to hlaunch's, as debug
// lines.
//
// With a Trust both ends speak TLS and show certificates; only who holds the token, or one of the
// site's certificates, is believed. Or they speak in clear, after a greeting in which both show
// that they hold the token. Without a Trust they speak in clear to anybody.

namespace hlaunch {

// A client's line to one address: a channel without name lookup, without proxy, on a connection
// that it shares with no other; and what is known of why there is none. Connects with the first
// call.
//
// Thread-safe.
class Line {
 public:
  // `host` is what the user calls the other end: where `trust` is of files, they are read anew and
  // the server's certificate must name it; empty: `literal`.
  Line(absl::string_view literal, uint16_t port, const Trust& trust, const std::string& host = "");

  // May outlive the line.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  // What a call's status means: gRPC tells of a connection that was refused because of its token as
  // of one that broke.
  //
  // Errors:
  //   PermissionDenied - the two ends do not hold the same token, do not believe the same
  //       certificates, or do not both encrypt; the message says which end has what, and the way
  //       out.
  //   any other - as the call's.
  absl::Status StatusOfCall(const grpc::Status& status) const;

  // What is wrong with the line, by the status of a call that got no answer. For people only.
  std::string TroubleOf(const grpc::Status& status) const;

 private:
  absl::Status TroubleOfRelay() const;

  Trust trust_;
  // Of a line in clear with a token; shared with the channel. Why there is none.
  std::shared_ptr<GreetingRelay> relay_;
  absl::Status unable_;
  std::shared_ptr<grpc::Channel> channel_;
};

// What the servers' connections are protected with; it must outlive the server. A connection that
// comes after files have changed is judged by what they hold then.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Trust& trust);

// Sets limits and keepalive.
void PrepareServer(grpc::ServerBuilder* builder);

// The literal in ServerContext::peer(), such as "ipv6:%5B::1%5D:52082"; empty if it has none. The
// port; 0 if it has none.
std::string PeerAddress(absl::string_view peer);
uint16_t PeerPortOf(absl::string_view peer);

// Whether the other end of this call may speak of job `job_id`. One that has proved with a job's
// own token that it belongs to that job, by its certificate (see UriOfJob) or in its greeting
// (`peers`; null: nobody has to greet), may of that job alone, all others of every job. The one
// place that asks; every rpc must. A refusal is logged, not too often.
//
// Errors:
//   PermissionDenied - it may not; the message names both jobs.
absl::Status CheckPeerMayUseJob(const grpc::ServerContextBase& context, const PeerJobs* peers,
                                absl::string_view job_id);

// Whether it may, without a word.
bool PeerMayUseJob(const grpc::ServerContextBase& context, const PeerJobs* peers,
                   absl::string_view job_id);

}  // namespace hlaunch
