// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/job_words.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/option_table.h"

namespace hlaunch {
namespace {

using absl::string_view;

// Options that concern this command only, or that WordsForHost sets itself.
constexpr const char* kNotForHosts[] = {
    "--hosts",        "--hostfile",   "--push",    "--include",    "--exclude",
    "--launch-agent", "--agent-path", "--detach",  "--export-var", "--export",
    "--config",       "--stdin",      "--nnodes",  "--rdzv-id",    "--rdzv-conf",
    "--local-addr",   "--token-file", "--cluster", "--nodes",      "--constraint",
    "--exclusive"};

constexpr char kWorkers[] = "--nproc-per-node";

bool IsForHosts(const OptionRow& row) {
  for (const char* name : kNotForHosts) {
    if (string_view(row.name) == name) return false;
  }
  return true;
}

// "-xVAR": a short option with its value in one word.
const OptionRow* FindGlued(string_view word) {
  if (word.size() <= 2 || word[0] != '-' || word[1] == '-') return nullptr;
  const OptionRow* const row = FindOption(word.substr(0, 2));
  return row != nullptr && row->takes_value() ? row : nullptr;
}

// Takes the flags off the front of "-vxVAR", several short options in one word.
void TakeFlags(std::string* word, std::vector<WrittenOption>* all) {
  while (word->size() > 2 && (*word)[0] == '-' && (*word)[1] != '-') {
    const OptionRow* const row = FindOption(word->substr(0, 2));
    if (row == nullptr || row->takes_value()) return;
    all->push_back({row, {word->substr(0, 2)}, ""});
    word->erase(1, 1);
  }
}

}  // namespace

std::vector<WrittenOption> WrittenOptions(const Options& options) {
  std::vector<WrittenOption> all;
  std::vector<std::string> words = options.option_words;
  for (size_t i = 1; i < words.size(); ++i) {
    TakeFlags(&words[i], &all);
    const OptionRow* const glued = FindGlued(words[i]);
    WrittenOption option{glued == nullptr ? FindOption(words[i]) : glued, {words[i]}, ""};
    option.value = glued == nullptr ? words[i].substr(words[i].find('=') + 1) : words[i].substr(2);
    const bool two = option.row != nullptr && glued == nullptr && option.row->takes_value() &&
                     !absl::StrContains(words[i], "=") && i + 1 < words.size();
    if (two) {
      option.value = words[++i];
      option.words.push_back(option.value);
    }
    all.push_back(std::move(option));
  }
  return all;
}

bool SaysOption(const Options& options, string_view name) {
  for (const WrittenOption& option : WrittenOptions(options)) {
    if (option.row != nullptr && option.row->name == name) return true;
  }
  return false;
}

std::vector<std::string> WordsForHost(const Options& options, const TargetHost& host, int rank,
                                      const std::string& job_id) {
  std::vector<std::string> words;
  std::string conf;
  // Each host has its own number of workers.
  const bool divided =
      options.hosts.ranks > 0 || (options.hosts.numbers_count && host.slots.has_value());
  for (const WrittenOption& option : WrittenOptions(options)) {
    if (option.row != nullptr && string_view(option.row->name) == "--rdzv-conf") {
      conf = absl::StrCat(option.value, ",");
    }
    if (option.row != nullptr && !IsForHosts(*option.row)) continue;
    if (divided && option.row != nullptr && string_view(option.row->name) == kWorkers) continue;
    words.insert(words.end(), option.words.begin(), option.words.end());
  }
  const auto add = [&words](const char* name, const std::string& value) {
    words.insert(words.end(), {name, value});
  };
  add("--nnodes", absl::StrCat(options.policy.min_nodes, ":", options.policy.max_nodes));
  // With spares, and where hosts may be missing, the rendezvous gives the ranks.
  const bool fixed =
      options.policy.spares == 0 && options.policy.min_nodes == options.policy.max_nodes;
  if (fixed) add("--node-rank", absl::StrCat(rank));
  add("--rdzv-id", job_id);
  add("--rdzv-conf", absl::StrCat(conf, "is_host=0"));
  // The rendezvous is at this command, and ends with it.
  if (!SaysOption(options, "--on-host-loss")) add("--on-host-loss", "end");
  // This command line decides which hosts take part. The scheduler knows their devices and grace.
  const std::string& system = options.hosts.system;
  add("--cluster", system.empty() ? "none" : system);
  const bool listed = system.empty() && !SaysOption(options, kWorkers);
  if (host.slots.has_value() && (divided || listed)) {
    const std::string& object = options.hosts.ranks_of_object;
    add(kWorkers, absl::StrCat(object, object.empty() ? "" : "=", *host.slots));
  }
  if (rank == 0) {
    if (options.worker.stdin_to != StdinTo::kNobody) words.emplace_back("--stdin");
  } else if (!SaysOption(options, "--verbose") && !SaysOption(options, "--quiet")) {
    words.emplace_back("--quiet");  // Node rank 0 reports the progress for all.
  }
  return words;
}

std::vector<std::string> ExportWords(const HostWish& wish) {
  if (wish.exported.empty()) return {};
  std::vector<std::string> words = {"--export", wish.exported};
  for (const std::string& variable : wish.variables) {
    words.insert(words.end(), {"--export-var", variable});
  }
  return words;
}

}  // namespace hlaunch
