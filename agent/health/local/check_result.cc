// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/check_result.h"

#include <algorithm>

#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

constexpr CheckState kStates[] = {CheckState::kOk, CheckState::kUnknown, CheckState::kWarn,
                                  CheckState::kFail};

}  // namespace

const char* StateName(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kUnknown:
      return "unknown";
    case CheckState::kWarn:
      return "warn";
    case CheckState::kFail:
      return "fail";
  }
  return "";
}

CheckState WorstOf(const std::vector<CheckResult>& results) {
  CheckState worst = CheckState::kOk;
  for (const CheckResult& result : results) worst = std::max(worst, result.state);
  return worst;
}

std::string ToLine(const CheckResult& result) {
  nlohmann::ordered_json json = {{"name", result.name}};
  if (result.value) json["value"] = *result.value;
  json["unit"] = result.unit;
  json["state"] = StateName(result.state);
  json["reason"] = result.reason;
  json["advice"] = result.advice;
  if (!result.detail.empty()) json["detail"] = result.detail;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::optional<CheckResult> FromLine(absl::string_view line) {
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (!json.is_object()) return {};
  const auto text = [&](const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  CheckResult result{text("name"),  {}, text("unit"), {}, text("reason"), text("advice"),
                     text("detail")};
  const std::string state = text("state");
  const auto known = std::find_if(std::begin(kStates), std::end(kStates),
                                  [&](CheckState each) { return state == StateName(each); });
  if (result.name.empty() || known == std::end(kStates)) return {};
  result.state = *known;
  if (const auto it = json.find("value"); it != json.end() && it->is_number()) {
    result.value = it->get<double>();
  }
  return result;
}

}  // namespace hlaunch
