// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rendezvous/witness/group.h"
#include "rendezvous/witness_wire/witness_convert.h"

namespace hlaunch {

// A witness of a job's record, as a server knows it. Thread-safe; nothing blocks.
class WitnessPost {
 public:
  virtual ~WitnessPost() = default;

  // What another witness says.
  //
  // Errors:
  //   NotFound - it is of another job.
  virtual absl::Status Hear(absl::string_view job_id, WitnessLetter letter) = 0;

  // A keeper's word that this agent is dead.
  virtual void ProvenDead(absl::string_view job_id, Incarnation incarnation) = 0;

  // Where the rendezvous may be, whoever leads it first, and who is wanted as a witness; at most
  // kMaxWitnessesTold.
  virtual WitnessMembers Places() const = 0;
};

}  // namespace hlaunch
