// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/check_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/text/printable.h"
#include "launcher/text/text_table.h"
#include "nlohmann/json.hpp"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr char kCommand[] = "hlaunch check";
constexpr int kMaxDevices = 1024;
constexpr double kLeastWatch = 0.1;  // Seconds.

std::string HelpText() {
  return absl::StrCat(
      "usage: hlaunch check [--full] [--devices KIND[:N]] [--json] ...\n\n"
      "Checks whether this node is fit for a job: devices, PCIe links, error counters, kernel "
      "log,\n"
      "network, memory, limits, clock, disk, processor; and which Python and torch scripts get.\n"
      "What cannot be checked here is unknown, not wrong. A script named `check` is started as\n"
      "`hlaunch ./check`.\n\n",
      DescribeOptions(CheckOptionRows()), "\nExit code: 0 nothing fails; 2 wrong usage; ",
      kExitPreflight, " a check fails.\n");
}

absl::Status ReadDevices(absl::string_view text, DevicesWanted& wanted) {
  const size_t colon = text.find(':');
  const absl::string_view kind = text.substr(0, colon);
  std::vector<std::string> known;
  for (const DeviceKind each : kDeviceKinds) {
    known.push_back(KindName(each));
    if (kind == KindName(each)) wanted.kind = each;
  }
  wanted.count = 1;
  const bool counted = colon != absl::string_view::npos;
  if (!wanted.kind || (counted && (!absl::SimpleAtoi(text.substr(colon + 1), &wanted.count) ||
                                   wanted.count < 1 || wanted.count > kMaxDevices))) {
    return absl::InvalidArgumentError(absl::StrCat("--devices ", PrintableLine(text),
                                                   ": expected KIND or KIND:N, as in hpu:8; a ",
                                                   "kind is one of ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// MASTER:PORT,ROUND,NODE_RANK,NODES,HOST
absl::StatusOr<JointPlan> ReadJoint(absl::string_view text, bool full) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, absl::MaxSplits(',', 4));
  JointPlan plan;
  plan.full = full;
  uint32_t port = 0;
  const size_t colon = words[0].rfind(':');
  const bool read = words.size() == 5 && colon != absl::string_view::npos &&
                    absl::SimpleAtoi(words[0].substr(colon + 1), &port) && port <= 65535 &&
                    absl::SimpleAtoi(words[1], &plan.round) &&
                    absl::SimpleAtoi(words[2], &plan.node_rank) &&
                    absl::SimpleAtoi(words[3], &plan.size) && plan.size <= kMaxNodes &&
                    0 <= plan.node_rank && plan.node_rank < plan.size;
  if (!read) {
    return absl::InvalidArgumentError(
        absl::StrCat("--join ", PrintableLine(text),
                     ": expected MASTER:PORT,ROUND,NODE_RANK,NODES,HOST, as agents give it"));
  }
  plan.master =
      std::string(absl::StripSuffix(absl::StripPrefix(words[0].substr(0, colon), "["), "]"));
  plan.port = static_cast<uint16_t>(port);
  plan.host = std::string(words[4]);
  return plan;
}

std::string ValueText(const CheckResult& result) {
  if (!result.value) return "-";
  const std::string unit = result.unit.empty() ? "" : absl::StrCat(" ", result.unit);
  const double value = *result.value;
  const bool whole = value == static_cast<double>(static_cast<int64_t>(value));
  return whole ? absl::StrCat(static_cast<int64_t>(value), unit)
               : absl::StrFormat("%.*f%s", value < 10 ? 2 : 1, value, unit);
}

}  // namespace

absl::StatusOr<CheckOptions> ParseCheckOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 2, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read,
                           ReadWords(kCommand, CheckOptionRows(), words, OptionPlace::kAnywhere));
  CheckOptions options;
  if (read.Has("--help")) {
    options.text_to_print = HelpText();
    return options;
  }
  if (!read.rest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hlaunch check takes no word like ", PrintableLine(read.rest[0]),
                     "; to start a script of that name, write hlaunch ./check"));
  }
  if (read.Has("--devices")) {
    HLAUNCH_RETURN_IF_ERROR(ReadDevices(read.Get("--devices", ""), options.plan.devices));
  }
  options.plan.sysroot = read.Get("--sysroot", "");
  options.plan.log_directory = read.Get("--log-dir", "");
  options.plan.master = read.Get("--master", "");
  options.plan.full = read.Has("--full");
  if (read.Has("--join")) {
    HLAUNCH_ASSIGN_OR_RETURN(options.plan.joint,
                             ReadJoint(read.Get("--join", ""), options.plan.full));
  }
  if (read.Has("--watch")) {
    const std::string text = read.Get("--watch", "");
    const absl::StatusOr<Duration> watch = ParseTimeout(text, kLeastWatch);
    if (!watch.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--watch ", PrintableLine(text), ": ", watch.status().message()));
    }
    options.plan.watch = *watch;
  }
  options.json = read.Has("--json");
  options.lines = read.Has("--lines");
  return options;
}

std::vector<std::string> CheckCommand(const std::string& program, const CheckPlan& plan) {
  std::vector<std::string> words = {program, "check", "--lines"};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  if (plan.full) words.push_back("--full");
  if (plan.devices.kind) {
    add("--devices", absl::StrCat(KindName(*plan.devices.kind), ":", plan.devices.count));
  }
  add("--log-dir", plan.log_directory);
  add("--master", plan.master);
  add("--sysroot", plan.sysroot);
  if (plan.watch > Duration::zero()) {
    add("--watch", absl::StrCat(std::chrono::duration<double>(plan.watch).count()));
  }
  if (plan.joint) {
    add("--join",
        absl::StrCat(HostPort(plan.joint->master, plan.joint->port), ",", plan.joint->round, ",",
                     plan.joint->node_rank, ",", plan.joint->size, ",", plan.joint->host));
  }
  return words;
}

std::string CheckText(const std::vector<CheckResult>& results) {
  std::vector<std::vector<std::string>> rows = {{"CHECK", "STATE", "VALUE", "WHAT WAS SEEN"}};
  std::string advice;
  for (const CheckResult& result : results) {
    rows.push_back({result.name, StateName(result.state), ValueText(result),
                    result.reason.empty() ? "-" : result.reason});
    if (!result.advice.empty()) {
      absl::StrAppend(&advice, result.name, ": ", PrintableLine(result.advice), "\n");
    }
  }
  return absl::StrCat(TextTable(std::move(rows)), advice.empty() ? "" : "\n", advice);
}

std::string CheckJson(const std::vector<CheckResult>& results) {
  nlohmann::ordered_json json;
  json["state"] = StateName(WorstOf(results));
  json["checks"] = nlohmann::ordered_json::array();
  for (const CheckResult& result : results) {
    json["checks"].push_back(nlohmann::ordered_json::parse(ToLine(result)));
  }
  return JsonText(json);
}

}  // namespace hlaunch
