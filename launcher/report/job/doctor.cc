// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/doctor.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/health/joint/joint_report.h"
#include "launcher/report/job/check_text.h"
#include "launcher/text/text_table.h"
#include "nlohmann/json.hpp"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/values/figures.h"

namespace hlaunch {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxPairsShown = 64;  // If there are more, the slowest are shown.

std::optional<JointReport> JointOf(const std::vector<CheckResult>& results) {
  for (const CheckResult& result : results) {
    if (auto report = JointReportOf(result)) return report;
  }
  return {};
}

std::string Number(double value, absl::string_view unit) {
  constexpr int kDigits = 4;
  return FigureText(value, unit, kDigits);
}

std::string PairTable(const JointReport& report) {
  std::vector<PairResult> pairs = report.pairs;
  std::stable_sort(pairs.begin(), pairs.end(), [](const PairResult& a, const PairResult& b) {
    return std::pair(!a.failed, a.gbit_s) < std::pair(!b.failed, b.gbit_s);
  });
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "AND NODE", "LATENCY", "BANDWIDTH", "STATE"}};
  for (const PairResult& pair : pairs) {
    if (rows.size() > kMaxPairsShown) break;
    rows.push_back({HostOf(report, pair.pair.a), HostOf(report, pair.pair.b),
                    pair.failed ? "-" : Number(pair.latency_us, "us"),
                    pair.failed ? "-" : Number(pair.gbit_s, "Gbit/s"),
                    pair.failed ? pair.why : "ok"});
  }
  const size_t more = pairs.size() + 1 - rows.size();
  return absl::StrCat(TextTable(std::move(rows)),
                      more > 0 ? absl::StrCat("and ", more, " faster pairs\n") : "");
}

std::string FigureTable(const JointReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"FIGURE", "LOWEST", "OF NODE", "HIGHEST", "OF NODE", "MEAN"}};
  for (const auto& [rule, spread] : SpreadsOf(report)) {
    if (rule.scale == Scale::kOffset) continue;
    rows.push_back({rule.name, Number(spread.min, rule.unit),
                    HostOf(report, static_cast<int>(spread.min_at)), Number(spread.max, rule.unit),
                    HostOf(report, static_cast<int>(spread.max_at)),
                    Number(spread.mean, rule.unit)});
  }
  return rows.size() > 1 ? TextTable(std::move(rows)) : "";
}

}  // namespace

DoctorWords ReadDoctorWords(int argc, const char* const* argv) {
  DoctorWords words;
  words.job.emplace_back(argv[0]);
  for (int i = 2; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "--json") {
      words.json = true;
    } else if (word == "-h" || word == "--help") {
      words.help = true;
    } else {
      words.job.emplace_back(word);
    }
  }
  // These words come last, because the last value of a repeated option counts.
  for (const char* word : {"--preflight", "full", "--preflight-action", "fail", "--nproc-per-node",
                           "1", "--no-python", kDoctorProgram}) {
    words.job.emplace_back(word);
  }
  return words;
}

std::string DoctorHelp() {
  return absl::StrCat(
      "usage: hlaunch doctor [--json] [--nnodes N --rdzv-endpoint HOST:PORT ...]\n\n"
      "Checks what a job checks before it starts, and starts none. On one node: the same as\n"
      "`hlaunch check --full`. On several: start it on each with the options of the job, or\n"
      "under srun; nodes add numbers together and measure each other in pairs, node rank 0\n"
      "prints every pair and figure, and each node its own checks. A script named `doctor` is\n"
      "started as `hlaunch ./doctor`.\n\n"
      "  --json                    print one JSON object on each node\n"
      "  -h, --help                print this text\n\n"
      "Exit code: 0 nothing is wrong; 2 wrong usage; ",
      kExitPreflight, " a node is bad; others: see hlaunch --help.\n");
}

std::string DoctorText(const std::vector<CheckResult>& results) {
  std::string text = CheckText(results);
  const std::optional<JointReport> report = JointOf(results);
  if (!report || report->node_rank != 0) return text;
  if (!report->pairs.empty()) absl::StrAppend(&text, "\n", PairTable(*report));
  if (const std::string table = FigureTable(*report); !table.empty()) {
    absl::StrAppend(&text, "\n", table);
  }
  return text;
}

std::string DoctorJson(const std::vector<CheckResult>& results) {
  ordered_json json = ordered_json::parse(CheckJson(results));
  const std::optional<JointReport> report = JointOf(results);
  if (!report) return JsonText(json);
  json["node_rank"] = report->node_rank;
  json["hosts"] = report->hosts;
  json["pairs"] = ordered_json::array();
  for (const PairResult& pair : report->pairs) {
    ordered_json one = {{"node", pair.pair.a}, {"and_node", pair.pair.b}, {"failed", pair.failed}};
    if (pair.failed) {
      one["why"] = pair.why;
    } else {
      one["latency_us"] = pair.latency_us;
      one["gbit_s"] = pair.gbit_s;
    }
    json["pairs"].push_back(std::move(one));
  }
  json["figures"] = ordered_json::array();
  for (const auto& [rule, spread] : SpreadsOf(*report)) {
    json["figures"].push_back({{"name", rule.name},
                               {"unit", rule.unit},
                               {"lowest", spread.min},
                               {"lowest_node", spread.min_at},
                               {"highest", spread.max},
                               {"highest_node", spread.max_at},
                               {"mean", spread.mean}});
  }
  return JsonText(json);
}

}  // namespace hlaunch
