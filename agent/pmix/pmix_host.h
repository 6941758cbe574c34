// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/pmix/job_map.h"
#include "agent/pmix/pmix_calls.h"
#include "agent/pmix/pmix_library.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// The server of libpmix in this process: it serves the ranks of one node in one round, and asks its
// PmixWork for what it cannot do alone. libpmix keeps one server for a process, so there is one of
// this.
//
// Thread-safe once it is started.
class PmixHost {
 public:
  // What it serves. A value.
  struct Place {
    JobMap map;
    int node_rank = 0;
    Rank first_rank = 0;
    int nproc = 1;
    std::string directory;        // Of this round alone; its sockets and files come there.
    std::vector<int> programs;    // How many ranks run each program, in the order of ranks.
    bool oversubscribed = false;  // More ranks than cores: those that wait give way.
  };

  // Starts it. `library` and what `work` refers to must live as long as the process.
  //
  // Errors:
  //   Internal - libpmix refuses; the message has its words.
  static absl::StatusOr<std::unique_ptr<PmixHost>> Start(const PmixLibrary& library, Place place,
                                                         PmixWork work);

  // By which variables a rank of this node finds this server, NAME=value each.
  //
  // Errors: as above.
  absl::StatusOr<std::vector<std::string>> EnvironmentOf(int local_rank) const;

  // Takes a world that `parent` has spawned, whose ranks are all here, and returns by which
  // variables each of them finds this server. Must not be called on libpmix's thread.
  //
  // Errors: as above.
  absl::StatusOr<std::vector<std::vector<std::string>>> Spawn(const Place& world,
                                                              const std::string& parent_world,
                                                              Rank parent) const;

  // Where it serves.
  const Place& place() const { return place_; }

  // What a rank of this node has said for others, as soon as it has. `done` is called on libpmix's
  // thread.
  void Said(Rank rank, PmixWork::Done done) const;

 private:
  PmixHost(const PmixLibrary& library, Place place, PmixWork work);
  absl::Status Init();
  absl::Status RegisterJob(const Place& place, const pmix_proc_t* parent) const;
  absl::Status RegisterRanks(const Place& place) const;
  absl::StatusOr<std::vector<std::string>> EnvironmentOf(const pmix_proc_t& name) const;
  absl::Status Check(pmix_status_t status, const char* what) const;

  const PmixLibrary& library_;
  const Place place_;
  const PmixWork work_;
};

}  // namespace hlaunch
