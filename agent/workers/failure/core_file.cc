// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/failure/core_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/descendants.h"

namespace hlaunch {

std::string WhereTheCoreIs(absl::string_view pattern, bool uses_pid, pid_t pid) {
  if (absl::ConsumePrefix(&pattern, "|")) {
    const absl::string_view program = pattern.substr(0, pattern.find(' '));
    const bool systemd = absl::EndsWith(program, "/systemd-coredump");
    return absl::StrCat("the kernel gave its core to ", program,
                        systemd ? absl::StrCat(" (coredumpctl info ", pid, ")") : "");
  }
  std::string name = absl::StrReplaceAll(pattern, {{"%p", absl::StrCat(pid)}});
  if (uses_pid && !absl::StrContains(pattern, "%p")) absl::StrAppend(&name, ".", pid);
  const bool is_path = absl::StartsWith(name, "/");
  return absl::StrCat("its core is ", name, is_path ? "" : " in its working directory",
                      absl::StrContains(name, "%") ? " (man 5 core says what % stands for)" : "");
}

std::string WhereTheCoreIs(pid_t pid) {
  const std::string pattern = ReadSmallFile("/proc/sys/kernel/core_pattern");
  const std::string uses_pid = ReadSmallFile("/proc/sys/kernel/core_uses_pid");
  return WhereTheCoreIs(absl::StripAsciiWhitespace(pattern), absl::StartsWith(uses_pid, "1"), pid);
}

}  // namespace hlaunch
