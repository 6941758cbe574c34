// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/check_node.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/health/health_helper.h"
#include "agent/health/watch_node.h"
#include "agent/machine/devices/device_files.h"
#include "asio/io_context.hpp"
#include "launcher/command/check_python.h"
#include "launcher/command/print_text.h"
#include "launcher/report/job/check_text.h"
#include "launcher/text/environment.h"
#include "launcher/text/programs.h"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

int ExitCodeFor(const std::vector<CheckResult>& results) {
  return WorstOf(results) == CheckState::kFail ? kExitPreflight : kExitOk;
}

void PrintLine(const CheckResult& result) {
  std::fputs((ToLine(result) + "\n").c_str(), stdout);
  std::fflush(stdout);  // The reader may not wait for the other results.
}

int PrintLines(const CheckPlan& plan) {
  std::vector<CheckResult> results;
  RunChecks(plan, [&](const CheckResult& result) {
    PrintLine(result);
    results.push_back(result);
  });
  return ExitCodeFor(results);
}

}  // namespace

int CheckNode(int argc, char** argv) {
  absl::StatusOr<CheckOptions> options = ParseCheckOptions(argc, argv);
  if (!options.ok()) {
    LogError(options.status().message());
    return kExitUsage;
  }
  if (options->text_to_print) return PrintText(*options->text_to_print);
  CheckPlan& plan = options->plan;
  if (!DeviceFiles(plan.sysroot).Exists("/")) {
    LogError(absl::StrCat("--sysroot ", plan.sysroot, ": there is no such directory"));
    return kExitUsage;
  }
  if (plan.watch > Duration::zero()) WatchNode(plan, STDIN_FILENO, PrintLine);
  if (options->lines) return PrintLines(plan);
  return CheckThisNode(plan, options->json);
}

int CheckThisNode(CheckPlan plan, bool json) {
  if (plan.log_directory.empty()) {
    const char* temporary = std::getenv("TMPDIR");
    plan.log_directory = temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
  }
  asio::io_context loop(1);
  std::vector<CheckResult> results;
  std::optional<CheckResult> python;
  std::optional<PythonCheck> python_check;
  if (plan.sysroot.empty()) {
    python_check.emplace(loop, Environment::OfThisProcess(),
                         [&](CheckResult result) { python = std::move(result); });
  }
  const HealthHelper helper(loop, CheckCommand(kThisProgram, plan), ChecksToAwait(plan),
                            [&](std::vector<CheckResult> all) { results = std::move(all); });
  loop.run();
  if (python) results.push_back(*std::move(python));
  return PrintText(json ? CheckJson(results) : CheckText(results), ExitCodeFor(results));
}

}  // namespace hlaunch
