// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/agent/watch/hang/played_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/watch/hang/flight_record.h"

namespace hlaunch {
namespace {

using Kind = Step::Kind;

bool IsCollective(const Step& step) {
  return step.kind == Kind::kCall || step.kind == Kind::kBlock;
}

// The messages of a step, by peer; true if it sends.
std::vector<std::pair<Rank, bool>> MessagesOf(const Step& step, Rank rank, Rank size) {
  switch (step.kind) {
    case Kind::kSend:
      return {{step.peer, true}};
    case Kind::kReceive:
      return {{step.peer, false}};
    case Kind::kExchange:
      return {{(rank + 1) % size, true}, {(rank + size - 1) % size, false}};
    default:
      return {};
  }
}

}  // namespace

const std::vector<Recorder>& Recorders() {
  static const std::vector<Recorder> recorders = {
      {"NCCL of torch 2.5", "nccl", true, true, false, false, true, "2.4"},
      {"NCCL of torch 2.7 to 2.14", "nccl", true, true, true, false, true, "2.10"},
      {"NCCL with TORCH_NCCL_ENABLE_TIMING", "nccl", true, true, true, true, true, "2.10"},
      {"nccl2 of torch 2.15", "nccl2", true, true, true, false, true, "2.10"},
      {"nccl2 whose ranks sleep", "nccl2", true, true, true, false, true, "2.10", true},
      {"gloo of torch 2.13 and later", "gloo", false, false, false, false, false, "2.10"},
      {"hlaunch", "hlaunch", false, false, false, false, false, ""}};
  return recorders;
}

Step Call(const std::string& group, const std::string& op, int size) {
  return {Kind::kCall, group, op, size, 0};
}
Step Send(Rank peer) { return {Kind::kSend, "0", "", 4, peer}; }
Step Receive(Rank peer) { return {Kind::kReceive, "0", "", 4, peer}; }
Step Exchange() { return {Kind::kExchange, "0", "", 4, 0}; }
Step Block() { return {Kind::kBlock, "0", "all_gather", 4, 0}; }
Step Synchronize() { return {Kind::kSynchronize, "", "", 0, 0}; }
Step Sleep() { return {Kind::kSleep, "", "", 0, 0}; }
Step Exit() { return {Kind::kExit, "", "", 0, 0}; }
Step Die() { return {Kind::kDie, "", "", 0, 0}; }

PlayedJob::PlayedJob(Recorder recorder, Rank size) : recorder_(std::move(recorder)) {
  ranks_.resize(static_cast<size_t>(size));
  for (Rank rank = 0; rank < size; ++rank) groups_["0"].push_back(rank);
}

void PlayedJob::AddGroup(const std::string& name, std::vector<Rank> members) {
  groups_[name] = std::move(members);
}

void PlayedJob::Everybody(const Step& step) {
  for (PlayedRank& rank : ranks_) rank.steps.push_back(step);
}

bool PlayedJob::Begin(Rank number, size_t most) {
  PlayedRank& rank = ranks_[static_cast<size_t>(number)];
  if (rank.ended || rank.died || rank.asleep || rank.next == std::min(most, rank.steps.size())) {
    return false;
  }
  const bool waits = std::any_of(rank.issued.begin(), rank.issued.end(),
                                 [](const Issued& issued) { return !issued.over; });
  const bool must_wait = !recorder_.on_device || rank.steps[rank.next].kind == Kind::kSynchronize;
  if (waits && must_wait) return false;
  const Step& step = rank.steps[rank.next++];
  if (step.kind == Kind::kSynchronize) return true;
  rank.asleep = step.kind == Kind::kSleep;
  rank.ended = step.kind == Kind::kExit;
  rank.died = step.kind == Kind::kDie;
  if (rank.asleep || rank.ended || rank.died) return true;
  Issued issued{step, 0, {}, false};
  issued.number = ++rank.numbers[IsCollective(step) ? step.group : "messages"];
  for (const auto& message : MessagesOf(step, number, static_cast<Rank>(ranks_.size()))) {
    issued.messages[message] = rank.messages[message]++;
  }
  rank.issued.push_back(std::move(issued));
  return true;
}

bool PlayedJob::HasCalled(Rank rank, const Issued& like) const {
  const auto& issued = ranks_[static_cast<size_t>(rank)].issued;
  return std::any_of(issued.begin(), issued.end(), [&](const Issued& one) {
    return IsCollective(one.step) && one.step.group == like.step.group &&
           one.number == like.number && one.step.op == like.step.op &&
           one.step.size == like.step.size;
  });
}

bool PlayedJob::IsOver(Rank rank, const Issued& issued) const {
  if (IsCollective(issued.step)) {
    if (rank == broken_.first && issued.step.group == "0" && issued.number >= broken_.second) {
      return false;
    }
    const std::vector<Rank>& members = groups_.at(issued.step.group);
    return std::all_of(members.begin(), members.end(),
                       [&](Rank member) { return HasCalled(member, issued); });
  }
  return std::all_of(issued.messages.begin(), issued.messages.end(), [&](const auto& message) {
    const auto& [peer, before] = message;
    const auto& theirs = ranks_[static_cast<size_t>(peer.first)].messages;
    const auto opposite = theirs.find({rank, !peer.second});
    return opposite != theirs.end() && opposite->second > before;
  });
}

bool PlayedJob::EndCalls() {
  bool changed = false;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    std::set<std::string> waits;  // Groups whose earlier calls are not over.
    for (Issued& issued : ranks_[rank].issued) {
      const std::string stream = IsCollective(issued.step) ? issued.step.group : "messages";
      if (issued.over || waits.count(stream) > 0) continue;
      if (!IsOver(static_cast<Rank>(rank), issued)) {
        waits.insert(stream);
        continue;
      }
      issued.over = changed = true;
    }
  }
  return changed;
}

