// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "etcd/etcd.grpc.pb.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// One member of an etcd cluster.
struct EtcdMember {
  std::string host;  // A name or a literal without brackets.
  uint16_t port = 2379;
};

// An etcd cluster, and the credentials for it. A value.
struct EtcdCluster {
  std::vector<EtcdMember> members;  // Tried in turn; one is enough to reach the cluster.
  bool tls = false;
  // In PEM. If empty: the machine's authorities, and no certificate of our own.
  std::string authority, certificate, key;
  std::string user, password;  // Empty: none.
};

// For people: "etcd at a:2379, b:2379".
std::string Words(const EtcdCluster& cluster);

// Calls an etcd cluster, at one member after another until one answers.
//
// Thread-safe.
class EtcdClient {
 public:
  // The stubs of one member. The `context` of a Call already has its deadline and metadata.
  struct Member {
    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    std::unique_ptr<etcdserverpb::Lease::Stub> lease;
    std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  };
  using Call = std::function<grpc::Status(const Member& member, grpc::ClientContext* context)>;

  explicit EtcdClient(EtcdCluster cluster);

  // Repeats `call` until a member answers or until `deadline`. etcd may have done a call that got
  // no answer, so the call must be safe to repeat; `unanswered` counts such calls.
  //
  // Errors, which name the cluster:
  //   Unavailable - no member answered in time.
  //   ResourceExhausted - the cluster is out of space, or has too many requests.
  //   PermissionDenied - the user has no right to this, or is unknown.
  //   others - as etcd says; never Aborted.
  absl::Status Try(Instant deadline, const Call& call, int* unanswered = nullptr);

  const std::string& words() const { return words_; }

 private:
  std::shared_ptr<Member> MemberNow(size_t* index);
  void PassOver(size_t index);
  Instant EndOfAttempt(Instant deadline) const;
  grpc::Status TryOnce(const Member& member, Instant deadline, const Call& call);
  grpc::Status Authenticate(const Member& member, Instant deadline);
  absl::Status InWords(const grpc::Status& status) const;

  const EtcdCluster cluster_;
  const std::string words_;
  Mutex mu_;
  size_t current_ ABSL_GUARDED_BY(mu_) = 0;
  // In the order of cluster_.members; null if there is no channel yet. Shared with calls that are
  // under way.
  std::vector<std::shared_ptr<Member>> members_ ABSL_GUARDED_BY(mu_);
  std::vector<size_t> turns_ ABSL_GUARDED_BY(mu_);  // Connections made to each so far.
  std::string token_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
