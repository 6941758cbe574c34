// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Which hosts a job is to be started on, as users write it. All but ReadTextFile is pure.

namespace hlaunch {

// What the command line says of other hosts. A value; what is empty was not given.
struct HostWish {
  std::string hosts;                   // --hosts, or HLAUNCH_HOSTS.
  std::string hostfile;                // --hostfile.
  std::string include;                 // Only these of the list,
  std::string exclude;                 // and without those.
  std::string launch_agent;            // Instead of ssh: words, %h is the host.
  std::string agent_path;              // Where hlaunch is over there.
  std::vector<std::string> variables;  // Of -x, each VAR or VAR=VALUE.
  std::string exported;                // --export: all, none or a list of names.
  bool push = false;                   // Send our own program where there is none, or another.
  int ranks = 0;                       // Of -n: those of all hosts together; 0: nobody says so.
  std::string system;  // The scheduler whose job these are all nodes of; empty: nobody says so.

  bool any() const { return !hosts.empty() || !hostfile.empty(); }
};

// A host to start an agent on. A value.
struct TargetHost {
  std::string user;          // Empty: the starter's own choice.
  std::string name;          // A name or an address; never begins with '-'.
  std::optional<int> slots;  // Workers on it, where the list says so.
  int number = 0;            // Its place in the whole list.

  // "user@name".
  std::string Login() const;
};

inline constexpr size_t kMaxHosts = 65536;

// "a,b:4,user@c[01-16]:8": names, Slurm's brackets, and behind a colon the workers of each. A host
// that comes twice is one host with the workers of both, as Open MPI has it; without a number it
// counts one.
//
// Errors:
//   InvalidArgument - the word and what was expected.
absl::StatusOr<std::vector<TargetHost>> ParseHosts(absl::string_view text);

// A file with a host a line: `host`, `host slots=N max_slots=N` (Open MPI), `host:N` (MPICH),
// `c[01-16]` (Slurm). '#' begins a comment. `file` is for messages. Repeated hosts as above.
//
// Errors:
//   InvalidArgument - file, line, the word and what was expected.
absl::StatusOr<std::vector<TargetHost>> ParseHostfile(absl::string_view text,
                                                      absl::string_view file);

// The hosts that `wish` asks for, in the order of the list, at least one. `read` gives the text of
// a file.
//
// Errors:
//   InvalidArgument - as above; both lists are given; none is left; --include or --exclude names a
//       host that is not there; what `read` fails with.
using ReadTextFn = std::function<absl::StatusOr<std::string>(const std::string& path)>;
absl::StatusOr<std::vector<TargetHost>> FindHosts(const HostWish& wish, const ReadTextFn& read);

// Divides `ranks` among `hosts`, as their slots: by their numbers of workers in their order, where
// the list has any, else as evenly as it goes. Hosts that get none are dropped.
//
// Errors:
//   InvalidArgument - the list has fewer places.
absl::Status DivideRanks(int ranks, std::vector<TargetHost>& hosts);

// The real one; at most 4 MiB.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace hlaunch
