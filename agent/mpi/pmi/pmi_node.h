// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/mpi/pmi/pmi_line.h"
#include "agent/mpi/serve/mpi_ranks.h"
#include "agent/mpi/serve/node_message.h"
#include "agent/workers/worker/spawn_request.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// The place of this node's ranks in their round. A value.
struct PmiPlace {
  std::string kvs_name;  // New for every round; without blanks. All nodes use node rank 0's.
  Rank first_rank = 0;
  int nproc = 1;
  int world_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
  bool certain = false;  // The program is certainly an MPI program.
  // The number of each worker's program, by local rank; empty if all run the same one.
  std::vector<int> programs = {};
  std::vector<PmiPair> given = {};  // Key-value pairs that ranks find set from the beginning.
  std::string name = {};            // "spawn 1", for a world that was spawned.
  bool any_user = false;            // Processes of all users are heard at its port.
};

// What to do in response to an event. A value.
struct PmiStep {
  std::vector<std::pair<int, std::string>> answers;  // To local ranks, in this order.
  std::vector<NodeMessage> messages;                 // To the other nodes, in this order.
  std::vector<int> closed;                           // Local ranks that are no longer served.
  std::vector<MpiFailure> failures;
  std::vector<std::string> warnings;  // For people, one line each.
  // What local ranks ask to start; each rank waits for Spawned.
  std::vector<std::pair<int, SpawnRequest>> spawns;
};

// The PMI-1 server of one node in one round: requests and answers of the ranks, their key-value
// space and their barriers. It has no descriptor and no clock: it gets bytes and messages and
// returns answers and messages.
//
// A barrier opens once all ranks of this node are in it. With several nodes, the messages of all
// nodes have to come as well. Belongs to one thread.
class PmiNode {
 public:
  explicit PmiNode(PmiPlace place);

  // Takes the bytes that `local_rank` has sent.
  PmiStep Take(int local_rank, absl::string_view bytes);

  // Takes the messages of all nodes that answer this node's oldest unanswered message.
  PmiStep TakeMessages(const NodeMessages& all);

  // The request of `local_rank` was started, or failed with `started`.
  PmiStep Spawned(int local_rank, const absl::Status& started);

  // `local_rank` has exited with 0, and hlaunch had not stopped it.
  PmiStep Exited(int local_rank);

  // Describes in one line which ranks of this node are waited for; empty if none is.
  std::string Awaited() const { return ranks_.Awaited(); }

  // True if a rank of this node has called MPI_Init.
  bool used() const { return ranks_.used(); }
  MpiState state(int local_rank) const { return ranks_.state(local_rank); }

 private:
  struct Session {
    PmiReader reader;
    std::deque<PmiRequest> requests;    // Not answered yet: the rank waits for others.
    std::optional<SpawnRequest> spawn;  // The spawn request, until all its blocks have come.
    int spawning = 0;                   // The number of new processes that it waits for.
    absl::Status refused;               // Why `spawn` is not possible.
  };

  Session& At(int local_rank) { return sessions_[static_cast<size_t>(local_rank)]; }
  bool alone() const { return place_.num_nodes == 1; }

  void Go(int local_rank, PmiStep& step);
  bool Answer(int local_rank, const PmiRequest& request, PmiStep& step);
  std::string Init(int local_rank, const PmiRequest& request, PmiStep& step);
  std::string Get(const PmiRequest& request) const;
  std::string Put(const PmiRequest& request);
  std::string NameService(const PmiRequest& request);
  void Spawn(int local_rank, const PmiRequest& block, PmiStep& step);
  void Abort(int local_rank, const PmiRequest& request, PmiStep& step);
  void EnterBarrier(int local_rank, PmiStep& step);
  void OpenBarrier(PmiStep& step);
  bool Keep(std::string key, std::string value);
  void Hello(std::string absent, PmiStep& step);
  void Close(int local_rank, absl::string_view why, PmiStep& step);

  const PmiPlace place_;
  std::string kvs_name_;  // Empty until it is known.
  std::string mapping_;   // Empty until kvs_name_ is known.
  MpiRanks ranks_;
  std::vector<Session> sessions_;
  absl::flat_hash_map<std::string, std::string> values_;
  size_t bytes_ = 0;                          // The size of values_.
  std::vector<PmiPair> fresh_;                // What this node put since its last message.
  std::map<std::string, std::string> ports_;  // The published ports.
  bool said_hello_ = false;
};

// The number in the first request of a client that came by port, which has to be its PMI_ID; unset
// if this is another request. And the answer to it. Pure.
std::optional<int> PmiIdIn(const PmiRequest& request);
std::string WelcomeOfPmi(int world_size, Rank rank);

}  // namespace hlaunch
