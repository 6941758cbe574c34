// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/pmix_words.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// By PmixNews::Kind.
constexpr absl::string_view kKinds[] = {"environment", "ready",   "connected", "finalized",
                                        "abort",       "waiting", "broken",    "spawn"};

// One option, and the member of the plan that holds its value.
struct PmixOption {
  absl::string_view name;
  std::string PmixPlan::*text = nullptr;
  int PmixPlan::*number = nullptr;
};

constexpr PmixOption kOptions[] = {{"--library", &PmixPlan::library},
                                   {"--namespace", &PmixPlan::name_space},
                                   {"--directory", &PmixPlan::directory},
                                   {"--host", &PmixPlan::host},
                                   {"--store-host", &PmixPlan::store_host},
                                   {"--programs", &PmixPlan::programs},
                                   {"--first-rank", nullptr, &PmixPlan::first_rank},
                                   {"--nproc", nullptr, &PmixPlan::nproc},
                                   {"--node-rank", nullptr, &PmixPlan::node_rank},
                                   {"--num-nodes", nullptr, &PmixPlan::num_nodes}};
constexpr absl::string_view kPort = "--store-port";
constexpr absl::string_view kOversubscribed = "--oversubscribed";
constexpr absl::string_view kOptional = "--optional";
constexpr absl::string_view kAnyUser = "--any-user";

// Takes one option and its value. Returns false if there is no such option or the value is not a
// number.
bool TakeOption(absl::string_view name, const std::string& value, PmixPlan& plan) {
  int number = 0;
  const bool is_number = absl::SimpleAtoi(value, &number) && number >= 0;
  if (name == kPort) {
    plan.store_port = static_cast<uint16_t>(number);
    return is_number && number < 1 << 16;
  }
  for (const PmixOption& option : kOptions) {
    if (option.name != name) continue;
    if (option.text != nullptr) {
      plan.*option.text = value;
    } else {
      plan.*option.number = number;
    }
    return option.text != nullptr || is_number;
  }
  return false;
}

nlohmann::json ToJson(const SpawnRequest& request) {
  nlohmann::json programs = nlohmann::json::array();
  for (const OtherProgram& program : request.programs) {
    programs.push_back({{"ranks", program.ranks},
                        {"argv", program.argv},
                        {"environment", program.environment},
                        {"directory", program.directory}});
  }
  return {{"programs", programs},
          {"hosts", request.hosts},
          {"world", request.pmix_world},
          {"environments", request.environments}};
}

// Throws the exceptions of nlohmann::json.
SpawnRequest SpawnIn(const nlohmann::json& read) {
  SpawnRequest request;
  for (const nlohmann::json& program : read.at("programs")) {
    request.programs.push_back({program.at("ranks"), program.at("argv"), program.at("environment"),
                                program.at("directory")});
  }
  request.hosts = read.at("hosts").get<std::vector<std::string>>();
  request.pmix_world = read.at("world");
  request.environments = read.at("environments").get<std::vector<std::vector<std::string>>>();
  return request;
}

}  // namespace

std::vector<std::string> PmixArguments(const PmixPlan& plan) {
  std::vector<std::string> words;
  for (const PmixOption& option : kOptions) {
    words.emplace_back(option.name);
    words.push_back(option.text != nullptr ? plan.*option.text : absl::StrCat(plan.*option.number));
  }
  words.emplace_back(kPort);
  words.push_back(absl::StrCat(plan.store_port));
  if (plan.oversubscribed) words.emplace_back(kOversubscribed);
  if (plan.optional) words.emplace_back(kOptional);
  if (plan.any_user) words.emplace_back(kAnyUser);
  return words;
}

absl::StatusOr<PmixPlan> ParsePmixArguments(const std::vector<std::string>& words) {
  PmixPlan plan;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kOversubscribed) {
      plan.oversubscribed = true;
    } else if (words[i] == kOptional) {
      plan.optional = true;
    } else if (words[i] == kAnyUser) {
      plan.any_user = true;
    } else if (i + 1 == words.size() || !TakeOption(words[i], words[i + 1], plan)) {
      return absl::InvalidArgumentError(absl::StrCat(words[i], " is no option with its value; ",
                                                     kPmixProgram, " is started by hlaunch"));
    } else {
      ++i;
    }
  }
  const bool whole = (!plan.library.empty() || plan.optional) && !plan.name_space.empty() &&
                     plan.nproc > 0 && plan.node_rank < plan.num_nodes;
  if (whole) return plan;
  return absl::InvalidArgumentError(
      absl::StrCat(kPmixProgram, " is started by hlaunch; it serves Open MPI programs"));
}

std::string ToLine(const PmixNews& news) {
  nlohmann::json line = {{"kind", std::string(kKinds[static_cast<size_t>(news.kind)])}};
  if (news.rank >= 0) line["rank"] = news.rank;
  if (news.kind == PmixNews::Kind::kAbort) line["code"] = news.code;
  if (!news.text.empty()) line["text"] = news.text;
  if (!news.environment.empty()) line["environment"] = news.environment;
  if (news.world > 0) line["world"] = news.world;
  if (news.kind == PmixNews::Kind::kSpawn) line["spawn"] = ToJson(news.spawn);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<PmixNews> PmixNewsIn(absl::string_view line) {
  const auto bad = [] { return absl::InvalidArgumentError("a line that is none of its words"); };
  const nlohmann::json read = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (!read.is_object()) return bad();
  try {
    const auto kind = read.value("kind", std::string());
    const auto found = std::find(std::begin(kKinds), std::end(kKinds), absl::string_view(kind));
    if (found == std::end(kKinds)) return bad();
    return PmixNews{static_cast<PmixNews::Kind>(found - std::begin(kKinds)),
                    read.value("rank", -1),
                    read.value("code", 0),
                    read.value("text", std::string()),
                    read.value("environment", std::vector<std::string>()),
                    read.value("world", 0),
                    read.contains("spawn") ? SpawnIn(read["spawn"]) : SpawnRequest{}};
  } catch (const nlohmann::json::exception&) {
    return bad();
  }
}

}  // namespace hlaunch
