// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/own_jobs/end_own_job.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/job/socket/ask_socket.h"
#include "launcher/report/query/tell_answer.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr int kExitStillRuns = 1;
constexpr Duration kEndPatience = std::chrono::seconds(10);
constexpr Duration kLook = std::chrono::milliseconds(100);
// The time for killed processes to be gone.
constexpr Duration kKillTime = std::chrono::seconds(30);
constexpr Duration kAskAgain = std::chrono::seconds(1);
constexpr size_t kMostFiles = 1000;

std::string NameOf(const OwnJob& job) { return absl::StrCat("job ", PrintableLine(job.id)); }

// Where the job's own output goes: "/dev/pts/3 (pid 4242 on node0)".
std::string PlaceOfOutput(const FoundJob& part) {
  const std::string& output = part.here.output;
  const bool has_name = absl::StartsWith(output, "/");
  return absl::StrCat(has_name ? PrintableLine(output) : "where its starter reads it", " (pid ",
                      part.pid != 0 ? part.pid : part.here.pid, " on ",
                      PrintableLine(part.here.host), ")");
}

// The files below `directory`, relative to it, in order.
std::vector<std::string> FilesBelow(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(directory, error), end;
       !error && at != end && files.size() < kMostFiles; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    files.push_back(at->path().lexically_relative(directory).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Whether the process still has its socket. It closes that when its workers are gone.
bool Lives(const FoundJob& part) {
  const auto asked = SocketQuestion::Send(part.socket, "who", nlohmann::json::object(),
                                          MonotonicClock().Now() + kEndPatience);
  return asked.ok() || !absl::IsNotFound(asked.status());
}

bool AwaitEnd(const OwnJob& job, Instant deadline) {
  while (std::any_of(job.parts.begin(), job.parts.end(), Lives)) {
    if (MonotonicClock().Now() >= deadline) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

// Sends the signal to what started the whole job, or else to all of its nodes here.
absl::Status Signal(const OwnJob& job, int signal) {
  absl::Status first;
  for (const FoundJob& part : job.parts) {
    const bool starts_all = !part.here.started_on.empty();
    const bool has_starter =
        std::any_of(job.parts.begin(), job.parts.end(),
                    [](const FoundJob& one) { return !one.here.started_on.empty(); });
    if (has_starter && !starts_all) continue;
    const absl::Status told =
        AskSocket(part.socket, "end", ToJson(EndRequest{signal}), kEndPatience).status();
    // A job that ends meanwhile is no error.
    if (!told.ok() && !absl::IsNotFound(told) && !absl::IsUnavailable(told)) first.Update(told);
  }
  return first;
}

int TellEnded(const OwnJob& job) {
  return PrintAnswer(
      absl::StrCat("stopped\n", NameOf(job), "; its exit code is told where it ", "was started\n"));
}

}  // namespace

int TellLogsOf(const OwnJob& job) {
  std::string kept;
  for (const FoundJob& part : job.parts) {
    const std::string& directory = part.here.log_directory;
    if (directory.empty()) continue;
    absl::StrAppend(&kept, NameOf(job), " keeps its output in ", PrintableLine(directory), ":\n");
    for (const std::string& file : FilesBelow(directory)) {
      absl::StrAppend(&kept, "  ", PrintableLine(file), "\n");
    }
  }
  if (!kept.empty()) return PrintAnswer(kept);
  return FailToAsk(
      absl::NotFoundError(absl::StrCat(
          "the output of ", NameOf(job), " goes to ", PlaceOfOutput(job.parts[0]),
          ", and hlaunch keeps none of it; start a job with --log-dir DIR, and files keep it, or "
          "with --detach, and hlaunch logs prints it")),
      kExitRefused);
}

int RefuseToAttach(const OwnJob& job) {
  return FailToAsk(absl::NotFoundError(absl::StrCat(
                       NameOf(job), " was started without --detach: its output goes to ",
                       PlaceOfOutput(job.parts[0]), "; hlaunch top ", PrintableLine(job.id),
                       " watches it, hlaunch why ", PrintableLine(job.id), " asks it")),
                   kExitRefused);
}

int EndOwnJob(const OwnJob& job, absl::string_view command, bool named,
              std::optional<Duration> grace) {
  if (!named) {
    return FailToAsk(absl::NotFoundError(absl::StrCat(
                         "no detached job of yours runs here; ", NameOf(job),
                         " runs without --detach (", PlaceOfOutput(job.parts[0]), "): hlaunch ",
                         command, " ", PrintableLine(job.id), " ends that one")),
                     kExitRefused);
  }
  const auto in = [](Duration time) { return MonotonicClock().Now() + time; };
  const absl::Status told = Signal(job, SIGTERM);
  if (!told.ok()) return FailToAsk(told, kExitRefused);
  if (AwaitEnd(job, grace.has_value() ? in(*grace) : Instant::max())) return TellEnded(job);
  // The second signal that asks for an end means it, as with Ctrl-C.
  for (const Instant until = in(kKillTime); MonotonicClock().Now() < until;) {
    const absl::Status killed = Signal(job, SIGINT);
    if (!killed.ok()) LogDebug(killed.message());
    if (AwaitEnd(job, std::min(until, in(kAskAgain)))) return TellEnded(job);
  }
  return FailToAsk(
      absl::DeadlineExceededError(absl::StrCat(
          NameOf(job), " has been killed and does not end; see pid ", job.parts[0].pid)),
      kExitStillRuns);
}

}  // namespace hlaunch
