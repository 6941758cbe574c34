// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/snapshot_text.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/watch/hang/json_words.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxRanks = 1024;   // For one node.
constexpr size_t kMaxAddresses = 8;  // Of each kind, for one rank.
constexpr size_t kMaxCalls = 8;      // For one group.
constexpr int64_t kMaxSamples = 100;
constexpr int64_t kMaxMessages = int64_t{1} << 40;
constexpr size_t kMaxMembersOfNode = 1 << 20;  // For all groups of all its ranks.

Json ToJson(const CollectiveCall& call) {
  return {call.sequence, call.op, call.sizes, call.inside};
}

Json ToJson(const PeerCalls& peer) { return {peer.peer, peer.sends, peer.calls, peer.unfinished}; }

Json ToJson(const GroupSnapshot& group) {
  Json json = {{"n", group.name}};
  if (!group.description.empty()) json["d"] = group.description;
  if (!group.backend.empty()) json["b"] = group.backend;
  const bool inside = IsInside(group);
  if ((inside || !group.peers.empty()) && !group.members.empty()) {
    json["m"] = RankList(group.members);
  }
  Json calls = Json::array();
  for (size_t i = inside || group.latest.empty() ? 0 : group.latest.size() - 1;
       i < group.latest.size(); ++i) {
    calls.push_back(ToJson(group.latest[i]));
  }
  json["c"] = std::move(calls);
  if (group.messages > 0) json["i"] = group.messages;
  for (const PeerCalls& peer : group.peers) json["p"].push_back(ToJson(peer));
  return json;
}

Json ToJson(const RankSnapshot& rank) {
  std::string flags;
  const std::pair<bool, char> marks[] = {
      {rank.ended, 'e'},  {rank.recorded, 'r'},    {rank.answers, 'a'},
      {rank.still, 'q'},  {rank.in_store, 's'},    {rank.in_p2p, 'p'},
      {rank.traced, 't'}, {rank.busy, 'b'},        {rank.holds_interpreter, 'h'},
      {rank.waits, 'w'},  {rank.on_device, 'd'},   {rank.died, 'x'},
      {rank.flows, 'f'},  {rank.child_works, 'c'}, {rank.hidden, 'u'},
      {rank.mpi, 'm'},    {rank.spins, 'S'},       {rank.in_one_call, 'o'}};
  for (const auto& [set, mark] : marks) {
    if (set) flags += mark;
  }
  Json json = {{"r", rank.rank},   {"l", rank.local_rank}, {"h", rank.host},
               {"p", rank.pid},    {"f", flags},           {"s", std::string(1, rank.state)},
               {"k", rank.kernel}, {"at", rank.place}};
  if (rank.samples > 0) {
    json["n"] = rank.samples;
    json["c"] = rank.mpi_call;
  }
  if (rank.in_p2p) json["m"] = rank.moved;
  if (!rank.addresses.empty()) json["a"] = rank.addresses;
  if (!rank.unheard.empty()) json["u"] = rank.unheard;
  Json groups = Json::array();
  for (const GroupSnapshot& group : rank.groups) groups.push_back(ToJson(group));
  json["g"] = std::move(groups);
  return json;
}

std::string TextOf(const RankSnapshot& rank) {
  return ToJson(rank).dump(-1, ' ', true, Json::error_handler_t::replace);
}

CollectiveCall CollectiveOf(const Json& json) {
  CollectiveCall call;
  if (!json.is_array() || json.size() != 4) return call;
  call.sequence = NumberOf(json[0]);
  call.op = WordOf(json[1]);
  call.sizes = WordOf(json[2]);
  call.inside = json[3].is_boolean() && json[3].get<bool>();
  return call;
}

PeerCalls PeerOf(const Json& json) {
  PeerCalls peer;
  if (!json.is_array() || json.size() != 4) return peer;
  peer.peer = static_cast<Rank>(NumberOf(json[0]));
  peer.sends = json[1].is_boolean() && json[1].get<bool>();
  peer.calls = std::clamp<int64_t>(NumberOf(json[2]), -1, kMaxMessages);
  peer.unfinished = std::clamp<int64_t>(NumberOf(json[3]), 0, kMaxMessages);
  return peer;
}

