// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <string>

#include "launcher/cli/options/option_table.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::string_view;

absl::Status SetHostText(string_view text, std::string HostWish::*place, Options& options) {
  if (text.empty()) return absl::InvalidArgumentError("expected a value");
  options.hosts.*place = std::string(text);
  return absl::OkStatus();
}

absl::Status AddVariable(string_view text, Options& options) {
  if (text.empty()) return absl::InvalidArgumentError("expected VAR or VAR=VALUE");
  options.hosts.variables.emplace_back(text);
  return absl::OkStatus();
}

const OptionRow kHostRows[] = {
    {"Hosts to start from here", "-H", "--hosts", "a,b:4,c[01-16]",
     "start the job on these hosts; behind a colon the workers of each (HLAUNCH_HOSTS); "
     "allocation: those of the scheduler's job",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::hosts, options);
     }},
    {"", "", "--hostfile", "FILE", "the hosts of a file, as Open MPI, MPICH or Slurm write it",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::hostfile, options);
     }},
    {"", "", "--include", "HOSTS", "of these hosts, only those",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::include, options);
     }},
    {"", "", "--exclude", "HOSTS", "of these hosts, all but those",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::exclude, options);
     }},
    {"", "", "--launch-agent", "'CMD %h ...'",
     "instead of ssh: a command that runs words on the host %h (kubectl exec -i %h --)",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::launch_agent, options);
     }},
    {"", "", "--agent-path", "PATH", "where hlaunch is on the hosts (where it is here)",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::agent_path, options);
     }},
    {"", "", "--push", "",
     "where a host has no hlaunch, or another one, send it this one for the job",
     [](string_view, Options& options) {
       options.hosts.push = true;
       return absl::OkStatus();
     }},
    {"", "", "--detach", "",
     "once all nodes are here, go on without this terminal, on one host too (hlaunch attach)",
     [](string_view, Options& options) { return SetFlag(&options.detach); }},
    {"", "-x", "--export-var", "VAR[=VALUE]",
     "workers get this variable as well, on all hosts; may be repeated", AddVariable, kNoPet,
     kNoCommas, kRepeats},
    {"", "", "--export", "all|none|LIST",
     "which variables of here workers get (on one host all; else paths and settings, no secrets)",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::exported, options);
     }},
};

}  // namespace

absl::Span<const OptionRow> HostOptions() { return kHostRows; }

}  // namespace hlaunch
