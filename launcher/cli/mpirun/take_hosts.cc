// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/take_hosts.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/mpirun/job_hosts.h"
#include "launcher/cli/mpirun/take_words.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using List = std::vector<std::string>;

std::string Slots(const std::string& name, int slots) {
  const bool is_address = name.find(':') != std::string::npos;
  return absl::StrCat(is_address ? "[" : "", name, is_address ? "]:" : ":", slots);
}

std::string Slots(const TargetHost& host, int slots) {
  return absl::StrCat(host.user, host.user.empty() ? "" : "@", Slots(host.name, slots));
}

bool IsSameName(const std::string& a, const std::string& b) {
  return a == b || absl::StartsWith(a, absl::StrCat(b, ".")) ||
         absl::StartsWith(b, absl::StrCat(a, "."));
}

std::string NamesOf(const std::vector<TargetHost>& hosts) {
  constexpr size_t kMost = 8;
  List names;
  for (size_t i = 0; i < std::min(hosts.size(), kMost); ++i) names.push_back(hosts[i].name);
  if (hosts.size() > kMost) names.push_back(absl::StrCat("and ", hosts.size() - kMost, " more"));
  return absl::StrJoin(names, ", ");
}

bool IsLocalhost(string_view name) { return name == "localhost" || name == "127.0.0.1"; }

// The name of this host, as its job knows it if that is told; empty: not known.
std::string ThisHost(const Environment& environment, const ReadTextFn& read) {
  std::string told = environment.Get("SLURMD_NODENAME");
  if (!told.empty() || read == nullptr) return told;
  const absl::StatusOr<std::string> name = read("/proc/sys/kernel/hostname");
  return name.ok() ? std::string(absl::StripAsciiWhitespace(*name)) : "";
}

std::vector<TargetHost>::const_iterator Find(const JobHosts& job, const std::string& name) {
  return std::find_if(job.hosts.begin(), job.hosts.end(),
                      [&](const TargetHost& each) { return IsSameName(each.name, name); });
}

bool NamesStarter(const MpirunLine& line) {
  return (!line.shell.empty() && !line.shell_is_default) || Says(line, "--launch-agent");
}

// The host of `job` that `wanted` names, with its name and slots there. `here` is this host's name.
// More slots are refused, unless `over`.
absl::StatusOr<TargetHost> HostWithin(const JobHosts& job, const TargetHost& wanted,
                                      const std::string& here, bool over) {
  const auto found = Find(job, IsLocalhost(wanted.name) && !here.empty() ? here : wanted.name);
  const std::string name = PrintableLine(wanted.Login());
  if (found == job.hosts.end()) {
    return InvalidArgumentError(absl::StrCat(
        name, " is not in ", job.title, ", whose hosts are ", NamesOf(job.hosts),
        "; leave it out, ", "or write --launch-agent 'ssh %h' to reach all hosts by ssh"));
  }
  if (!wanted.user.empty()) {
    return InvalidArgumentError(absl::StrCat(name, ": ", job.title, " runs as its own user; leave ",
                                             PrintableLine(wanted.user), "@ out"));
  }
  const int slots = wanted.slots.value_or(1);
  if (!over && slots > found->slots.value_or(slots)) {
    return InvalidArgumentError(
        absl::StrCat(name, ":", slots, ": it has ", *found->slots, " slots in ", job.title));
  }
  return *found;
}

// Refuses `ranks` in even parts if one of `hosts` has fewer slots in its job, which `title` names.
absl::Status CheckEvenShare(const std::vector<TargetHost>& hosts, const std::string& title,
                            int ranks) {
  const int count = static_cast<int>(hosts.size());
  int index = 0;
  for (const TargetHost& host : hosts) {
    const int share = ranks / count + (index++ < ranks % count ? 1 : 0);
    if (share <= host.slots.value_or(share)) continue;
    return InvalidArgumentError(absl::StrCat("-n ", ranks, ": ", host.name, " has ", *host.slots,
                                             " slots in ", title, ", and its share is ", share,
                                             "; write how many behind each host, as in ", host.name,
                                             ":", *host.slots));
  }
  return absl::OkStatus();
}

}  // namespace

bool AreHere(string_view hosts) {
  for (const string_view host : absl::StrSplit(hosts, ',')) {
    if (!IsLocalhost(host.substr(0, host.find(':')))) return false;
  }
  return true;
}

absl::Status CheckThisHost(const Environment& environment, const ReadTextFn& read,
                           const MpirunLine& line) {
  const bool here_alone = line.hostfile.empty() && !line.hosts.empty() && AreHere(line.hosts);
  if (!here_alone || NamesStarter(line) || Says(line, "--cluster")) return absl::OkStatus();
  // Scripts, steps and the shells of other schedulers run on a host of their job.
  const bool of_salloc =
      !environment.Get("SLURM_JOB_ID").empty() && environment.Get("SLURMD_NODENAME").empty();
  if (!of_salloc) return absl::OkStatus();
  const JobHosts job = HostsOfJobAround(environment);
  const std::string here = ThisHost(environment, read);
  if (job.hosts.empty() || here.empty() || Find(job, here) != job.hosts.end()) {
    return absl::OkStatus();
  }
  return InvalidArgumentError(
      absl::StrCat(PrintableLine(line.hosts), " is ", PrintableLine(here), ", which is not in ",
                   job.title, ", whose hosts are ", NamesOf(job.hosts),
                   "; leave it out, or write --cluster none to run here, outside of the job"));
}

