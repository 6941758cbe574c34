// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/explain_place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "launcher/text/text_table.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

// Options that say where the job runs, from any source.
constexpr const char* kPlaceOptions[] = {"--nnodes",      "--node-rank",      "--rdzv-endpoint",
                                         "--rdzv-id",     "--nproc-per-node", "--master-addr",
                                         "--master-port", "--standalone",     "--shutdown-timeout",
                                         "--hosts",       "--launch-agent"};

struct Row {
  PlaceValue value;
  bool taken = false;
};

const FoundValue* FindIn(const std::vector<FoundValue>& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const FoundValue& value) { return value.row->name == name; });
  return found == values.end() ? nullptr : &*found;
}

std::string SourceOf(const FoundValue& value) {
  return value.source == OptionSource::kCommandLine ? "the command line" : value.origin;
}

std::vector<Row> MakeRows(const ClusterPlace& place, const std::vector<FoundValue>& given,
                          const std::vector<FoundValue>& taken) {
  std::vector<Row> rows;
  for (const char* option : kPlaceOptions) {
    if (const FoundValue* value = FindIn(given, option)) {
      rows.push_back({{option, value->value, SourceOf(*value), "given"}, true});
    }
  }
  for (PlaceValue value : place.values) {
    const FoundValue* used = value.is_option() ? FindIn(taken, value.name) : nullptr;
    const FoundValue* stronger = FindIn(given, value.name);
    if (stronger != nullptr) {
      absl::StrAppend(&value.meaning, "; not taken, ", SourceOf(*stronger), " says ",
                      stronger->value);
    } else if (value.is_option() && used == nullptr) {
      absl::StrAppend(&value.meaning, "; not needed beside the rest");
    }
    rows.push_back({std::move(value), used != nullptr});
  }
  return rows;
}

nlohmann::ordered_json ToJson(const ClusterPlace& place, const std::vector<Row>& rows,
                              const std::vector<std::string>& warnings,
                              const absl::Status& status) {
  nlohmann::ordered_json json = {{"cluster", place.cluster}, {"reason", place.reason}};
  json["refusal"] = status.ok() ? nlohmann::ordered_json(nullptr)
                                : nlohmann::ordered_json(std::string(status.message()));
  json["warnings"] = warnings;
  json["values"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    json["values"].push_back({{"name", row.value.name},
                              {"value", row.value.value},
                              {"source", row.value.source},
                              {"meaning", row.value.meaning},
                              {"taken", row.taken}});
  }
  return json;
}

}  // namespace

std::string ExplainPlace(const ClusterPlace& place, const std::vector<FoundValue>& given,
                         const absl::StatusOr<TakenPlace>& taken, bool json) {
  const TakenPlace used = taken.ok() ? *taken : TakenPlace();
  const std::vector<Row> rows = MakeRows(place, given, used.values);
  if (json) return JsonText(ToJson(place, rows, used.warnings, taken.status()));
  std::string text = absl::StrCat("cluster: ", place.cluster, "\n");
  absl::StrAppend(&text, taken.ok() ? place.reason : std::string(taken.status().message()), "\n");
  for (const std::string& warning : used.warnings) absl::StrAppend(&text, warning, "\n");
  if (rows.empty()) return text;
  std::vector<std::vector<std::string>> table = {{"WHAT", "VALUE", "FROM", "MEANS"}};
  for (const Row& row : rows) {
    table.push_back({row.value.name, row.value.value, row.value.source, row.value.meaning});
  }
  return absl::StrCat(text, "\n", TextTable(std::move(table)));
}

}  // namespace hlaunch
