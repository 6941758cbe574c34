// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/daemon_config.h"

#include <climits>
#include <cstring>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/user_files.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr int kMostSlots = 1'000'000;
constexpr int kMostParts = 10'000;
constexpr size_t kMostLabels = 64;
constexpr size_t kLongestName = 64;
constexpr string_view kNoLimit = "infinity";

// Each function takes `value`, or returns what would be right. Empty: it has taken `value`.
using Take = std::string (*)(string_view value, DaemonConfig& config);

// Returns true if `text` is a valid name of a label or a group.
bool IsName(string_view text) {
  if (text.empty() || text.size() > kLongestName || text[0] == '-') return false;
  for (const char letter : text) {
    const bool fits = absl::ascii_isalnum(static_cast<unsigned char>(letter)) ||
                      string_view("-_.=:").find(letter) != string_view::npos;
    if (!fits) return false;
  }
  return true;
}

std::string TakeSlots(string_view value, DaemonConfig& config) {
  int slots = 0;
  if (!ParseInt(value, 0, kMostSlots, &slots)) return "a number of workers, such as 8";
  config.slots = slots;
  return "";
}

std::string TakeLabels(string_view value, DaemonConfig& config) {
  config.labels = absl::StrSplit(value, absl::ByAnyChar(", \t"), absl::SkipEmpty());
  bool fit = config.labels.size() <= kMostLabels;
  for (const std::string& label : config.labels) fit = fit && IsName(label);
  return fit ? "" : "at most 64 words with commas between, such as fast,rack=3";
}

std::string TakeAdminGroup(string_view value, DaemonConfig& config) {
  config.admin_group = std::string(value);
  return value.empty() || IsName(value) ? "" : "the name of a group";
}

std::string TakeLeastUid(string_view value, DaemonConfig& config) {
  int least = 0;
  if (!ParseInt(value, 1, INT_MAX, &least)) return "a user's number from 1 on, such as 1000";
  config.rule.least_uid = static_cast<uint32_t>(least);
  return "";
}

std::string TakeYesOrNo(string_view value, bool& taken) {
  taken = value == "yes";
  return value == "yes" || value == "no" ? "" : "yes or no";
}

std::string TakeAllowRoot(string_view value, DaemonConfig& config) {
  return TakeYesOrNo(value, config.rule.allow_root);
}

std::string TakePrivateTmp(string_view value, DaemonConfig& config) {
  return TakeYesOrNo(value, config.private_tmp);
}

// Reads `text` as a number of units of 2^`shift`. The result must be from `least` to `most`.
bool TakeLimit(string_view text, uint64_t least, uint64_t most, int shift,
               std::optional<uint64_t>& taken) {
  uint64_t number = 0;
  if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text[0])) ||
      !absl::SimpleAtoi(text, &number) || number > (most >> shift) || (number << shift) < least) {
    return false;
  }
  taken = number << shift;
  return true;
}

std::string TakeMemoryMax(string_view value, DaemonConfig& config) {
  constexpr uint64_t kLeast = 16 << 20, kMost = uint64_t{1} << 50;
  constexpr string_view kUnits = "KMGT";
  config.limits.memory_max.reset();
  if (value == kNoLimit) return "";
  const size_t unit = value.empty() ? kUnits.npos : kUnits.find(value.back());
  if (unit != kUnits.npos) value.remove_suffix(1);
  const int shift = unit == kUnits.npos ? 0 : 10 * static_cast<int>(unit + 1);
  return TakeLimit(value, kLeast, kMost, shift, config.limits.memory_max)
             ? ""
             : "bytes from 16M on, such as 64G, or infinity";
}

std::string TakeTasksMax(string_view value, DaemonConfig& config) {
  constexpr uint64_t kLeast = 32, kMost = 4'194'304;
  config.limits.tasks_max.reset();
  if (value == kNoLimit) return "";
  return TakeLimit(value, kLeast, kMost, 0, config.limits.tasks_max)
             ? ""
             : "a number of processes and threads from 32 on, such as 4096, or infinity";
}

