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
#include "agent/mpi/mpi_ranks.h"
#include "agent/mpi/node_message.h"
#include "agent/mpi/pmi_line.h"
#include "agent/worker/spawn_request.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// Where this node's ranks stand in their round. A value.
struct PmiPlace {
  std::string kvs_name;  // New for every round; without blanks. Node rank 0's is that of all.
  Rank first_rank = 0;
  int nproc = 1;
  int world_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
  bool certain = false;  // The program is one of MPI for certain.
  // The number of each worker's program, by local rank; empty: all run one.
  std::vector<int> programs = {};
  std::vector<PmiPair> given = {};  // What ranks find said from the beginning.
  std::string name = {};            // "spawn 1", of a world that was spawned.
};

// What is to be done after something has come. A value.
struct PmiStep {
  std::vector<std::pair<int, std::string>> answers;  // To local ranks, in this order.
  std::vector<NodeMessage> messages;                 // To the other nodes, one after the other.
  std::vector<int> closed;                           // Local ranks that are not heard any more.
  std::vector<MpiFailure> failures;
  std::vector<std::string> warnings;  // For people, one line each.
  // What local ranks ask to be started; each waits for Spawned.
  std::vector<std::pair<int, SpawnRequest>> spawns;
};

// The PMI-1 server of one node in one round: what ranks ask and are told, their key-value space and
// their barriers. No descriptor, no clock: bytes and messages come in, answers and messages go out.
//
// A barrier opens once all ranks of this node are in it and, where there are several nodes, the
// messages of all have come. Belongs to one thread.
class PmiNode {
 public:
  explicit PmiNode(PmiPlace place);

  // What `local_rank` has sent.
  PmiStep Take(int local_rank, absl::string_view bytes);

  // What all nodes have said to the oldest message of this node that was not answered yet.
  PmiStep TakeMessages(const NodeMessages& all);

  // What `local_rank` has asked for was started, or why not.
  PmiStep Spawned(int local_rank, const absl::Status& started);

  // `local_rank` has exited with 0, and nobody had stopped it.
  PmiStep Exited(int local_rank);

  // Who waits for which ranks of this node, in one line; empty: nobody does.
  std::string Awaited() const { return ranks_.Awaited(); }

  // Whether a rank of this node has come to MPI_Init.
  bool used() const { return ranks_.used(); }
  MpiState state(int local_rank) const { return ranks_.state(local_rank); }

 private:
  struct Session {
    PmiReader reader;
    std::deque<PmiRequest> requests;    // Not answered yet: it waits for others.
    std::optional<SpawnRequest> spawn;  // What it asks for, until that is whole; from then on
    int spawning = 0;                   // so many processes are being started, and it waits.
    absl::Status refused;               // Why `spawn` cannot be.
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
  std::string kvs_name_;  // Empty: not known yet.
  std::string mapping_;   // The same until kvs_name_ is.
  MpiRanks ranks_;
  std::vector<Session> sessions_;
  absl::flat_hash_map<std::string, std::string> values_;
  size_t bytes_ = 0;                          // In values_.
  std::vector<PmiPair> fresh_;                // Of this node, since its last message.
  std::map<std::string, std::string> ports_;  // That were published.
  bool said_hello_ = false;
};

// What a client by port says first: the number that its PMI_ID has; unset: it says something else.
// And the answer. Pure.
std::optional<int> PmiIdIn(const PmiRequest& request);
std::string WelcomeOfPmi(int world_size, Rank rank);

}  // namespace hlaunch
