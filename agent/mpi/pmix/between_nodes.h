// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "agent/mpi/pmix/job_map.h"
#include "agent/mpi/pmix/pmix_host.h"
#include "agent/mpi/serve/node_meeting.h"
#include "proto/base/mutex.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// The work that the PMIx servers of a round do together, through the master store: they hold
// fences, make groups and ask each other for the data of a rank. Each such operation in progress
// has its own thread, so that none waits for another; mostly there is one at a time.
//
// Thread-safe. It must live as long as the process.
class BetweenNodes {
 public:
  // `on_broken` is told why ranks would wait for ever.
  BetweenNodes(NodeMeeting& meeting, const JobMap& map, int node_rank,
               std::function<void(std::string)> on_broken);

  // As in PmixWork; these do not block.
  void Fence(const std::vector<Rank>& ranks, std::string own, PmixWork::Done done);
  void Group(absl::string_view name, const std::vector<Rank>& ranks, absl::string_view own,
             PmixWork::GroupDone done);
  void Ask(Rank rank, PmixWork::Done done);

  // Answers the questions of other nodes from `host`, on a separate thread.
  void Answer(const PmixHost& host);

 private:
  std::vector<int> NodesOf(const std::vector<Rank>& ranks) const;
  void Meet(const std::string& name, const char* where, const std::vector<int>& nodes,
            std::string own, PmixWork::Done done);
  PmixWork::Data AskNode(Rank rank, int node, int64_t number);
  absl::Status AnswerNext(const PmixHost& host, int64_t number);
  void BrokenUnless(const absl::Status& done);
  void Say(const std::string& key, const PmixWork::Data& data);

  NodeMeeting& meeting_;
  const JobMap& map_;
  const int node_rank_;
  const std::function<void(std::string)> on_broken_;
  Mutex mu_;
  std::map<std::string, int> met_ ABSL_GUARDED_BY(mu_);  // How many times, by name.
  uint64_t groups_ ABSL_GUARDED_BY(mu_) = 0;             // How many groups this node has numbered.
  int64_t asked_ ABSL_GUARDED_BY(mu_) = 0;
};

// The names of a fence of `ranks` (empty: all ranks), and of the making of their group `name`.
// Pure.
std::string FenceName(const std::vector<Rank>& ranks);
std::string GroupName(absl::string_view name, const std::vector<Rank>& ranks);

}  // namespace hlaunch