absl::Status TakeHostsOfFile(const ReadTextFn& read, MpirunLine& line) {
  if (line.hostfile.empty() || line.hosts.empty()) return absl::OkStatus();
  HLAUNCH_ASSIGN_OR_RETURN(const std::string text, read(line.hostfile));
  HLAUNCH_ASSIGN_OR_RETURN(const auto in_file, ParseHostfile(text, line.hostfile));
  HLAUNCH_ASSIGN_OR_RETURN(const auto wanted, ParseHosts(line.hosts));
  List hosts;
  for (const TargetHost& host : wanted) {
    const auto found = std::find_if(in_file.begin(), in_file.end(), [&host](const auto& each) {
      return each.name == host.name && (host.user.empty() || each.user == host.user);
    });
    const std::string file = PrintableLine(line.hostfile);
    if (found == in_file.end()) {
      return InvalidArgumentError(
          absl::StrCat("-H: ", PrintableLine(host.name), " is not in the hostfile ", file));
    }
    const int slots = host.slots.value_or(1);
    if (found->slots.has_value() && slots > *found->slots) {
      return InvalidArgumentError(absl::StrCat("-H ", PrintableLine(host.name), ":", slots,
                                               ": it has ", *found->slots,
                                               " slots in the hostfile ", file));
    }
    hosts.push_back(Slots(*found, slots));
  }
  line.hosts = absl::StrJoin(hosts, ",");
  line.hostfile.clear();
  return absl::OkStatus();
}

absl::Status TakeHostsOfJob(const Environment& environment, const ReadTextFn& read,
                            MpirunLine& line) {
  const bool names = !line.hostfile.empty() || !line.hosts.empty();
  if (NamesStarter(line) || !names || line.hosts == kHostsOfAllocation) return absl::OkStatus();
  const JobHosts job = HostsOfJobAround(environment);
  if (job.hosts.empty()) return absl::OkStatus();
  HostWish wish;
  wish.hosts = line.hosts;
  wish.hostfile = line.hostfile;
  HLAUNCH_ASSIGN_OR_RETURN(const auto wanted, FindHosts(wish, read));
  const bool counted = std::any_of(wanted.begin(), wanted.end(),
                                   [](const TargetHost& host) { return host.slots.has_value(); });
  const bool says_number = !line.ranks.empty() || !line.per_node.empty();
  // A file without numbers leaves each host the slots that it has in the job.
  const bool jobs_slots = !counted && !says_number && !line.hostfile.empty();
  const std::string here = ThisHost(environment, read);
  const bool over = line.oversubscribes.value_or(false);
  std::vector<TargetHost> hosts;
  List words;
  bool numbered = false;
  int sum = 0;
  for (const TargetHost& each : wanted) {
    HLAUNCH_ASSIGN_OR_RETURN(const TargetHost found, HostWithin(job, each, here, over));
    hosts.push_back(found);
    const std::optional<int> slots = jobs_slots ? found.slots : each.slots;
    words.push_back(slots.has_value() ? Slots(found.name, *slots) : found.name);
    numbered = numbered || slots.has_value();
    sum += slots.value_or(1);
  }
  int ranks = 0;
  if (!counted && !over && line.per_node.empty() && ParseInt(line.ranks, 1, INT_MAX, &ranks)) {
    HLAUNCH_RETURN_IF_ERROR(CheckEvenShare(hosts, job.title, ranks));
  }
  // On each host the scheduler would tell another number.
  if (!says_number && numbered) line.ranks = absl::StrCat(sum);
  line.hosts = absl::StrJoin(words, ",");
  line.hostfile.clear();
  if (!job.starter.empty()) line.shell = job.starter;
  return absl::OkStatus();
}

void SpreadOverHosts(const ReadTextFn& read, MpirunLine& line) {
  const bool named = !line.hostfile.empty() || !line.hosts.empty();
  const bool asked = line.oversubscribes.value_or(false) && line.rankfile.empty();
  int ranks = 0;
  if (!asked || !named || line.hosts == kHostsOfAllocation || !line.per_node.empty() ||
      !ParseInt(line.ranks, 1, INT_MAX, &ranks)) {
    return;
  }
  HostWish wish;
  wish.hosts = line.hosts;
  wish.hostfile = line.hostfile;
  const auto hosts = FindHosts(wish, read);
  const bool counted =
      hosts.ok() && std::any_of(hosts->begin(), hosts->end(),
                                [](const TargetHost& host) { return host.slots.has_value(); });
  if (!counted) return;  // They share evenly as it is, or are refused later.
  const int count = static_cast<int>(hosts->size());
  int beyond = ranks;
  for (const TargetHost& host : *hosts) beyond -= host.slots.value_or(1);
  if (beyond <= 0) return;
  List words;
  for (int i = 0; i < count; ++i) {
    const TargetHost& host = (*hosts)[static_cast<size_t>(i)];
    const int slots = host.slots.value_or(1) + beyond / count + (i < beyond % count ? 1 : 0);
    words.push_back(Slots(host, slots));
  }
  line.hosts = absl::StrJoin(words, ",");
  line.hostfile.clear();
}

}  // namespace hlaunch
