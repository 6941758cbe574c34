// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/standstill.h"

#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/descendants.h"

namespace hlaunch {
namespace {

// "gdb[4711]"; empty if nothing traces `pid`.
std::string TracerOf(pid_t pid) {
  const std::string status = ReadSmallFile(absl::StrCat("/proc/", pid, "/status"));
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    pid_t tracer = 0;
    if (!absl::ConsumePrefix(&line, "TracerPid:")) continue;
    if (!absl::SimpleAtoi(line, &tracer) || tracer == 0) return "";
    const std::optional<ProcessEntry> process = ReadProcess(tracer);
    return absl::StrCat(process ? process->command : "process", "[", tracer, "]");
  }
  return "";
}

}  // namespace

std::string StandstillWords(char state, absl::string_view kernel, absl::string_view debugger) {
  const std::string in =
      kernel.empty() || kernel == "0" ? std::string() : absl::StrCat(" in ", kernel);
  if (!debugger.empty()) return absl::StrCat("is held by the debugger ", debugger);
  switch (state) {
    case 'T':
    case 't':
      return "is stopped, as by SIGSTOP";
    case 'D':
      return absl::StrCat("is stuck in the kernel", in.empty() ? "" : ",", in);
    case 'R':
      return "runs, and its loop does not turn";
    case '?':
      return "does not answer";
    default:
      return absl::StrCat("waits", in, ", and its loop does not turn");
  }
}

std::string DescribeStandstill(pid_t pid) {
  const std::optional<ProcessEntry> process = ReadProcess(pid);
  return StandstillWords(process ? process->state : '?',
                         ReadSmallFile(absl::StrCat("/proc/", pid, "/wchan")), TracerOf(pid));
}

}  // namespace hlaunch
