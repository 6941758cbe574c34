// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/mpirun/mpirun_line.h"
#include "launcher/text/environment.h"

// The hosts that a line of mpirun names, beside a hostfile and within a scheduler's job.

namespace hlaunch {

// Whether all hosts of a list, as in "localhost:2,127.0.0.1", are this one by name, so that no
// other host is reached. Pure.
bool AreHere(absl::string_view hosts);

// Refuses a line for this host alone where a shell of salloc runs on a host that is not in its job:
// on the login node. Open MPI refuses it, too. `read` is asked for this host's name.
//
// Errors:
//   InvalidArgument - names this host, and says what to write.
absl::Status CheckThisHost(const Environment& environment, const ReadTextFn& read,
                           const MpirunLine& line);

// Takes -H beside a hostfile: the ranks run on the hosts of -H, in its order and with its numbers,
// and each of them must be in the file. A host without a number has one place, as in Open MPI.
//
// Errors:
//   InvalidArgument - names the host, or what `read` says of the file.
absl::Status TakeHostsOfFile(const ReadTextFn& read, MpirunLine& line);

// Takes the hosts that the line names within a scheduler's job: they are hosts of that job, as in
// Open MPI, and the scheduler's own starter reaches them. localhost is the job's host on which this
// runs. A starter that the line names is taken instead, and then any host. A scheduler's list of
// hosts and this host's name are read besides, and the rest is pure.
//
// Errors:
//   InvalidArgument - names a host that is not in the job, or, without --oversubscribe, has fewer
//       slots there.
absl::Status TakeHostsOfJob(const Environment& environment, const ReadTextFn& read,
                            MpirunLine& line);

// Gives the hosts that the line names, and counts, more slots where --oversubscribe asks for more
// ranks than they have: as Open MPI does, each an even share of what is beyond them. Does nothing
// to a list that is to be refused.
void SpreadOverHosts(const ReadTextFn& read, MpirunLine& line);

}  // namespace hlaunch
