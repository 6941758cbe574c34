// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/meeting_words.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace hlaunch {
namespace {

bool NamesMeeting(const std::string& word) {
  return absl::StartsWith(word, "--rdzv-endpoint") || absl::StartsWith(word, "--rdzv_endpoint") ||
         word == "--help" || word == "-h";
}

void Append(std::vector<std::string>& words, const char* name, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {name, value});
}

void AppendMeeting(std::vector<std::string>& words, const DetachedJob& job) {
  const absl::StatusOr<MeetingPlace> place = ReadMeeting(job.directory);
  if (!place.ok()) return;
  Append(words, "--rdzv-endpoint", place->endpoint);
  Append(words, "--token-file", place->token_file);
  Append(words, "--tls", place->tls);
  Append(words, "--tls-cert", place->tls_cert);
  Append(words, "--tls-key", place->tls_key);
  Append(words, "--tls-ca", place->tls_ca);
}

}  // namespace

std::vector<std::string> WithMeeting(std::vector<std::string> words,
                                     const std::vector<DetachedJob>& known) {
  if (std::any_of(words.begin(), words.end(), NamesMeeting)) return words;
  std::vector<DetachedJob> running, named;
  for (const DetachedJob& job : known) {
    if (job.life != JobLife::kRuns) continue;
    running.push_back(job);
    if (std::find(words.begin() + 2, words.end(), job.id) != words.end()) named.push_back(job);
  }
  const bool left_out =
      named.empty() && std::all_of(words.begin() + 2, words.end(), [](const std::string& word) {
        return absl::StartsWith(word, "-");
      });
  if (left_out && running.size() == 1) {
    named = running;
    words.push_back(running[0].id);
  }
  if (named.size() == 1) AppendMeeting(words, named[0]);
  return words;
}

std::vector<std::string> WithMeetingOfNode(std::vector<std::string> words,
                                           const std::vector<DetachedJob>& known) {
  if (words.size() < 3 || std::any_of(words.begin(), words.end(), NamesMeeting)) return words;
  std::vector<DetachedJob> running;
  for (const DetachedJob& job : known) {
    if (job.life != JobLife::kRuns) continue;
    running.push_back(job);
    if (words.size() <= 3 || words[2] != job.id) continue;
    AppendMeeting(words, job);
    return words;
  }
  if (running.size() != 1) return words;
  words.insert(words.begin() + 2, running[0].id);
  AppendMeeting(words, running[0]);
  return words;
}

}  // namespace hlaunch
