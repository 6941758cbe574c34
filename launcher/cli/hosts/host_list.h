// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The hosts on which a job is started, as users write them. All but ReadTextFile is pure.

namespace hlaunch {

// The options that concern other hosts. A value; an empty field was not given.
struct HostWish {
  std::string hosts;                   // --hosts, or HLAUNCH_HOSTS.
  std::string hostfile;                // --hostfile.
  std::string include;                 // Only these hosts of the list,
  std::string exclude;                 // and without these.
  std::string launch_agent;            // Used instead of ssh; %h is the host.
  std::string agent_path;              // Where hlaunch is on the hosts.
  std::vector<std::string> variables;  // The values of -x, each VAR or VAR=VALUE.
  std::string exported;                // --export: all, none or a list of names.
  bool push = false;              // Send our own program to hosts with none, or another version.
  int ranks = 0;                  // -n, the ranks of all hosts together; 0: not given.
  std::string ranks_word = "-n";  // How that was typed.
  // With `ranks`: each host has N ranks of each object, as in "2:socket"; empty: not given.
  std::string ranks_of_object = {};
  int ranks_of_each = 0;  // With `ranks`: at most so many on each host; 0: not given.
  // The list's numbers of workers outrank --nproc-per-node, which a weaker source gives.
  bool numbers_count = false;
  std::string system;  // The scheduler whose job has these nodes; empty: not given.

  bool any() const { return !hosts.empty() || !hostfile.empty(); }
};

// A host to start an agent on. A value.
struct TargetHost {
  std::string user;          // Empty: the starter chooses.
  std::string name;          // A name or an address; never begins with '-'.
  std::optional<int> slots;  // The workers on it, if the list says so.
  int number = 0;            // Its place in the whole list.

  // "user@name".
  std::string Login() const;
};

// The variable with more arguments for ssh, which SplitWords divides.
inline constexpr char kEnvSshArgs[] = "HLAUNCH_SSH_ARGS";

inline constexpr size_t kMaxHosts = 65536;

// Parses as in "a,b:4,user@c[01-16]:8": names, Slurm's brackets, and after a colon the workers of
// each host. A host that is listed twice is one host with the workers of both, as in Open MPI; an
// entry without a number counts as one worker then.
//
// Errors:
//   InvalidArgument - names the word and what was expected.
absl::StatusOr<std::vector<TargetHost>> ParseHosts(absl::string_view text);

// Parses a file with one host per line: `host`, `host slots=N max_slots=N` (Open MPI, which has
// count=N and cpu=N for it, and blanks around =), `host:N` (MPICH), `c[01-16]` (Slurm). '#' begins
// a comment. `file` is for messages. Repeated hosts are merged as above.
//
// Errors:
//   InvalidArgument - names the file, the line, the word and what was expected.
absl::StatusOr<std::vector<TargetHost>> ParseHostfile(absl::string_view text,
                                                      absl::string_view file);

// Returns the hosts that `wish` asks for, at least one, in the order of the list. `read` returns
// the text of a file.
//
// Errors:
//   InvalidArgument - as above; both lists are given; no host is left; --include or --exclude names
//       a host that is not in the list; `read` fails.
using ReadTextFn = std::function<absl::StatusOr<std::string>(const std::string& path)>;
absl::StatusOr<std::vector<TargetHost>> FindHosts(const HostWish& wish, const ReadTextFn& read);

// Divides `ranks` among `hosts` and stores the numbers as their slots. If the list has numbers of
// workers, fills the hosts in their order up to these, else divides as evenly as possible. Drops
// hosts that get none.
//
// Errors:
//   InvalidArgument - the list has fewer places than ranks.
absl::Status DivideRanks(int ranks, std::vector<TargetHost>& hosts);

// The same for the ranks of `wish`. If it has `ranks_of_each`, that is each host's number.
absl::Status DivideRanks(const HostWish& wish, std::vector<TargetHost>& hosts);

// Reads a real file of at most 4 MiB.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace hlaunch
