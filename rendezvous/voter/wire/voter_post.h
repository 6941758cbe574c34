// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/voter/group.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {

// A voter of a job's record, as a server knows it. No call blocks. Thread-safe.
class VoterPost {
 public:
  virtual ~VoterPost() = default;

  // Takes a message of another voter.
  //
  // Errors:
  //   NotFound - this voter is of another job.
  virtual absl::Status Hear(absl::string_view job_id, VoterLetter letter) = 0;

  // Returns the record of the entry of `ballot`, for the process that asks.
  //
  // Errors:
  //   NotFound - this voter is of another job, does not hold that entry any more, or that
  //       process is neither a voter nor wanted as one.
  virtual absl::StatusOr<std::string> Record(absl::string_view job_id, Incarnation asker,
                                             const Ballot& ballot) = 0;

  // A keeper says that this agent is dead.
  virtual void ProvenDead(absl::string_view job_id, Incarnation incarnation) = 0;

  // Returns where the rendezvous may be, its leader first, and which processes are wanted as
  // voters; at most kMaxVotersTold.
  virtual VoterMembers Places() const = 0;
};

}  // namespace hlaunch
