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

// Where a node meets the other nodes. A value.
struct NodeMeetingPlace {
  std::string store_host;  // The round's master store, or this node's proxy to it.
  uint16_t store_port = 0;
  int node_rank = 0;
};

// Exchanges messages between nodes of a round through the master store. Each node writes one key;
// the first node reads all of them and writes the whole, which the other nodes read. So each node
// needs two keys and two waits, however many nodes there are.
//
// Thread-safe; calls block. The first call connects to the store.
class NodeMeeting {
 public:
  struct Events {
    // Called every two seconds while a call waits for other nodes or for the store: a status that
    // is not OK ends the call with it.
    std::function<absl::Status()> may_wait;
    // Called from time to time while some nodes have not sent anything. One line.
    std::function<void(std::string)> on_waiting;
  };

  NodeMeeting(NodeMeetingPlace place, Events events);
  ~NodeMeeting();

  // Sends `own` under `name` and returns the messages of all `nodes` under that name, one after the
  // other. `nodes` are ascending and include this node. `where` is for people: "MPI_Init".
  //
  // Errors: as Await; InvalidArgument - the first node's message is damaged.
  absl::StatusOr<std::string> Meet(const std::string& name, const std::vector<int>& nodes,
                                   absl::string_view own, absl::string_view where);

  // Removes what Meet left under `name`. Call it on the first node, once all nodes have read it:
  // that is certain when they have met under another name.
  void Forget(const std::string& name);

  // Waits for `key` and returns its value.
  //
  // Errors: as Store; as may_wait; Unavailable - the store has not answered for half a minute.
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
  std::unique_ptr<C10dClient> store_ ABSL_GUARDED_BY(mu_);  // Never replaced once it is set.
};

}  // namespace hlaunch
