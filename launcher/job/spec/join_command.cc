// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/join_command.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/text/shell_words.h"

namespace hlaunch {
namespace {

// Returns whether other nodes must not get the option. --config is one of these, because the values
// from its file are already in the words.
bool ConcernsThisNode(const OptionRow& row) {
  const absl::string_view name = row.name;
  return name == "--stdin" || name == "--local-addr" || name == "--config";
}

}  // namespace

JoinCommand MakeJoinCommand(const Options& options, const JobSpec& spec, const Endpoint& endpoint) {
  std::vector<std::string> words;
  bool skips_value = false;
  for (const std::string& word : options.option_words) {
    const OptionRow* row = skips_value || words.empty() ? nullptr : FindOption(word);
    const bool is_value = std::exchange(skips_value, false);
    if (row != nullptr && ConcernsThisNode(*row)) {
      skips_value = row->takes_value() && !absl::StrContains(word, "=");
    } else if (!is_value) {
      words.push_back(ShellQuote(word));
    }
  }
  const auto add = [&words](const char* name, const std::string& value) {
    words.insert(words.end(), {name, ShellQuote(value)});
  };
  add("--rdzv-endpoint", HostPort(endpoint));
  if (options.meeting.job_id.empty()) add("--rdzv-id", spec.job_id);
  if (options.meeting.token_file.empty() && !spec.token_file.empty())
    add("--token-file", spec.token_file);
  const CertificateFiles& given = options.meeting.certificates;
  const CertificateFiles& all = spec.certificates;
  if (given.certificate.empty() && !all.none()) add("--tls-cert", all.certificate);
  if (given.key.empty() && !all.none()) add("--tls-key", all.key);
  if (given.authority.empty() && !all.none()) add("--tls-ca", all.authority);
  if (options.meeting.tls.empty() && !spec.tls) add("--tls", "off");
  for (const std::string& word : options.script.command) words.push_back(ShellQuote(word));
  const bool bare_token = !spec.token.empty() && spec.token_file.empty();
  return {
      absl::StrJoin(words, " "),
      bare_token ? "the token of this host must be there too: in HLAUNCH_TOKEN, or in a file" : ""};
}

}  // namespace hlaunch