std::string TakeCpuQuota(string_view value, DaemonConfig& config) {
  constexpr uint64_t kLeast = 1, kMost = 1'000'000;
  config.limits.cpu_quota.reset();
  if (value == kNoLimit) return "";
  return absl::ConsumeSuffix(&value, "%") &&
                 TakeLimit(value, kLeast, kMost, 0, config.limits.cpu_quota)
             ? ""
             : "percent of one CPU, such as 800% for eight, or infinity";
}

std::string TakeMaxParts(string_view value, DaemonConfig& config) {
  return ParseInt(value, 1, kMostParts, &config.max_parts) ? "" : "a number from 1 to 10000";
}

struct Row {
  OptionRow says;  // The row of --help.
  Take take;
};
const Row kRows[] = {
    {{"", "", "slots", "= N", "workers without devices at the same time (as many as CPUs)",
      nullptr},
     TakeSlots},
    {{"", "", "labels", "= A,B=C", "words by which jobs choose hosts (none)", nullptr}, TakeLabels},
    {{"", "", "admin-group", "= NAME",
      "its members may see and stop all jobs and drain hosts, as root may (none)", nullptr},
     TakeAdminGroup},
    {{"", "", "least-uid", "= N", "users with lower numbers run nothing here (1000)", nullptr},
     TakeLeastUid},
    {{"", "", "allow-root", "= yes|no", "whether root may run jobs here (no)", nullptr},
     TakeAllowRoot},
    {{"", "", "max-parts", "= N", "parts of jobs at the same time (256)", nullptr}, TakeMaxParts},
    {{"", "", "private-tmp", "= yes|no",
      "each part has a /tmp and a /var/tmp of its own, removed with it; /dev/shm stays the host's "
      "(no)",
      nullptr},
     TakePrivateTmp},
    {{"", "", "memory-max", "= BYTES",
      "memory of a part, such as 64G; the kernel kills what needs more (infinity)", nullptr},
     TakeMemoryMax},
    {{"", "", "tasks-max", "= N", "processes and threads of a part (infinity)", nullptr},
     TakeTasksMax},
    {{"", "", "cpu-quota", "= N%", "CPU time of a part; 100% is one CPU (infinity)", nullptr},
     TakeCpuQuota}};

std::string Names() {
  return absl::StrJoin(
      kRows, ", ", [](std::string* out, const Row& row) { absl::StrAppend(out, row.says.name); });
}

// Returns why the line is wrong. Empty: the line was right and has been taken.
std::string TakeLine(string_view line, std::set<std::string>& seen, DaemonConfig& config) {
  line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
  if (line.empty()) return "";
  const size_t equals = line.find('=');
  if (equals == string_view::npos) return "expected NAME = VALUE";
  const std::string name(absl::StripAsciiWhitespace(line.substr(0, equals)));
  const string_view value = absl::StripAsciiWhitespace(line.substr(equals + 1));
  for (const Row& row : kRows) {
    if (name != row.says.name) continue;
    if (!seen.insert(name).second) return absl::StrCat(name, " is said twice; leave one out");
    const std::string right = row.take(value, config);
    if (right.empty()) return "";
    return absl::StrCat(name, " = ", PrintableLine(value), ": expected ", right);
  }
  return absl::StrCat("there is no ", PrintableLine(name), "; there are ", Names());
}

}  // namespace

std::string DescribeDaemonConfig() {
  std::vector<OptionRow> rows;
  for (const Row& row : kRows) rows.push_back(row.says);
  return DescribeOptions(rows);
}

absl::StatusOr<DaemonConfig> ParseDaemonConfig(string_view text, string_view file) {
  DaemonConfig config;
  std::set<std::string> seen;
  int number = 0;
  for (const string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::string wrong = TakeLine(line, seen, config);
    if (!wrong.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ", line ", number, ": ", wrong));
    }
  }
  return config;
}

absl::StatusOr<DaemonConfig> ReadDaemonConfig(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (text.ok()) return ParseDaemonConfig(*text, path);
  if (absl::IsNotFound(text.status())) return DaemonConfig();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", path, ": ", text.status().message()));
}

}  // namespace hlaunch
