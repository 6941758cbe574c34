// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/part_words.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/cluster/job_id.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

using Words = std::vector<std::string>;

constexpr char kConf[] = "--rdzv-conf";

void Add(const char* name, const std::string& value, Words* words) {
  words->insert(words->end(), {name, value});
}

// Returns the value of the last --rdzv-conf in `words`, since a later one would replace it.
std::string ConfIn(const Words& words) {
  std::string conf;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kConf && i + 1 < words.size()) conf = words[i + 1];
    const std::string with_value = absl::StrCat(kConf, "=");
    if (absl::StartsWith(words[i], with_value)) conf = words[i].substr(with_value.size());
  }
  return conf;
}

bool HasOneOf(const Words& words, const Words& sought) {
  return std::find_first_of(words.begin(), words.end(), sought.begin(), sought.end()) !=
         words.end();
}

void AddDevices(const PartOrder& order, Words* words) {
  if (order.device_kind.empty() || order.devices.empty()) return Add("--devices", "none", words);
  Add("--devices", absl::StrJoin(order.devices, ","), words);
}

// Says where the nodes meet. Node 0 gets no endpoint: it takes a free port and tells which one.
void AddMeeting(const PartOrder& order, Words* words) {
  if (order.meeting.empty()) return;
  Add("--rdzv-endpoint", order.meeting, words);
  const std::string conf = ConfIn(order.request.options);
  Add(kConf, absl::StrCat(conf, conf.empty() ? "" : ",", "is_host=0"), words);
}

Words OptionsOf(const PartOrder& order) {
  Words words = order.request.options;
  const bool fixed = order.spares == 0 && order.min_nodes == order.max_nodes;
  Add("--nnodes",
      fixed ? absl::StrCat(order.max_nodes) : absl::StrCat(order.min_nodes, ":", order.max_nodes),
      &words);
  Add("--nproc-per-node", absl::StrCat(order.workers), &words);
  if (order.max_nodes + order.spares > 1) {
    // With spares or a range of nodes the rendezvous assigns the ranks.
    if (fixed) Add("--node-rank", absl::StrCat(order.node_rank), &words);
    if (order.spares > 0) Add("--spares", absl::StrCat(order.spares), &words);
    AddMeeting(order, &words);
  }
  Add("--rdzv-id", ClusterJobId(order.job), &words);
  // These options say all of that, so variables of another system must not count.
  Add("--cluster", "none", &words);
  AddDevices(order, &words);
  // Only node 0 reports how the job goes.
  if (order.node_rank > 0 && !HasOneOf(words, {"--verbose", "-v", "--quiet", "-q"})) {
    words.emplace_back("--quiet");
  }
  return words;
}

}  // namespace

StartMessage StartOfPart(const PartOrder& order, const std::string& folder) {
  StartMessage message;
  message.version = WireVersion();
  message.nonce = ClusterJobId(order.job);
  message.options = OptionsOf(order);
  if (order.max_nodes + order.spares > 1 && !HasOneOf(message.options, {"--drain-file"})) {
    // In the folder above the job's, where only root can write.
    Add("--drain-file", absl::StrCat(folder.substr(0, folder.rfind('/') + 1), kLeaveNotice),
        &message.options);
  }
  message.script = order.request.script;
  message.environment = order.request.environment;
  // The last value of a variable counts.
  message.environment.push_back(absl::StrCat(kEnvDetached, "=", folder));
  message.limits = order.request.limits;
  message.directory = order.request.directory;
  message.umask = order.request.umask;
  message.grace_s = order.request.grace_s;
  if (order.max_nodes + order.spares > 1) message.token = order.token;
  return message;
}

}  // namespace hlaunch
