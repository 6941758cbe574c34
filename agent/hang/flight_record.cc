// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/hang/flight_record.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "agent/hang/json_words.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxMembers = 1 << 16;
constexpr size_t kCallsKept = 4;  // For each group.
constexpr size_t kMaxQuestions = 8;
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

bool IsTrue(const Json& json) { return json.is_boolean() && json.get<bool>(); }

bool IsUnfinished(const Json& entry) {
  const Json& retired = At(entry, "retired");
  return retired.is_boolean() && !retired.get<bool>() && WordOf(At(entry, "state")) != "completed";
}

// Splits "nccl:all_reduce" into the backend, empty if its calls return once they are done, and
// what was called.
struct CallName {
  explicit CallName(const std::string& name) {
    constexpr absl::string_view kOfTheHost[] = {"gloo", "mpi", "ucc", "hlaunch", "c10d"};
    const size_t colon = name.find(':');
    op = name.substr(colon == name.npos ? 0 : colon + 1);
    const std::string prefix = name.substr(0, colon == name.npos ? 0 : colon);
    if (std::find(std::begin(kOfTheHost), std::end(kOfTheHost), prefix) == std::end(kOfTheHost)) {
      backend = prefix;
    }
  }
  std::string backend;
  std::string op;
};

// Torch records the calls of a block (batch_isend_irecv, _coalescing_manager) one by one and never
// says that they are over; the block has an entry of its own after them, with the same number.
class Blocks {
 public:
  explicit Blocks(const Json& entries) {
    for (size_t i = 0; entries.is_array() && i < entries.size(); ++i) {
      if (IsBlock(entries[i])) unfinished_[KeyOf(entries[i])] = IsUnfinished(entries[i]);
    }
  }

  bool IsUnfinishedHere(const Json& entry) const {
    const auto block = unfinished_.find(KeyOf(entry));
    return block == unfinished_.end() ? IsUnfinished(entry) : block->second;
  }

 private:
  using Key = std::tuple<std::string, bool, int64_t>;

  static bool IsBlock(const Json& entry) {
    return absl::EndsWith(WordOf(At(entry, "profiling_name")), ":coalesced");
  }

  static Key KeyOf(const Json& entry) {
    const Json& group = At(entry, "process_group");
    const bool p2p = IsTrue(At(entry, "is_p2p"));
    return {group.is_array() && !group.empty() ? WordOf(group[0]) : "", p2p,
            NumberOf(At(entry, p2p ? "p2p_seq_id" : "collective_seq_id"))};
  }

  std::map<Key, bool> unfinished_;
};

// Parses "[0, 1]", or a JSON list of ranks.
std::vector<Rank> Ranks(const Json& json) {
  if (json.is_string()) return ParseRankList(json.get_ref<const std::string&>());
  std::vector<Rank> ranks;
  for (size_t i = 0; json.is_array() && i < std::min(json.size(), kMaxMembers); ++i) {
    ranks.push_back(static_cast<Rank>(NumberOf(json[i])));
  }
  return ranks;
}

// The calls of one group by their numbers: a recorder that has wrapped begins in the middle.
using Calls = std::map<int64_t, CollectiveCall>;

// Returns the last calls, and the first that is not over with the one before: there the rank is,
// however many it has called since, and there it is compared with the others.
std::vector<CollectiveCall> Kept(const Calls& calls) {
  const auto inside =
      std::find_if(calls.begin(), calls.end(), [](const auto& call) { return call.second.inside; });
  std::vector<CollectiveCall> kept;
  size_t left = calls.size();
  for (auto call = calls.begin(); call != calls.end(); ++call, --left) {
    const bool is_where = inside != calls.end() && (call == inside || std::next(call) == inside);
    if (is_where || left + kept.size() <= kCallsKept) kept.push_back(call->second);
  }
  return kept;
}

// Keeps the numbers of hlaunch's records apart from those of torch's for a group of the same name,
// which may have another backend for another device.
constexpr absl::string_view kOwnMark = "@hlaunch";
constexpr char kDefaultGroup[] = "0";  // Torch's name of the group of all ranks.

// "torch/0/5f70bf18a0860070.0" is torch's group "0".
std::string NameIn(absl::string_view group) {
  if (absl::ConsumePrefix(&group, "torch/")) group = group.substr(0, group.find('/'));
  return std::string(group);
}

CollectiveCall OwnCollective(const RecordedCall& recorded) {
  CollectiveCall call;
  call.sequence = static_cast<int64_t>(recorded.number);
  call.op = recorded.verb;
  call.inside = !recorded.over;
  if (recorded.count > 0) {
    call.sizes = absl::StrCat(
        "[", recorded.count, "] ", recorded.type, ", ",
        ByteText(static_cast<double>(recorded.count) * static_cast<double>(recorded.element)));
  }
  return call;
}

