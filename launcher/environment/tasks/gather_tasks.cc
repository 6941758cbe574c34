// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/tasks/gather_tasks.h"

#include <poll.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/workers/worker/taken_signals.h"
#include "launcher/environment/tasks/stand_in.h"
#include "launcher/environment/tasks/task_message.h"
#include "launcher/environment/tasks/task_socket.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/programs.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr Duration kNotice = seconds(5);
constexpr Duration kAnswerTime = seconds(10);
constexpr int kLookMillis = 10;
// Whether each task has CPUs of its own.
constexpr char kApart[] = "apart";
constexpr char kTogether[] = "together";

std::string NameOf(const NodeTasks& tasks, int local) {
  return absl::StrCat("task ", local, " of ", tasks.count, " of ", tasks.owner, " on this node");
}

absl::Status Unfit(const NodeTasks& tasks, int local, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(NameOf(tasks, local), " ", why,
                                                 "; one task on each node needs no other: write ",
                                                 tasks.instead));
}

// Waits for the socket of one task.
absl::StatusOr<UniqueFd> Reach(const NodeTasks& tasks, int local, Instant began,
                               Duration patience) {
  bool told = false;
  while (true) {
    absl::StatusOr<UniqueFd> socket = ConnectToTask(TaskAddress(tasks.name, local));
    if (socket.ok()) return socket;
    if (!absl::IsNotFound(socket.status())) return Unfit(tasks, local, socket.status().message());
    const Duration waited = MonotonicClock().Now() - began;
    if (TerminationPending()) return absl::CancelledError("");
    if (waited > patience) {
      return Unfit(tasks, local,
                   absl::StrCat("did not come within ", InSeconds(patience),
                                " s: it has ended, or a container keeps its network apart"));
    }
    if (waited > kNotice && !std::exchange(told, true)) {
      LogInfo(absl::StrCat("waiting for ", NameOf(tasks, local)));
    }
    ::poll(nullptr, 0, kLookMillis);
  }
}

}  // namespace

absl::StatusOr<GatheredTasks> GatheredTasks::Gather(const NodeTasks& tasks,
                                                    const Environment& environment,
                                                    Duration patience) {
  GatheredTasks gathered;
  const absl::Status status = gathered.TakeAll(tasks, environment, patience);
  if (status.ok()) return gathered;
  gathered.SayEnd(kExitUsage);
  return status;
}

absl::Status GatheredTasks::TakeAll(const NodeTasks& tasks, const Environment& environment,
                                    Duration patience) {
  TaskMessage agent = {std::string(kWordAgent)};
  for (std::string& entry : environment.Without(kEnvToken)) agent.push_back(std::move(entry));
  const Instant began = MonotonicClock().Now();
  for (int local = 1; local < tasks.count; ++local) {
    absl::Status taken;
    do {  // Repeats if it has reached a former job of the same step, which is ending.
      HLAUNCH_ASSIGN_OR_RETURN(UniqueFd socket, Reach(tasks, local, began, patience));
      taken = Take(tasks, local, std::move(socket), agent);
      if (absl::IsUnavailable(taken)) ::poll(nullptr, 0, kLookMillis);
    } while (absl::IsUnavailable(taken) && MonotonicClock().Now() - began < patience);
    HLAUNCH_RETURN_IF_ERROR(taken);
  }
  return absl::OkStatus();
}

absl::Status GatheredTasks::Take(const NodeTasks& tasks, int local, UniqueFd socket,
                                 const TaskMessage& agent) {
  const absl::Status sent = SendTaskMessage(socket.get(), agent);
  const auto answer = sent.ok()
                          ? ReceiveTaskMessage(socket.get(), MonotonicClock().Now() + kAnswerTime)
                          : absl::StatusOr<ReceivedMessage>(sent);
  if (!answer.ok()) {
    return absl::UnavailableError(Unfit(tasks, local, "came, and does not answer").message());
  }
  if (answer->words.size() != 4 || answer->descriptors.size() != 2) {
    return Unfit(tasks, local, "answers what is not of this hlaunch");
  }
  const int rank = tasks.first_rank + local;
  if (answer->words[1] != absl::StrCat(local) || answer->words[2] != absl::StrCat(rank)) {
    return Unfit(tasks, local,
                 absl::StrCat("has the number ", answer->words[2],
                              " in the whole job, where hlaunch has rank ", rank));
  }
  apart_ = apart_ || answer->words[3] != CpusAsWord();
  links_.push_back(std::move(socket));
  for (const UniqueFd& stream : answer->descriptors) {
    streams_.emplace_back(::dup(stream.get()));  // The copy is not closed on exec.
  }
  return absl::OkStatus();
}

std::string GatheredTasks::ForAgent() const {
  std::string text = absl::StrCat(kEnvTasks, "=", apart_ ? kApart : kTogether);
  for (const UniqueFd& stream : streams_) absl::StrAppend(&text, ",", stream.get());
  return text;
}

std::vector<int> GatheredTasks::links() const {
  std::vector<int> descriptors;
  for (const UniqueFd& link : links_) descriptors.push_back(link.get());
  return descriptors;
}

void GatheredTasks::SayEnd(int exit_code) {
  for (const UniqueFd& link : links_) {
    SendTaskMessage(link.get(), {std::string(kWordJobEnd), absl::StrCat(exit_code)}).IgnoreError();
  }
  links_.clear();
}

void UseTasks(const NodeTasks& tasks, const std::string& for_agent, WorkerSpec& spec) {
  const std::vector<std::string> words = absl::StrSplit(for_agent, ',');
  spec.stand_ins.resize(1);
  spec.consoles.resize(1);
  for (int local = 1; local < tasks.count; ++local) {
    const auto first = static_cast<size_t>(2 * local - 1);
    spec.stand_ins.push_back({kThisProgram, kStandInWord, TaskAddress(tasks.name, local)});
    ConsoleStreams console;
    const bool has_both = first + 1 < words.size() &&
                          ParseInt(words[first], 3, 1 << 20, &console.out) &&
                          ParseInt(words[first + 1], 3, 1 << 20, &console.err);
    spec.consoles.push_back(has_both ? console : ConsoleStreams());
  }
  spec.own_cpus = words[0] == kApart;
}

}  // namespace hlaunch
