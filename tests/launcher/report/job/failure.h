// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/strings/str_cat.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The failure of a worker of a job with two workers per node.
inline WorkerFailure Failure(Rank rank, int exit_code, int signal = 0) {
  WorkerFailure failure;
  failure.rank = rank;
  failure.local_rank = rank % 2;
  failure.host = absl::StrCat("node", rank / 2);
  failure.pid = 4242;
  failure.exit_code = exit_code;
  failure.signal = signal;
  return failure;
}

}  // namespace hlaunch
