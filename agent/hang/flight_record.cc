// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/hang/flight_record.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/hang/json_words.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxMembers = 1 << 16;
constexpr size_t kCallsKept = 4;   // For each group.
constexpr size_t kMaxTensors = 2;  // For one collective.
constexpr size_t kMaxExtents = 8;  // For one tensor.

struct TypeRow {
  absl::string_view name;  // As in torch's C++.
  absl::string_view word;  // As in torch's Python.
  int bytes;
};
constexpr TypeRow kTypes[] = {{"Float", "float32", 4},     {"Double", "float64", 8},
                              {"Half", "float16", 2},      {"Long", "int64", 8},
                              {"BFloat16", "bfloat16", 2}, {"Int", "int32", 4},
                              {"Bool", "bool", 1},         {"Short", "int16", 2},
                              {"Char", "int8", 1},         {"Byte", "uint8", 1}};

TypeRow TypeOf(absl::string_view name) {
  const auto row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                [&](const TypeRow& one) { return one.name == name; });
  return row != std::end(kTypes) ? *row : TypeRow{name, name, 0};
}

// "16 B", "4 MiB"
std::string ByteText(double bytes) {
  constexpr absl::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return absl::StrCat(std::round(bytes * 10) / 10, " ", kUnits[unit]);
}

// "[1024, 8] float32, [1] float32, 32 KiB"
std::string Sizes(const Json& entry) {
  const Json& sizes = At(entry, "input_sizes");
  const Json& types = At(entry, "input_dtypes");
  std::vector<std::string> words;
  double bytes = 0;
  for (size_t i = 0; sizes.is_array() && i < sizes.size(); ++i) {
    if (!sizes[i].is_array()) continue;
    const std::string name = types.is_array() && i < types.size() ? WordOf(types[i]) : "";
    const TypeRow type = TypeOf(name);
    std::vector<int64_t> extents;
    double here = type.bytes;
    for (const Json& one : sizes[i]) {
      if (extents.size() < kMaxExtents) extents.push_back(NumberOf(one));
      here *= static_cast<double>(NumberOf(one));
    }
    bytes += here;
    if (words.size() < kMaxTensors) {
      words.push_back(absl::StrCat("[", absl::StrJoin(extents, ", "), "]",
                                   type.word.empty() ? "" : " ", type.word));
    }
  }
  if (bytes >= 1) words.push_back(ByteText(bytes));
  return absl::StrJoin(words, ", ");
}

CollectiveCall RecordedCollective(const Json& entry) {
  CollectiveCall call;
  call.sequence = NumberOf(At(entry, "collective_seq_id"));
  const std::string name = WordOf(At(entry, "profiling_name"));
  call.op = name.substr(name.find(':') == name.npos ? 0 : name.find(':') + 1);
  call.sizes = Sizes(entry);
  const Json& retired = At(entry, "retired");
  call.inside =
      retired.is_boolean() && !retired.get<bool>() && WordOf(At(entry, "state")) != "completed";
  return call;
}

// Parses "[0, 1]", or a JSON list of ranks.
std::vector<Rank> Ranks(const Json& json) {
  if (json.is_string()) return ParseRankList(json.get_ref<const std::string&>());
  std::vector<Rank> ranks;
  for (size_t i = 0; json.is_array() && i < std::min(json.size(), kMaxMembers); ++i) {
    ranks.push_back(static_cast<Rank>(NumberOf(json[i])));
  }
  return ranks;
}

// Inserts `call` by its number: a recorder that has wrapped begins in the middle.
void Add(CollectiveCall call, GroupPicture* group) {
  std::vector<CollectiveCall>& latest = group->latest;
  const auto place = std::find_if(latest.begin(), latest.end(), [&](const CollectiveCall& one) {
    return one.sequence >= call.sequence;
  });
  if (place != latest.end() && place->sequence == call.sequence) {
    *place = std::move(call);
  } else {
    latest.insert(place, std::move(call));
  }
  // The first unfinished call is where the rank is, however many it has called since.
  if (latest.size() > kCallsKept) {
    latest.erase(latest[0].inside ? latest.begin() + 1 : latest.begin());
  }
}

}  // namespace

std::optional<FlightRecord> ParseFlightRecord(absl::string_view json) {
  const Json record = ParseJson(json);
  const Json& entries = At(record, "entries");
  if (!record.is_object() || At(record, "version").is_null()) return std::nullopt;
  FlightRecord found;
  std::map<std::string, GroupPicture> groups;
  for (size_t i = 0; entries.is_array() && i < entries.size(); ++i) {
    const Json& entry = entries[i];
    found.calls = std::max(found.calls, NumberOf(At(entry, "record_id")));
    const Json& name = At(entry, "process_group");
    const Json& p2p = At(entry, "is_p2p");
    if (p2p.is_boolean() && p2p.get<bool>()) {
      found.in_p2p = found.in_p2p || RecordedCollective(entry).inside;
      continue;
    }
    if (!name.is_array() || name.size() != 2) continue;
    const std::string key = WordOf(name[0]);
    if (groups.size() >= kMaxGroupsOfRank && groups.count(key) == 0) continue;
    GroupPicture& group = groups[key];
    group.name = key;
    group.description = WordOf(name[1]);
    Add(RecordedCollective(entry), &group);
  }
  const Json& config = At(record, "pg_config");
  if (config.is_object()) {
    for (const auto& item : config.items()) {
      const auto group = groups.find(WordOf(At(item.value(), "name")));
      if (group != groups.end()) group->second.members = Ranks(At(item.value(), "ranks"));
    }
  }
  for (auto& [key, group] : groups) found.groups.push_back(std::move(group));
  return found;
}

absl::string_view FlightProgress(absl::string_view json) {
  const size_t status = json.rfind("\"pg_status\"");
  return status == json.npos ? json : json.substr(status);
}

std::map<std::string, std::vector<Rank>> ParseGroups(absl::string_view json) {
  const Json told = ParseJson(json);
  std::map<std::string, std::vector<Rank>> groups;
  if (!told.is_object()) return groups;
  for (const auto& item : told.items()) {
    if (groups.size() < kMaxGroupsOfRank) groups[WordOf(item.key())] = Ranks(item.value());
  }
  return groups;
}

bool WaitsForStore(absl::string_view json) {
  const Json counters = ParseJson(json);
  if (!counters.is_object()) return false;
  for (const auto& item : counters.items()) {
    const bool waits = absl::EndsWith(item.key(), ".TCPStore__wait") ||
                       absl::EndsWith(item.key(), ".TCPStore__get");
    if (waits && NumberOf(At(item.value(), "active_count")) > 0) return true;
  }
  return false;
}

}  // namespace hlaunch
