// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// What a rank learns from its launcher's server of PMI-1. A value.
struct PmiMeeting {
  Rank rank = 0;
  int size = 1;
  std::string said;  // What rank 0 has told all ranks.
};

// Meets the other ranks through the PMI-1 server that PMI_FD, or PMI_PORT and PMI_ID, of
// `environment` name: mpiexec of MPICH and of Intel MPI, and hlaunch. At rank 0 `say` makes the
// text for all ranks, of at most 499 characters without blanks. If `say` fails, all ranks fail and
// see its message.
//
// PMI-1 allows a process one conversation, and this function uses it. So it works once, and not in
// a program that calls MPI_Init.
//
// Errors:
//   InvalidArgument - the environment names no such server; the message says what to do.
//   Unavailable - the server went away, or refuses.
//   DeadlineExceeded - not all ranks came in time.
absl::StatusOr<PmiMeeting> MeetByPmi(const std::map<std::string, std::string>& environment,
                                     const std::function<absl::StatusOr<std::string>()>& say,
                                     Instant deadline);

}  // namespace hlaunch
