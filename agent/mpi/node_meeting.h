// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/mutex.h"

namespace hlaunch {

class C10dClient;

// Where a node meets the others. A value.
struct NodeMeetingPlace {
  std::string store_host;  // Of the round's master store, or of this node's way to it.
  uint16_t store_port = 0;
  int node_rank = 0;
};

// How nodes of a round give each other what they have to say, over the master store: each writes
// one key, the first of them reads them all and writes the whole, which the others read. That is
// two keys and two waits for a node, however many there are.
//
// Thread-safe; calls block. The store is connected to at the first call.
class NodeMeeting {
 public:
  struct Events {
    // Asked every two seconds while a call waits for others: what is not OK ends it so.
    std::function<absl::Status()> may_wait;
    // From time to time: some nodes have not said anything yet. One line.
    std::function<void(std::string)> on_waiting;
  };

  NodeMeeting(NodeMeetingPlace place, Events events);
  ~NodeMeeting();

  // Says `own` under `name` and returns what all of `nodes` have said there, one after the other.
  // `nodes` are ascending, and this one is among them. `where` is for people: "MPI_Init".
  //
  // Errors: as Store; as may_wait; InvalidArgument - what the first one said is damaged.
  absl::StatusOr<std::string> Meet(const std::string& name, const std::vector<int>& nodes,
                                   absl::string_view own, absl::string_view where);

  // Removes what Meet left under `name`. Call it at the first of the nodes, once they all have read
  // it: as soon as they have met under another name.
  void Forget(const std::string& name);

  // The value of `key`, once it is there.
  //
  // Errors: as Store; as may_wait.
  absl::StatusOr<std::string> Await(const std::string& key);

  // Errors: Unavailable - the store does not answer.
  absl::StatusOr<C10dClient*> Store();

 private:
  absl::Status Say(const std::string& key, absl::string_view text);
  absl::StatusOr<std::vector<std::string>> AwaitAll(const std::vector<std::string>& keys,
                                                    const std::vector<int>& nodes,
                                                    absl::string_view where);
  void Notice(const std::vector<std::string>& keys, const std::vector<int>& nodes,
              absl::string_view where, int64_t seconds);
  absl::Status SayWhole(const std::string& name, absl::string_view whole);
  absl::StatusOr<std::string> ReadWhole(const std::string& name);

  const NodeMeetingPlace place_;
  const Events events_;
  Mutex mu_;
  std::unique_ptr<C10dClient> store_ ABSL_GUARDED_BY(mu_);  // Stays once it is there.
};

}  // namespace hlaunch
