// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/join_command.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "launcher/options/option_table.h"

namespace hlaunch {
namespace {

bool IsPlain(char c) {
  return absl::ascii_isalnum(c) ||
         absl::string_view("_@%+=:,./-").find(c) != absl::string_view::npos;
}

// Not for other nodes. What the configuration gives is among the words by itself.
bool ConcernsThisNode(const OptionRow& row) {
  const absl::string_view name = row.name;
  return name == "--stdin" || name == "--local-addr" || name == "--config";
}

}  // namespace

std::string ShellQuote(absl::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return std::string(word);
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

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