void PlayedJob::Run(size_t most) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      while (Begin(static_cast<Rank>(rank), most)) changed = true;
    }
    while (EndCalls()) changed = true;
  }
}

std::string PlayedJob::Record(const PlayedRank& rank, Rank number) const {
  std::vector<std::string> entries, config;
  const auto add = [&](const Issued& issued, const std::string& name, bool p2p, bool of_block) {
    const bool over = issued.over && !of_block;
    const char* state = over && recorder_.on_device         ? "completed"
                        : recorder_.started && !issued.over ? "started"
                                                            : "scheduled";
    entries.push_back(absl::StrCat(
        R"({"record_id":)", entries.size(), R"(,"process_group":[")", p2p ? "0" : issued.step.group,
        R"(","group )", issued.step.group, R"("],"profiling_name":")", recorder_.backend, ":", name,
        R"(","is_p2p":)", p2p ? "true" : "false", R"(,"collective_seq_id":)",
        p2p ? 0 : issued.number, R"(,"p2p_seq_id":)", p2p ? issued.number : 0, R"(,"state":")",
        state, R"(","retired":)", over ? "true" : "false", R"(,"input_sizes":[[)", issued.step.size,
        R"(]],"input_dtypes":["Float"]})"));
  };
  for (const Issued& issued : rank.issued) {
    const bool p2p = !IsCollective(issued.step);
    const bool block = issued.step.kind == Kind::kExchange || issued.step.kind == Kind::kBlock;
    if (p2p && !recorder_.messages) continue;
    for (const auto& [message, before] : issued.messages) {
      const auto& [peer, sends] = message;
      add(issued, absl::StrCat(sends ? "send " : "recv ", number, sends ? "->" : "<-", peer), true,
          block);
    }
    if (!p2p)
      add(issued, issued.step.op, false, issued.step.kind == Kind::kBlock && recorder_.on_device);
    if (issued.step.kind == Kind::kBlock && recorder_.on_device) {
      add(issued, issued.step.op, false, true);
    }
    if (block && recorder_.on_device && (p2p || recorder_.blocks)) {
      add(issued, "coalesced", p2p, false);
    }
  }
  for (const auto& [name, members] : groups_) {
    if (!recorder_.members) continue;
    config.push_back(absl::StrCat(R"(")", name, R"(":{"name":")", name, R"(","desc":"","ranks":"[)",
                                  absl::StrJoin(members, ", "), R"(]"})"));
  }
  return absl::StrCat(R"({"version":")", recorder_.version, R"(","pg_config":{)",
                      absl::StrJoin(config, ","), R"(},"entries":[)", absl::StrJoin(entries, ","),
                      R"(],"pg_status":{}})");
}

void PlayedJob::TakeRecord(const PlayedRank& rank, RankSnapshot* snapshot) const {
  if (recorder_.backend != "hlaunch") {
    FlightRecord record = ParseFlightRecord(Record(rank, snapshot->rank)).value();
    snapshot->groups = std::move(record.groups);
    snapshot->in_p2p = record.device_in_p2p && snapshot->on_device;
  } else {
    std::map<std::string, RecordedCalls> groups;
    for (const Issued& issued : rank.issued) {
      if (!IsCollective(issued.step)) continue;
      RecordedCalls& calls = groups[issued.step.group];
      calls.group = absl::StrCat("torch/", issued.step.group, "/a.0");
      calls.latest.push_back({static_cast<uint64_t>(issued.number), issued.step.op,
                              static_cast<uint64_t>(issued.step.size), "float32", 4, issued.over});
    }
    std::vector<RecordedCalls> all;
    for (const auto& [name, calls] : groups) all.push_back(calls);
    snapshot->groups = OwnCallsOf(all).groups;
  }
  for (GroupSnapshot& group : snapshot->groups) {  // As Python tells.
    if (group.members.empty()) group.members = groups_.at(std::string(TorchName(group.name)));
  }
}

std::vector<RankSnapshot> PlayedJob::Snapshots() {
  std::vector<RankSnapshot> snapshots;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    PlayedRank& rank = ranks_[i];
    RankSnapshot snapshot;
    snapshot.rank = snapshot.local_rank = static_cast<Rank>(i);
    snapshot.host = "node0";
    snapshot.pid = 100 + snapshot.rank;
    snapshot.recorded = true;
    snapshot.still = rank.seen == rank.next;
    rank.seen = rank.next;
    snapshot.state = 'S';
    snapshot.ended = rank.ended;
    snapshot.died = rank.died;
    const bool waits = std::any_of(rank.issued.begin(), rank.issued.end(),
                                   [](const Issued& issued) { return !issued.over; });
    const bool runs = !rank.ended && !rank.died;
    snapshot.place = rank.asleep ? "load (loader.py:88)" : "step (train.py:12)";
    snapshot.on_device = recorder_.on_device && !recorder_.sleeps && waits && runs && !rank.asleep;
    TakeRecord(rank, &snapshot);
    if (!recorder_.on_device && runs && waits && !IsCollective(rank.issued.back().step)) {
      snapshot.in_p2p = true;  // Its stack says so.
    }
    if (!runs) {
      for (GroupSnapshot& group : snapshot.groups) {
        for (CollectiveCall& call : group.latest) call.inside = false;
        for (PeerCalls& calls : group.peers) calls.unfinished = 0;
      }
    }
    snapshots.push_back(std::move(snapshot));
  }
  return snapshots;
}

}  // namespace hlaunch
