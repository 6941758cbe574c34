// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/tasks/task_message.h"

#include <cstdint>
#include <cstring>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/workers/worker/worker_env.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kMagic = "hlT1";

absl::Status Garbled() {
  return absl::InvalidArgumentError("what another task of this node says is garbled");
}

// The variables by name. If several have the same name, the first counts, as for programs.
std::map<absl::string_view, absl::string_view> ByName(const std::vector<std::string>& entries) {
  std::map<absl::string_view, absl::string_view> values;
  for (const absl::string_view entry : entries) {
    values.emplace(entry.substr(0, entry.find('=')), entry);
  }
  return values;
}

}  // namespace

std::string EncodeTaskMessage(const TaskMessage& message) {
  std::string words;
  for (const std::string& word : message) words.append(word.c_str(), word.size() + 1);
  const auto size = static_cast<uint32_t>(words.size());
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));  // Both ends are on one host.
  return bytes + words;
}

absl::StatusOr<size_t> TaskMessageBytes(absl::string_view head) {
  uint32_t size = 0;
  if (head.size() != kTaskMessageHead || head.substr(0, kMagic.size()) != kMagic) return Garbled();
  std::memcpy(&size, head.data() + kMagic.size(), sizeof(size));
  if (size == 0 || size > kMaxTaskMessage) return Garbled();
  return size;
}

absl::StatusOr<TaskMessage> DecodeTaskMessage(absl::string_view bytes) {
  if (bytes.empty() || bytes.back() != '\0') return Garbled();
  bytes.remove_suffix(1);
  return TaskMessage(absl::StrSplit(bytes, '\0'));
}

TaskMessage MessageOf(const WorkerStart& start) {
  TaskMessage message = {std::string(kWordStart), start.directory, absl::StrCat(start.umask),
                         absl::StrCat(start.argv.size())};
  message.insert(message.end(), start.argv.begin(), start.argv.end());
  message.insert(message.end(), start.env.begin(), start.env.end());
  return message;
}

absl::StatusOr<WorkerStart> StartOf(const TaskMessage& message) {
  constexpr size_t kFixed = 4;
  WorkerStart start;
  size_t words = 0;
  if (message.size() < kFixed || message[0] != kWordStart ||
      !absl::SimpleAtoi(message[2], &start.umask) || !absl::SimpleAtoi(message[3], &words) ||
      words == 0 || words > message.size() - kFixed) {
    return Garbled();
  }
  start.directory = message[1];
  const auto program = message.begin() + kFixed;
  const auto variables = program + static_cast<std::ptrdiff_t>(words);
  start.argv.assign(program, variables);
  start.env.assign(variables, message.end());
  return start;
}

std::vector<std::string> EnvironmentInTask(const std::vector<std::string>& task,
                                           const std::vector<std::string>& own,
                                           const std::vector<std::string>& worker) {
  const auto of_task = ByName(task), of_agent = ByName(own), of_worker = ByName(worker);
  std::vector<std::string> entries;
  for (const auto& [name, entry] : of_worker) {
    const auto before = of_agent.find(name);
    const bool is_left = before != of_agent.end() && before->second == entry;
    const auto here = of_task.find(name);
    if (!is_left) entries.emplace_back(entry);
    if (is_left && here != of_task.end()) entries.emplace_back(here->second);
  }
  for (const auto& [name, entry] : of_task) {
    const bool is_known = of_worker.count(name) != 0 || of_agent.count(name) != 0;
    if (!is_known && IsInherited(name)) entries.emplace_back(entry);
  }
  return entries;
}

}  // namespace hlaunch
