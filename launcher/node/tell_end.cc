// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/tell_end.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/output/console.h"
#include "launcher/report/job/doctor.h"
#include "launcher/report/job/error_json.h"
#include "launcher/report/job/json_report.h"
#include "launcher/report/job/summary.h"
#include "launcher/report/job/termination_message.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/terminal_text.h"
#include "proto/base/user_files.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {
namespace {

// The clocks of two nodes of a job may differ by so much.
constexpr Duration kClockSkew = std::chrono::minutes(1);

void PrintFindings(const std::vector<CheckResult>& checked, bool json) {
  std::fputs(TerminalLines(json ? DoctorJson(checked) : DoctorText(checked)).c_str(), stdout);
  std::fflush(stdout);
}

// Returns whether another node reports the end: one command with --hosts started this node and
// others, and one node reports for all.
bool OthersTell(const JobSpec& spec, const AgentResult& result) {
  const std::vector<std::string>& environment = spec.worker.inherited_env;
  const bool quiet = std::find(environment.begin(), environment.end(),
                               absl::StrCat(kEnvQuietEnd, "=1")) != environment.end();
  return quiet && (result.outcome ? !result.outcome->report : absl::IsCancelled(result.end));
}

// Writes the report's file on every node whose user asked for it. The node that prints the report
// knows most, so no other one replaces its file in a folder that they share.
void KeepReport(const std::string& file, const JobSpec& spec, const AgentResult& result,
                const Goodput& goodput) {
  if (file.empty() || OthersTell(spec, result)) return;
  Outcome outcome;
  outcome.exit_code = result.exit_code;
  outcome.reason = std::string(result.end.message());
  if (result.outcome) outcome = *result.outcome;
  const Instant now = MonotonicClock().Now();
  const ReportFacts facts = {spec.job_id,        HostName(),         spec.policy.max_restarts,
                             result.store_port,  WallMillis(),       goodput.Ran(now),
                             goodput.Whole(now), goodput.restarts(), result.ranks,
                             goodput.Lost()};
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(facts.whole + kClockSkew);
  const std::string json = JsonReport(facts, outcome);
  const absl::Status kept =
      outcome.report ? WriteReport(file, json)
                     : WriteLesserReport(file, json, spec.job_id, facts.wall_ms - age.count());
  if (!kept.ok()) LogError(kept.message());
}

// Writes the termination message on every node that fails, because each has a container of its own.
void KeepTermination(const std::string& file, const JobSpec& spec, const AgentResult& result) {
  if (result.exit_code == 0) return;
  SummaryStyle style;
  style.max_restarts = spec.policy.max_restarts;
  style.store_port = result.store_port;
  const std::vector<std::string> lines = result.outcome
                                             ? SummaryLines(*result.outcome, style)
                                             : std::vector{std::string(result.end.message())};
  const std::string failed =
      KeepTerminationMessage(file.empty() ? kTerminationLog : file, TerminationMessage(lines));
  if (!failed.empty()) LogWarning(failed);
}

// Writes the first cause to the TORCHELASTIC_ERROR_FILE of this process, as torchrun does: who
// started hlaunch named it.
void KeepFirstCause(const JobSpec& spec, const AgentResult& result) {
  if (!result.outcome || result.outcome->failures.empty()) return;
  for (absl::string_view entry : spec.worker.inherited_env) {
    if (!absl::ConsumePrefix(&entry, absl::StrCat(kEnvErrorFile, "=")) || entry.empty()) continue;
    const std::string path(entry);
    NewFile plain;
    plain.follow = false;  // Who can write to that folder could else choose what is replaced.
    const absl::Status kept = WriteWholeFile(path, ErrorJson(*result.outcome), plain);
    if (!kept.ok()) LogWarning(absl::StrCat(kEnvErrorFile, " ", path, ": ", kept.message()));
  }
}

void PrintSummary(const JobSpec& spec, const AgentResult& result, const NodeOutput& output,
                  const Goodput& goodput) {
  if (OthersTell(spec, result)) return;
  if (!result.outcome) {
    if (absl::IsCancelled(result.end)) {
      const bool whole = spec.policy.max_nodes == 1;
      LogWarning(
          absl::StrCat(whole ? "job stopped: " : "this node left the job: ", result.end.message()));
      LogWarning(absl::StrCat("  exit code ", result.exit_code));
    } else if (!result.end.ok()) {
      LogError(result.end.message());
    }
    return;
  }
  if (!result.outcome->report) {  // One node reports for the job; the others print one line.
    const std::string line = SummaryLine(*result.outcome);
    if (!line.empty()) LogError(line);
    return;
  }
  SummaryStyle style;
  style.verbose = output.log_level == LogLevel::kDebug;
  style.colour = !output.json && ConsoleStyleOf(STDERR_FILENO).colour;
  style.max_restarts = spec.policy.max_restarts;
  style.store_port = result.store_port;
  style.goodput = goodput.Text(MonotonicClock().Now());
  style.lost = goodput.LostText(MonotonicClock().Now());
  if (!style.goodput.empty() && !result.saved_imports.empty()) {
    absl::StrAppend(&style.goodput, "; ", result.saved_imports);
  }
  for (const std::string& line : SummaryLines(*result.outcome, style)) {
    LogColoured(LogLevel::kError, line);
  }
}

}  // namespace

std::string EndReason(const AgentResult& result) {
  return result.outcome ? result.outcome->reason : std::string(result.end.message());
}

void TellEnd(const Options& options, const JobSpec& spec, const AgentResult& result,
             const std::vector<CheckResult>& checked, const Goodput& goodput) {
  KeepReport(options.output.report_file, spec, result, goodput);
  KeepTermination(options.output.termination_log, spec, result);
  KeepFirstCause(spec, result);
  if (options.instead.doctor) PrintFindings(checked, options.instead.doctor_json);
  PrintSummary(spec, result, options.output, goodput);
}

}  // namespace hlaunch
