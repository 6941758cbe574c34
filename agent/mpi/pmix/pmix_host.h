// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/mpi/pmix/job_map.h"
#include "agent/mpi/pmix/pmix_calls.h"
#include "agent/mpi/pmix/pmix_library.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// The libpmix server in this process. It serves the ranks of one node in one round, and uses its
// PmixWork for what libpmix cannot do alone. libpmix has one server per process, so there is only
// one PmixHost.
//
// Thread-safe once it is started.
class PmixHost {
 public:
  // The ranks that it serves. A value.
  struct Place {
    JobMap map;
    int node_rank = 0;
    Rank first_rank = 0;
    int nproc = 1;
    std::string directory;        // For this round alone; its sockets and files are made there.
    std::vector<int> programs;    // How many ranks run each program, in the order of ranks.
    bool oversubscribed = false;  // More ranks than cores: waiting ranks yield.
  };

  // Starts the server. `library`, and the objects that `work` refers to, must live as long as the
  // process.
  //
  // Errors:
  //   Internal - libpmix refuses; the message has its error text.
  static absl::StatusOr<std::unique_ptr<PmixHost>> Start(const PmixLibrary& library, Place place,
                                                         PmixWork work);

  // The variables by which a rank of this node finds this server, NAME=value each.
  //
  // Errors: as above.
  absl::StatusOr<std::vector<std::string>> EnvironmentOf(int local_rank) const;

  // Registers a world that `parent` has spawned, whose ranks are all on this node. Returns for each
  // rank the variables by which it finds this server. Must not be called on libpmix's thread.
  //
  // Errors: as above.
  absl::StatusOr<std::vector<std::vector<std::string>>> Spawn(const Place& world,
                                                              const std::string& parent_world,
                                                              Rank parent) const;

  // The ranks that it serves.
  const Place& place() const { return place_; }

  // Gets the data that a rank of this node has given for others, once the rank has given it. `done`
  // is called on libpmix's thread.
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
