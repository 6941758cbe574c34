// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "grpcpp/completion_queue.h"
#include "hlaunch/v1/rendezvous.pb.h"
#include "proto/base/mutex.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// Sends messages between voters, each in a call of its own. A message that cannot be delivered
// within a second is lost, and the next one goes over a new connection. A message is also lost if
// too many are on the way to the same address. Also asks for records that messages do not carry.
//
// It owns every call and every connection until the call has ended, and ends them in a thread of
// its own, "voter-calls": gRPC 1.51 corrupts memory where the last user of a channel is a
// callback of a call on it.
//
// Thread-safe; Send never blocks. Destruction cancels the calls that are under way.
class VoterSender {
 public:
  explicit VoterSender(Trust trust) : trust_(std::move(trust)) {}
  ~VoterSender();

  void Send(const VoterMember& to, v1::PassWitnessMessageRequest message);

  // Asks for a record. Calls `take` with it, from the thread that ends calls and with no lock held;
  // with an error if there is no answer within three seconds, or too many calls are under way.
  // Then `take` may be called at once, by this thread. It must not block.
  using TakeRecord = std::function<void(absl::StatusOr<std::string> record)>;
  void Ask(const VoterMember& from, const v1::GetWitnessRecordRequest& question, TakeRecord take);

 private:
  struct Way;
  struct Call;
  struct Message;
  struct Question;
  using Ways = std::vector<std::shared_ptr<Way>>;

  bool StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<Way> Begin(const VoterMember& to, Ways* former)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndCalls();

  const Trust trust_;
  grpc::CompletionQueue queue_;  // Each of its events is the end of a call.
  Mutex mu_;
  // By address. Shared with the calls that are under way.
  std::map<std::string, std::shared_ptr<Way>> ways_ ABSL_GUARDED_BY(mu_);
  std::set<Call*> under_way_ ABSL_GUARDED_BY(mu_);  // Owned by the thread, which ends them.
  std::thread thread_ ABSL_GUARDED_BY(mu_);         // Begins with the first call.
};

}  // namespace hlaunch
