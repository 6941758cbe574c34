// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/flight_record.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "agent/watch/hang/json_words.h"
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

// The numbers that a group's backend gives to collectives, or to messages.
using Numbers = std::pair<std::string, bool>;

Numbers NumbersOf(const Json& entry) {
  const Json& group = At(entry, "process_group");
  const std::string backend = CallName(WordOf(At(entry, "profiling_name"))).backend;
  return {absl::StrCat(group.is_array() && !group.empty() ? WordOf(group[0]) : "", "/", backend),
          IsTrue(At(entry, "is_p2p"))};
}

int64_t SequenceOf(const Json& entry) {
  return NumberOf(At(entry, IsTrue(At(entry, "is_p2p")) ? "p2p_seq_id" : "collective_seq_id"));
}

// Returns the entries from the oldest to the newest. A group that was destroyed and made again
// counts from 1 again: what the former one has called is left out.
std::vector<const Json*> InOrder(const Json& entries) {
  std::vector<const Json*> order, kept;
  for (size_t i = 0; entries.is_array() && i < entries.size(); ++i) order.push_back(&entries[i]);
  std::stable_sort(order.begin(), order.end(), [](const Json* a, const Json* b) {
    return NumberOf(At(*a, "record_id")) < NumberOf(At(*b, "record_id"));
  });
  std::map<Numbers, bool> begun;  // Of those seen so far, from the newest: true if number 1 was.
  for (auto entry = order.rbegin(); entry != order.rend(); ++entry) {
    bool& has_begun = begun[NumbersOf(**entry)];
    if (has_begun && SequenceOf(**entry) > 1) continue;
    has_begun = has_begun || SequenceOf(**entry) == 1;
    kept.push_back(*entry);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

// Torch records the calls of a block (batch_isend_irecv, _coalescing_manager) one by one and never
// says that they are over; the block has an entry of its own after them, with the same number.
// Torch before 2.7 has none for collectives: those are over once the rank has called more.
class Blocks {
 public:
  explicit Blocks(const std::vector<const Json*>& entries) {
    for (const Json* entry : entries) {
      const Numbers numbers = NumbersOf(*entry);
      Block& block = blocks_[{numbers, SequenceOf(*entry)}];
      ++block.entries;
      if (IsBlock(*entry)) block.unfinished = IsUnfinished(*entry);
      int64_t& last = last_[numbers];
      last = std::max(last, SequenceOf(*entry));
    }
  }

  bool IsUnfinishedHere(const Json& entry) const {
    const Numbers numbers = NumbersOf(entry);
    const Block& block = blocks_.at({numbers, SequenceOf(entry)});
    if (block.unfinished) return *block.unfinished;
    const bool is_last = last_.at(numbers) == SequenceOf(entry);
    return IsUnfinished(entry) && (block.entries == 1 || is_last);
  }

 private:
  struct Block {
    int entries = 0;                 // Of the same number.
    std::optional<bool> unfinished;  // What the block's own entry says.
  };

  static bool IsBlock(const Json& entry) {
    return absl::EndsWith(WordOf(At(entry, "profiling_name")), ":coalesced");
  }

  std::map<std::pair<Numbers, int64_t>, Block> blocks_;
  std::map<Numbers, int64_t> last_;  // The highest number.
};

// Parses "send 0->1" and "recv 1<-0": the rank's own number in the group comes first.
std::optional<PeerCalls> PeerOf(absl::string_view op) {
  PeerCalls call;
  call.sends = absl::ConsumePrefix(&op, "send ");
  if (!call.sends && !absl::ConsumePrefix(&op, "recv ")) return std::nullopt;
  const size_t arrow = op.find(call.sends ? "->" : "<-");
  if (arrow == op.npos || !absl::SimpleAtoi(op.substr(arrow + 2), &call.peer)) return std::nullopt;
  if (call.peer < 0) return std::nullopt;  // It receives from any rank.
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

GroupSnapshot OwnGroup(const std::string& name, const RecordedCalls& record) {
  GroupSnapshot snapshot;
  snapshot.name = absl::StrCat(name, kOwnMark);
  snapshot.description = name == kDefaultGroup ? "default_pg" : absl::StrCat("group ", name);
  Calls calls;
  for (const RecordedCall& call : record.latest) {
    CollectiveCall collective = OwnCollective(call);
    calls[collective.sequence] = std::move(collective);
  }
  snapshot.latest = Kept(calls);
  for (const RecordedPeer& peer : record.peers) {
    // What nobody waits for may be over, and nobody has asked.
    const uint64_t unfinished = peer.awaited ? std::max<uint64_t>(peer.called - peer.over, 1) : 0;
    snapshot.messages += static_cast<int64_t>(peer.called);
    if (snapshot.peers.size() >= kMaxPeersOfGroup) continue;
    snapshot.peers.push_back({static_cast<Rank>(peer.peer), peer.sends,
                              static_cast<int64_t>(peer.called), static_cast<int64_t>(unfinished)});
  }
  return snapshot;
}

// By peer and direction.
using Peers = std::map<std::pair<Rank, bool>, PeerCalls>;

// Returns all, or those with unfinished calls if all are too many, or none if these are.
std::vector<PeerCalls> KeptPeers(const Peers& peers, bool whole) {
  std::vector<PeerCalls> kept;
  for (const auto& [key, calls] : peers) {
    if (peers.size() > kMaxPeersOfGroup && calls.unfinished == 0) continue;
    kept.push_back(calls);
    if (!whole) kept.back().calls = -1;
  }
  return kept.size() > kMaxPeersOfGroup ? std::vector<PeerCalls>() : kept;
}

// What a record says of one group.
struct Seen {
  void Add(const Json& entry, const std::string& op, bool p2p, bool inside) {
    const int64_t sequence = SequenceOf(entry);
    if (!p2p) {
      calls[sequence] = {sequence, op, Sizes(entry), inside};
      return;
    }
    messages = std::max(messages, sequence);
    const std::optional<PeerCalls> peer = PeerOf(op);
    if (!peer) return;
    PeerCalls& all = peers.try_emplace({peer->peer, peer->sends}, *peer).first->second;
    ++all.calls;
    if (inside) ++all.unfinished;
  }

  std::string name, description, backend;
  Calls calls;
  Peers peers;
  int64_t messages = 0;
};

}  // namespace

std::optional<FlightRecord> ParseFlightRecord(absl::string_view json) {
  const Json record = ParseJson(json);
  if (!record.is_object() || At(record, "version").is_null()) return std::nullopt;
  FlightRecord found;
  const std::vector<const Json*> entries = InOrder(At(record, "entries"));
  const Blocks blocks(entries);
  std::map<std::pair<std::string, std::string>, Seen> groups;  // By name and backend.
  bool whole = false;                                          // The first call is among them.
  for (const Json* one : entries) {
    const Json& entry = *one;
    const int64_t number = NumberOf(At(entry, "record_id"));
    found.calls = std::max(found.calls, number);
    whole = whole || number == 0;
    const Json& name = At(entry, "process_group");
    const CallName call(WordOf(At(entry, "profiling_name")));
    const bool p2p = IsTrue(At(entry, "is_p2p")), inside = blocks.IsUnfinishedHere(entry);
    if (p2p) (call.backend.empty() ? found.in_p2p : found.device_in_p2p) |= inside;
    if (!name.is_array() || name.size() != 2) continue;
    const std::pair<std::string, std::string> key(WordOf(name[0]), call.backend);
    if (groups.size() >= kMaxGroupsOfRank && groups.count(key) == 0) continue;
    Seen& seen = groups[key];
    seen.name = key.first;
    seen.description = WordOf(name[1]);
    seen.backend = key.second;
    seen.Add(entry, call.op, p2p, inside);
  }
  std::map<std::string, std::vector<Rank>> members;
  const Json& config = At(record, "pg_config");
  if (config.is_object()) {
    for (const auto& item : config.items()) {
      members[WordOf(At(item.value(), "name"))] = Ranks(At(item.value(), "ranks"));
    }
  }
  for (const auto& [key, seen] : groups) {
    if (seen.calls.empty() && seen.peers.empty()) continue;
    found.groups.push_back({seen.name, seen.description, members[key.first], Kept(seen.calls),
                            seen.backend, KeptPeers(seen.peers, whole), seen.messages});
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

std::string BriefQuestion(absl::string_view whole, absl::string_view handlers) {
  constexpr absl::string_view kWithout = "includecollectives=false";
  if (absl::StrContains(whole, '?')) return absl::StrCat(whole, "&", kWithout);
  if (absl::StartsWith(whole, "dump_")) return absl::StrCat(whole, "?", kWithout);
  const Json list = ParseJson(handlers);  // Gloo's recorder always tells all.
  const bool has_own = list.is_array() &&
                       std::any_of(list.begin(), list.end(),
                                   [](const Json& one) { return WordOf(one) == kProgressHandler; });
  return has_own && whole == "fr_trace_json" ? std::string(kProgressHandler) : "";
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
  std::map<std::string, GroupSnapshot> groups;  // Of two of one name the later one counts.
  for (const RecordedCalls& record : records) {
    const std::string name = NameIn(record.group);
    groups[name] = OwnGroup(name, record);
    own.in_p2p = own.in_p2p || record.awaits_message;
    own.calls += static_cast<int64_t>(record.begun) + groups[name].messages;
    absl::StrAppend(&own.progress, record.group, " ", record.begun, " ", record.over, " ",
                    groups[name].messages, ";");
  }
  for (auto& [name, group] : groups) own.groups.push_back(std::move(group));
  return own;
}

absl::string_view TorchName(absl::string_view snapshot) {
  absl::ConsumeSuffix(&snapshot, kOwnMark);
  return snapshot;
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
