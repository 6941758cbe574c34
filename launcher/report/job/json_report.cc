// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/json_report.h"

#include <string.h>  // sigabbrev_np

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/report/job/advice.h"
#include "nlohmann/json.hpp"
#include "proto/base/user_files.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/cause/first_cause.h"

namespace hlaunch {
namespace {

using Json = nlohmann::ordered_json;

// The version of the members' meaning. Raised when a reader of the old version would misunderstand.
constexpr int kSchema = 1;

// "2026-11-21T18:40:26.123Z".
std::string Time(int64_t wall_ms) {
  const std::time_t seconds = wall_ms / 1000;
  std::tm utc = {};
  ::gmtime_r(&seconds, &utc);
  char text[sizeof "2026-11-21T18:40:26"] = "";
  std::strftime(text, sizeof text, "%FT%T", &utc);
  return absl::StrFormat("%s.%03dZ", text, wall_ms % 1000);
}

// Rounded down to milliseconds.
double Seconds(Duration duration) {
  return static_cast<double>(
             std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) /
         1000;
}

Json Text(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json OfSignal(int signal) {
  if (signal == 0) return nullptr;
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat(signal);
}

// For programs: these words stay.
absl::string_view WordOf(FailureKind kind) {
  switch (kind) {
    case FailureKind::kOther:
      return "other";
    case FailureKind::kStalled:
      return "stalled";
    case FailureKind::kStalledWaiting:
      return "stalled-waiting";
    case FailureKind::kHangs:
      return "hangs";
    case FailureKind::kSilent:
      return "silent";
    case FailureKind::kWroteLine:
      return "wrote-line";
    case FailureKind::kKernelAssertion:
      return "kernel-assertion";
    case FailureKind::kImportFailed:
      return "import-failed";
    case FailureKind::kMpiPeerLost:
      return "mpi-peer-lost";
    case FailureKind::kWarnedBefore:
      return "warned-before";
  }
  return "other";
}

Json OfFailure(const WorkerFailure& failure) {
  return {{"rank", failure.rank},
          {"host", failure.host},
          {"node_rank", failure.node_rank},
          {"local_rank", failure.local_rank},
          {"pid", failure.pid},
          {"exit_code", failure.signal == 0 ? Json(failure.exit_code) : Json(nullptr)},
          {"signal", OfSignal(failure.signal)},
          {"time", Time(failure.wall_ms)},
          {"exception", Text(ExceptionOf(failure))},
          {"traceback", Text(failure.traceback)},
          {"log_tail", Text(failure.log_tail)},
          {"log_file", Text(failure.log_file)},
          {"out_of_memory", failure.out_of_memory},
          {"hung", failure.hung},
          {"kind", WordOf(failure.kind)},
          {"evidence", Text(failure.evidence)},
          {"spawned", Text(failure.spawned)}};
}

absl::string_view Word(const Outcome& outcome) {
  if (outcome.exit_code == kExitOk) return "succeeded";
  const bool stopped = IsSignalExit(outcome.exit_code) || outcome.exit_code == kExitNodeStopped;
  return stopped && !outcome.worker_failed ? "stopped" : "failed";
}

// Whether the file `path` has the whole report of the job `job_id`, not older than `since_ms`.
bool HasWholeReport(const std::string& path, const std::string& job_id, int64_t since_ms) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  const Json there = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!there.is_object()) return false;
  const auto member = [&there](const char* name) {
    const auto found = there.find(name);
    return found == there.end() ? Json() : *found;
  };
  const Json written = member("written_at");
  return member("whole") == true && member("job_id") == job_id && written.is_string() &&
         written.get<std::string>() >= Time(since_ms);
}

absl::Status AtPath(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::UnavailableError(
      absl::StrCat("cannot write the report to ", path, ": ", status.message()));
}

}  // namespace

std::string JsonReport(const ReportFacts& facts, const Outcome& outcome) {
  Json awaited = Json::array(), consequences = Json::array(), history = Json::array();
  for (const WorkerPlace& place : outcome.awaited) {
    awaited.push_back({{"rank", place.rank},
                       {"host", place.host},
                       {"local_rank", place.local_rank},
                       {"did", Text(place.did)}});
  }
  for (size_t i = outcome.worker_failed ? 1 : 0; i < outcome.failures.size(); ++i) {
    consequences.push_back(OfFailure(outcome.failures[i]));
  }
  for (const PastRound& past : outcome.history) {
    history.push_back({{"round", past.round},
                       {"reason", past.reason},
                       {"first_cause", past.failure ? OfFailure(*past.failure) : Json(nullptr)}});
  }
  Json restart_times = Json::array();
  for (const Duration each : facts.restarts) restart_times.push_back(Seconds(each));
  const Json report = {
      {"schema", kSchema},
      {"job_id", facts.job_id},
      {"written_by", facts.host},
      {"written_at", Time(facts.wall_ms)},
      {"whole", outcome.report},
      {"outcome", std::string(Word(outcome))},
      {"exit_code", outcome.exit_code},
      {"reason", Text(outcome.reason)},
      {"first_cause", outcome.worker_failed ? OfFailure(outcome.failures.front()) : Json(nullptr)},
      {"cause_reason", Text(outcome.cause_reason)},
      {"did_not_fail", awaited},
      {"consequences", consequences},
      {"failures", outcome.total_failures},
      {"restarts", outcome.restart_count},
      {"max_restarts", facts.max_restarts},
      {"uncounted", outcome.uncounted},
      {"seconds", Seconds(facts.whole)},
      {"seconds_running", Seconds(facts.ran)},
      {"seconds_of_restarts", restart_times},
      {"seconds_lost",
       {{"start", Seconds(facts.lost.start)},
        {"slowest_rank", Seconds(facts.lost.waiting)},
        {"checkpoints", Seconds(facts.lost.saving)},
        {"restarts", Seconds(facts.lost.restarts)}}},
      {"excluded", outcome.excluded},
      {"ranks", facts.ranks},
      {"history", history},
      {"advice", Text(AdviceFor(outcome, facts.store_port))}};
  return report.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

absl::Status WriteReport(const std::string& path, const std::string& text) {
  return AtPath(path, WriteWholeFile(path, text));
}

absl::Status WriteLesserReport(const std::string& path, const std::string& text,
                               const std::string& job_id, int64_t since_ms) {
  const absl::Status made = WriteWholeFile(path, text, {.may_replace = false});
  if (!absl::IsAlreadyExists(made)) return AtPath(path, made);
  if (HasWholeReport(path, job_id, since_ms)) return absl::OkStatus();
  return WriteReport(path, text);
}

}  // namespace hlaunch
