// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/collective_runner.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/collectives/bruck.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// In a monitored barrier the other ranks wait this much longer than rank 0, so that rank 0 can name
// the missing ranks before any of them gives up.
constexpr auto kExtraTime = std::chrono::seconds(30);

absl::Status RunVerb(Communicator& comm, const Task& task) {
  switch (task.call.verb) {
    case Verb::kBarrier:
      return RunBarrier(comm);
    case Verb::kBroadcast:
      return RunBroadcast(comm, task);
    case Verb::kAllReduce:
      return RunAllReduce(comm, task);
    case Verb::kReduce:
      return RunReduce(comm, task);
    case Verb::kAllGather:
      return RunAllGather(comm, task);
    case Verb::kGather:
      return RunGather(comm, task);
    case Verb::kScatter:
      return RunScatter(comm, task);
    case Verb::kReduceScatter:
      return RunReduceScatter(comm, task);
    case Verb::kAllToAll:
      return RunAllToAll(comm, task);
    case Verb::kSend:
      break;
  }
  return absl::InvalidArgumentError("no collective");
}

// Waits until `deadline` for each of `messages`; returns the ranks that have sent nothing.
absl::StatusOr<std::vector<Rank>> FindMissing(SharedTransport::Turn& turn,
                                              const std::vector<Incoming>& messages,
                                              Instant deadline) {
  std::vector<Rank> missing;
  for (const Incoming& message : messages) {
    HLAUNCH_ASSIGN_OR_RETURN(const bool came, turn.WaitUntil(message, deadline));
    if (!came) missing.push_back(message.peer);
  }
  return missing;
}

absl::Status Missing(const std::vector<Rank>& ranks, uint64_t number, Duration timeout) {
  return absl::DeadlineExceededError(
      absl::StrCat("monitored_barrier #", number, ": rank", ranks.size() > 1 ? "s " : " ",
                   absl::StrJoin(ranks, ", "), " did not come within ",
                   std::chrono::duration<double>(timeout).count(), " s"));
}

}  // namespace

Instant After(Duration time) {
  // Most time-outs are minutes, and a call of few bytes takes less time than ten looks at the
  // clock.
  const Instant now = time < std::chrono::seconds(1) ? MonotonicClock().Now() : RoughNow();
  return time > Instant::max() - now ? Instant::max() : now + time;
}

// Every rank tells all others which host it is on.
absl::Status CollectiveRunner::FindHosts(SharedTransport::Turn& turn, const Call& call,
                                         uint64_t number, Instant deadline) {
  constexpr size_t kMostName = 96;
  const int size = turn->size();
  Communicator comm(turn, call, number, deadline, scratch_);
  std::byte mine[kMostName] = {};
  const std::string name = turn->host();
  std::memcpy(mine, name.data(), std::min(name.size(), kMostName));
  std::vector<std::byte> all(size * kMostName);
  HLAUNCH_RETURN_IF_ERROR(GatherBruck(comm, mine, all.data()));
  std::vector<std::string> names;
  for (Rank rank = 0; rank < size; ++rank) {
    const auto* const text = reinterpret_cast<const char*>(all.data() + rank * kMostName);
    names.emplace_back(text, ::strnlen(text, kMostName));
  }
  hosts_ = GroupByHost(names);
  return absl::OkStatus();
}

absl::Status CollectiveRunner::Run(const Collective& call, uint64_t number, Instant deadline) {
  SharedTransport::Turn turn(transport_);
  const Call common = Common(call, turn->size());
  turn->Enter(common, number);
  if (turn->failure() != nullptr) return turn->failure()->status;
  const size_t bytes = common.count * ElementSize(call.type);
  if (!hosts_.has_value() && bytes >= kHostsMatter && turn->size() > 1) {
    HLAUNCH_RETURN_IF_ERROR(FindHosts(turn, common, number, deadline));
  }
  static const Hosts kNone;
  const Hosts& hosts = hosts_.has_value() ? *hosts_ : kNone;
  Shape shape{turn->size(), turn->size(), 1};
  if (hosts_.has_value()) shape = {turn->size(), hosts.count(), hosts.per_host};
  Communicator comm(turn, common, number, deadline, scratch_);
  return RunVerb(comm, {call, Choose(call.verb, bytes, shape, choices_), hosts});
}

// Every rank tells rank 0 that it has come, and rank 0 tells every rank to go on.
absl::Status CollectiveRunner::MonitoredBarrier(uint64_t number, Duration timeout) {
  SharedTransport::Turn turn(transport_);
  const Call call{.verb = Verb::kBarrier, .root = 0, .count = 1};
  turn->Enter(call, number);
  const Instant deadline = After(timeout);
  Communicator comm(turn, call, number, After(timeout + kExtraTime), scratch_);
  if (turn->failure() != nullptr) return turn->failure()->status;
  if (comm.rank() != 0) {
    Outgoing here = comm.Out(0, {});
    Incoming go_on = comm.In(0, {});
    comm.Start(&here);
    comm.Start(&go_on);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(here));
    return comm.Wait(go_on);
  }
  std::vector<Incoming> here;
  std::vector<Outgoing> go_on;
  for (Rank rank = 1; rank < comm.size(); ++rank) {
    here.push_back(comm.In(rank, {}));
    go_on.push_back(comm.Out(rank, {}));
  }
  for (Incoming& message : here) comm.Start(&message);
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<Rank> missing, FindMissing(turn, here, deadline));
  if (!missing.empty()) return turn->End({Missing(missing, number, timeout), missing[0]});
  for (Outgoing& message : go_on) comm.Start(&message);
  return comm.WaitAll(go_on);
}

}  // namespace hlaunch