// `members_left` says how many more members may be read.
GroupSnapshot GroupOf(const Json& json, size_t* members_left) {
  GroupSnapshot group;
  group.name = WordOf(At(json, "n"));
  group.description = WordOf(At(json, "d"));
  group.backend = WordOf(At(json, "b"));
  const Json& members = At(json, "m");
  if (members.is_string()) group.members = ParseRankList(members.get_ref<const std::string&>());
  if (group.members.size() > *members_left) group.members = {};
  *members_left -= group.members.size();
  const Json& calls = At(json, "c");
  for (size_t i = 0; calls.is_array() && i < std::min(calls.size(), kMaxCalls); ++i) {
    group.latest.push_back(CollectiveOf(calls[i]));
  }
  group.messages = NumberOf(At(json, "i"));
  const Json& peers = At(json, "p");
  for (size_t i = 0; peers.is_array() && i < std::min(peers.size(), kMaxPeersOfGroup); ++i) {
    group.peers.push_back(PeerOf(peers[i]));
  }
  return group;
}

std::vector<std::string> AddressesOf(const Json& json) {
  std::vector<std::string> addresses;
  for (size_t i = 0; json.is_array() && i < std::min(json.size(), kMaxAddresses); ++i) {
    addresses.push_back(WordOf(json[i]));
  }
  return addresses;
}

RankSnapshot RankOf(const Json& json, size_t* members_left) {
  RankSnapshot rank;
  rank.rank = static_cast<Rank>(NumberOf(At(json, "r")));
  rank.local_rank = static_cast<int>(NumberOf(At(json, "l")));
  rank.host = WordOf(At(json, "h"));
  rank.pid = static_cast<int>(NumberOf(At(json, "p")));
  const std::string state = WordOf(At(json, "s"));
  rank.state = state.empty() ? '?' : state[0];
  rank.kernel = WordOf(At(json, "k"));
  rank.place = WordOf(At(json, "at"));
  rank.moved = static_cast<uint64_t>(NumberOf(At(json, "m")));
  const std::string flags = WordOf(At(json, "f"));
  const auto is = [&flags](char mark) { return flags.find(mark) != flags.npos; };
  rank.ended = is('e');
  rank.recorded = is('r');
  rank.answers = is('a');
  rank.still = is('q');
  rank.in_store = is('s');
  rank.in_p2p = is('p');
  rank.traced = is('t');
  rank.busy = is('b');
  rank.holds_interpreter = is('h');
  rank.waits = is('w');
  rank.on_device = is('d');
  rank.died = is('x');
  rank.flows = is('f');
  rank.hidden = is('u');
  rank.child_works = is('c');
  rank.mpi = is('m');
  rank.spins = is('S');
  rank.in_one_call = is('o');
  rank.samples = static_cast<int>(std::clamp<int64_t>(NumberOf(At(json, "n")), 0, kMaxSamples));
  rank.mpi_call = WordOf(At(json, "c"));
  rank.addresses = AddressesOf(At(json, "a"));
  rank.unheard = AddressesOf(At(json, "u"));
  const Json& groups = At(json, "g");
  for (size_t i = 0; groups.is_array() && i < std::min(groups.size(), kMaxGroupsOfRank); ++i) {
    rank.groups.push_back(GroupOf(groups[i], members_left));
  }
  return rank;
}

}  // namespace

std::string SnapshotText(const std::vector<RankSnapshot>& ranks, size_t max_bytes) {
  std::vector<std::string> texts;
  size_t bytes = 1;  // Of the whole, with brackets and commas.
  for (const RankSnapshot& rank : ranks) {
    texts.push_back(TextOf(rank));
    bytes += texts.back().size() + 1;
  }
  for (size_t left = ranks.size(); bytes > max_bytes && left > 0; --left) {
    const auto longest = std::max_element(
        texts.begin(), texts.end(),
        [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
    RankSnapshot hidden = ranks[static_cast<size_t>(longest - texts.begin())];
    hidden.hidden = true;
    hidden.groups.clear();
    bytes -= longest->size();
    *longest = TextOf(hidden);
    bytes += longest->size();
  }
  return absl::StrCat("[", absl::StrJoin(texts, ","), "]");
}

std::optional<std::vector<RankSnapshot>> ParseSnapshots(absl::string_view text) {
  const Json json = ParseJson(text);
  if (!json.is_array()) return std::nullopt;
  std::vector<RankSnapshot> ranks;
  size_t members_left = kMaxMembersOfNode;
  for (size_t i = 0; i < std::min(json.size(), kMaxRanks); ++i) {
    ranks.push_back(RankOf(json[i], &members_left));
  }
  return ranks;
}

}  // namespace hlaunch