GroupPicture OwnGroup(const std::string& name, const RecordedCalls& record) {
  GroupPicture picture;
  picture.name = absl::StrCat(name, kOwnMark);
  picture.description = name == kDefaultGroup ? "default_pg" : absl::StrCat("group ", name);
  Calls calls;
  for (const RecordedCall& call : record.latest) {
    CollectiveCall collective = OwnCollective(call);
    calls[collective.sequence] = std::move(collective);
  }
  picture.latest = Kept(calls);
  return picture;
}

}  // namespace

std::optional<FlightRecord> ParseFlightRecord(absl::string_view json) {
  const Json record = ParseJson(json);
  const Json& entries = At(record, "entries");
  if (!record.is_object() || At(record, "version").is_null()) return std::nullopt;
  FlightRecord found;
  const Blocks blocks(entries);
  struct Seen {
    GroupPicture group;
    Calls calls;
  };
  std::map<std::pair<std::string, std::string>, Seen> groups;  // By name and backend.
  for (size_t i = 0; entries.is_array() && i < entries.size(); ++i) {
    const Json& entry = entries[i];
    found.calls = std::max(found.calls, NumberOf(At(entry, "record_id")));
    const Json& name = At(entry, "process_group");
    CallName call(WordOf(At(entry, "profiling_name")));
    const bool inside = blocks.IsUnfinishedHere(entry);
    if (IsTrue(At(entry, "is_p2p"))) {
      (call.backend.empty() ? found.in_p2p : found.device_in_p2p) |= inside;
      continue;
    }
    if (!name.is_array() || name.size() != 2) continue;
    const std::pair<std::string, std::string> key(WordOf(name[0]), call.backend);
    if (groups.size() >= kMaxGroupsOfRank && groups.count(key) == 0) continue;
    Seen& seen = groups[key];
    seen.group = {key.first, WordOf(name[1]), {}, {}, key.second};
    const int64_t sequence = NumberOf(At(entry, "collective_seq_id"));
    seen.calls[sequence] = {sequence, std::move(call.op), Sizes(entry), inside};
  }
  std::map<std::string, std::vector<Rank>> members;
  const Json& config = At(record, "pg_config");
  if (config.is_object()) {
    for (const auto& item : config.items()) {
      members[WordOf(At(item.value(), "name"))] = Ranks(At(item.value(), "ranks"));
    }
  }
  for (auto& [key, seen] : groups) {
    seen.group.members = members[key.first];
    seen.group.latest = Kept(seen.calls);
    found.groups.push_back(std::move(seen.group));
  }
  return found;
}

namespace {

// True of a name that may stand in a request.
bool IsPlain(absl::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](char one) { return absl::ascii_isalnum(one) || one == '_' || one == '-'; });
}

}  // namespace

std::vector<std::string> RecorderQuestions(absl::string_view handlers) {
  constexpr absl::string_view kGloo = "fr_trace_json";
  const Json list = ParseJson(handlers);
  if (!list.is_array()) return {std::string(kGloo)};
  std::vector<std::string> questions;
  bool by_backend = false;
  for (const Json& one : list) {
    const std::string name = WordOf(one);
    const bool of_a_backend =
        absl::StartsWith(name, "dump_") && absl::EndsWith(name, "_trace_json") && IsPlain(name);
    if (name == kGloo || name == "torchcomms_fr_trace_json" || of_a_backend) {
      questions.push_back(name);
    }
    by_backend = by_backend || name == "c10d_health_check";  // Torch 2.15 and later.
  }
  if (by_backend) {
    for (const char* backend : {"nccl2", "nccl-lazy"}) {
      questions.push_back(absl::StrCat(kGloo, "?backend=", backend));
    }
  }
  if (questions.size() > kMaxQuestions) questions.resize(kMaxQuestions);
  return questions;
}

absl::string_view FlightProgress(absl::string_view json) {
  const size_t status = json.rfind("\"pg_status\"");
  return status == json.npos ? json : json.substr(status);
}

std::map<std::string, KnownGroup> ParseGroups(absl::string_view json) {
  const Json told = ParseJson(json);
  std::map<std::string, KnownGroup> groups;
  if (!told.is_object()) return groups;
  for (const auto& item : told.items()) {
    if (groups.size() >= kMaxGroupsOfRank) break;
    groups[WordOf(item.key())] = {Ranks(At(item.value(), "ranks")),
                                  WordOf(At(item.value(), "desc"))};
  }
  return groups;
}

OwnCalls OwnCallsOf(const std::vector<RecordedCalls>& records) {
  OwnCalls own;
  std::map<std::string, GroupPicture> groups;  // Of two of one name the later one counts.
  for (const RecordedCalls& record : records) {
    const std::string name = NameIn(record.group);
    groups[name] = OwnGroup(name, record);
    own.in_p2p = own.in_p2p || record.awaits_message;
    own.calls += static_cast<int64_t>(record.begun);
    absl::StrAppend(&own.progress, record.group, " ", record.begun, " ", record.over, ";");
  }
  for (auto& [name, group] : groups) own.groups.push_back(std::move(group));
  return own;
}

absl::string_view TorchName(absl::string_view picture) {
  absl::ConsumeSuffix(&picture, kOwnMark);
  return picture;
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
