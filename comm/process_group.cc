// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_group.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/call/algorithm.h"
#include "comm/call/hosts.h"
#include "comm/collectives/bruck.h"
#include "comm/collectives/wire.h"
#include "comm/transport/shared_transport.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

Instant After(Duration time) {
  const Instant now = MonotonicClock().Now();
  return time > Instant::max() - now ? Instant::max() : now + time;
}

// What a group and its works share, so that each may go first.
class Engine {
 public:
  Engine(std::shared_ptr<Store> store, std::unique_ptr<Transport> transport, GroupOptions options,
         AlgorithmChoices choices)
      : store_(std::move(store)),
        transport_(std::move(transport)),
        options_(std::move(options)),
        choices_(std::move(choices)) {}

  SharedTransport& transport() { return transport_; }
  const GroupOptions& options() const { return options_; }
  Store* store() const { return store_.get(); }
  const std::shared_ptr<Store>& shared_store() const { return store_; }

  // The number of the next collective; to be taken in the order of the calls.
  uint64_t NextNumber() { return number_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // One at a time, in the order of their numbers.
  absl::Status Do(const Collective& call, uint64_t number, Instant deadline);

  absl::Status MonitoredBarrier(uint64_t number, Duration timeout);

  absl::Status failure() {
    SharedTransport::Turn turn(transport_);
    return turn->failure() == nullptr ? absl::OkStatus() : turn->failure()->status;
  }

 private:
  absl::Status FindHosts(SharedTransport::Turn& turn, const Call& call, uint64_t number,
                         Instant deadline);

  const std::shared_ptr<Store> store_;
  SharedTransport transport_;
  const GroupOptions options_;
  const AlgorithmChoices choices_;
  std::atomic<uint64_t> number_{0};
  // Whose turn it is.
  Scratch scratch_;
  std::optional<Hosts> hosts_;
};

// Every rank tells all others on which host it is.
absl::Status Engine::FindHosts(SharedTransport::Turn& turn, const Call& call, uint64_t number,
                               Instant deadline) {
  constexpr size_t kMostName = 96;
  const int size = turn->size();
  Wire wire(turn, call, number, deadline, scratch_);
  std::byte mine[kMostName] = {};
  const std::string name = turn->host();
  std::memcpy(mine, name.data(), std::min(name.size(), kMostName));
  std::vector<std::byte> all(size * kMostName);
  HLAUNCH_RETURN_IF_ERROR(GatherBruck(wire, mine, all.data()));
  std::vector<std::string> names;
  for (Rank rank = 0; rank < size; ++rank) {
    const auto* const text = reinterpret_cast<const char*>(all.data() + rank * kMostName);
    names.emplace_back(text, ::strnlen(text, kMostName));
  }
  hosts_ = GroupByHost(names);
  return absl::OkStatus();
}

absl::Status Engine::Do(const Collective& call, uint64_t number, Instant deadline) {
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
  const Task task{call, Choose(call.verb, bytes, shape, choices_), hosts};
  Wire wire(turn, common, number, deadline, scratch_);
  switch (call.verb) {
    case Verb::kBarrier:
      return RunBarrier(wire);
    case Verb::kBroadcast:
      return RunBroadcast(wire, task);
    case Verb::kAllReduce:
      return RunAllReduce(wire, task);
    case Verb::kReduce:
      return RunReduce(wire, task);
    case Verb::kAllGather:
      return RunAllGather(wire, task);
    case Verb::kGather:
      return RunGather(wire, task);
    case Verb::kScatter:
      return RunScatter(wire, task);
    case Verb::kReduceScatter:
      return RunReduceScatter(wire, task);
    case Verb::kAllToAll:
      return RunAllToAll(wire, task);
    case Verb::kSend:
      break;
  }
  return absl::InvalidArgumentError("no collective");
}

// Everyone tells rank 0 that it is there, and rank 0 tells everyone to go on.
absl::Status Engine::MonitoredBarrier(uint64_t number, Duration timeout) {
  SharedTransport::Turn turn(transport_);
  const Call call{.verb = Verb::kBarrier, .root = 0, .count = 1};
  turn->Enter(call, number);
  const Instant deadline = After(timeout);
  // Rank 0 must be heard to say who is missing, also by those whose patience ends with its own.
  const Instant late = After(timeout + std::chrono::seconds(5));
  Wire wire(turn, call, number, late, scratch_);
  if (turn->failure() != nullptr) return turn->failure()->status;
  if (wire.rank() != 0) {
    Outgoing here = wire.Out(0, {});
    Incoming go_on = wire.In(0, {});
    wire.Start(&here);
    wire.Start(&go_on);
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(here));
    return wire.Wait(go_on);
  }
  std::vector<Incoming> here;
  std::vector<Outgoing> go_on;
  for (Rank rank = 1; rank < wire.size(); ++rank) {
    here.push_back(wire.In(rank, {}));
    go_on.push_back(wire.Out(rank, {}));
  }
  for (Incoming& message : here) wire.Start(&message);
  std::vector<Rank> missing;
  for (const Incoming& message : here) {
    HLAUNCH_ASSIGN_OR_RETURN(const bool came, turn.WaitUntil(message, deadline));
    if (!came) missing.push_back(message.peer);
  }
  if (!missing.empty()) {
    return turn->End({absl::DeadlineExceededError(absl::StrCat(
                          "monitored_barrier #", number, ": rank", missing.size() > 1 ? "s " : " ",
                          absl::StrJoin(missing, ", "), " did not come within ",
                          std::chrono::duration<double>(timeout).count(), " s")),
                      missing[0]});
  }
  for (Outgoing& message : go_on) wire.Start(&message);
  return wire.WaitAll(go_on);
}

// ---- What is under way.

// A collective on the thread of its group.
class Job : public Work {
 public:
  Job(Collective call, uint64_t number, Duration timeout)
      : call_(std::move(call)), number_(number), timeout_(timeout) {}

  void Do(Engine& engine) { Finish(engine.Do(call_, number_, After(timeout_))); }

  void Finish(absl::Status result) {
    MutexLock lock(&mu_);
    result_ = std::move(result);
    changed_.SignalAll();
  }

  absl::Status Wait(std::optional<Duration> patience) override {
    const Instant until = patience.has_value() ? After(*patience) : Instant::max();
    MutexLock lock(&mu_);
    while (!result_.has_value()) {
      if (until == Instant::max()) {
        changed_.Wait(&mu_);
      } else if (!changed_.WaitUntil(&mu_, until) && !result_.has_value()) {
        return absl::DeadlineExceededError(
            absl::StrCat(Name(call_.verb), " #", number_, " is not over yet"));
      }
    }
    return *result_;
  }

  bool Done() override {
    MutexLock lock(&mu_);
    return result_.has_value();
  }

 private:
  const Collective call_;
  const uint64_t number_;
  const Duration timeout_;
  Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mu_);
};

// What is over before it began to be waited for.
class DoneWork : public Work {
 public:
  explicit DoneWork(absl::Status result) : result_(std::move(result)) {}
  absl::Status Wait(std::optional<Duration>) override { return result_; }
  bool Done() override { return true; }

 private:
  const absl::Status result_;
};

// A message; moves on while somebody is inside the transport.
template <typename Direction>
class MessageWork : public Work {
 public:
  MessageWork(Engine& engine, Direction message, Duration timeout)
      : engine_(engine), message_(message), deadline_(After(timeout)) {}

  void Start() {
    SharedTransport::Turn turn(engine_.transport());
    turn->Start(&message_);
  }

  absl::Status Wait(std::optional<Duration> patience) override {
    const Instant until = patience.has_value() ? After(*patience) : deadline_;
    SharedTransport::Turn turn(engine_.transport());
    if (until >= deadline_) return turn.Wait(message_, deadline_);
    HLAUNCH_ASSIGN_OR_RETURN(const bool done, turn.WaitUntil(message_, until));
    if (done) return absl::OkStatus();
    return absl::DeadlineExceededError(absl::StrCat(Text(message_), " is not over yet"));
  }

  bool Done() override {
    if (IsDone(message_)) return true;
    SharedTransport::Turn turn(engine_.transport());
    const auto done = turn.WaitUntil(message_, MonotonicClock().Now());
    return !done.ok() || *done;
  }

  Rank source() const override { return IsDone(message_) ? message_.peer : -1; }

 private:
  Engine& engine_;
  Direction message_;
  const Instant deadline_;
};

// ---- The group.

class Group : public ProcessGroup {
 public:
  Group(std::shared_ptr<Store> store, std::unique_ptr<Transport> transport, GroupOptions options,
        AlgorithmChoices choices)
      : engine_(std::move(store), std::move(transport), std::move(options), std::move(choices)) {}

  ~Group() override {
    {
      MutexLock lock(&mu_);
      ending_ = true;
      changed_.SignalAll();
      // One that is done may not have been taken off yet.
      const bool all_done =
          std::all_of(queue_.begin(), queue_.end(), [](const auto& job) { return job->Done(); });
      if (!all_done) engine_.transport().Abort("the group was left with calls under way");
    }
    if (thread_.joinable()) thread_.join();
  }

  Rank rank() const override { return engine_.transport().rank(); }
  int size() const override { return engine_.transport().size(); }
  const GroupOptions& options() const override { return engine_.options(); }

  absl::StatusOr<std::unique_ptr<ProcessGroup>> NewGroup(std::span<const Rank> ranks) override;

  absl::Status Run(Collective call, std::optional<Duration> timeout) override {
    HLAUNCH_RETURN_IF_ERROR(Check(call, rank(), size()));
    const Duration time = timeout.value_or(options().timeout);
    std::shared_ptr<Job> job;
    uint64_t number = 0;
    {
      MutexLock lock(&mu_);
      if (running_ == 0) {
        ++running_;
        number = engine_.NextNumber();
      } else {
        job = Enqueue(std::move(call), time);
      }
    }
    if (job != nullptr) return job->Wait(std::nullopt);
    const absl::Status result = engine_.Do(call, number, After(time));
    Over();
    return result;
  }

  WorkPtr Start(Collective call, std::optional<Duration> timeout) override {
    absl::Status status = Check(call, rank(), size());
    if (!status.ok()) return std::make_shared<DoneWork>(std::move(status));
    MutexLock lock(&mu_);
    return Enqueue(std::move(call), timeout.value_or(options().timeout));
  }

  absl::Status MonitoredBarrier(Duration timeout) override {
    {
      MutexLock lock(&mu_);
      while (running_ > 0) changed_.Wait(&mu_);
      ++running_;
    }
    const absl::Status result = engine_.MonitoredBarrier(engine_.NextNumber(), timeout);
    Over();
    return result;
  }

  WorkPtr StartSend(DataType type, std::span<const std::byte> from, Rank to,
                    uint64_t tag) override {
    if (absl::Status status = CheckPeer("send", type, from.size(), to, false); !status.ok()) {
      return std::make_shared<DoneWork>(std::move(status));
    }
    return StartMessage<Outgoing>({{to, {Verb::kSend, type}, tag}, from});
  }

  WorkPtr StartRecv(DataType type, std::span<std::byte> into, Rank from, uint64_t tag) override {
    if (absl::Status status = CheckPeer("recv", type, into.size(), from, true); !status.ok()) {
      return std::make_shared<DoneWork>(std::move(status));
    }
    return StartMessage<Incoming>({{from, {Verb::kSend, type}, tag}, into});
  }

  absl::Status failure() const override { return engine_.failure(); }
  void Abort(const std::string& why) override { engine_.transport().Abort(why); }

 private:
  absl::Status CheckPeer(const char* verb, DataType type, size_t bytes, Rank peer, bool any) const {
    if (any && peer == kAnyRank) peer = rank() == 0 ? 1 : 0;
    if (peer < 0 || peer >= size() || peer == rank()) {
      return absl::InvalidArgumentError(
          peer == rank()
              ? absl::StrCat(verb, ": rank ", peer, " is this rank itself")
              : absl::StrCat(verb, ": there is no rank ", peer, " in a world of ", size()));
    }
    if (static_cast<int>(type) >= kDataTypes || bytes % ElementSize(type) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(verb, ": ", bytes, " bytes are no whole number of ", Name(type)));
    }
    return absl::OkStatus();
  }

  template <typename Direction>
  WorkPtr StartMessage(const Direction& message) {
    auto work = std::make_shared<MessageWork<Direction>>(engine_, message, options().timeout);
    work->Start();
    // The transport knows it until it is done, so it must stay that long.
    MutexLock lock(&mu_);
    if (messages_.size() >= sweep_) {
      std::erase_if(messages_,
                    [](const WorkPtr& other) { return other.use_count() == 1 && other->Done(); });
      sweep_ = std::max<size_t>(64, 2 * messages_.size());
    }
    messages_.push_back(work);
    return work;
  }

  std::shared_ptr<Job> Enqueue(Collective call, Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto job = std::make_shared<Job>(std::move(call), engine_.NextNumber(), timeout);
    ++running_;
    queue_.push_back(job);
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
    changed_.SignalAll();
    return job;
  }

  void Over() {
    MutexLock lock(&mu_);
    --running_;
    changed_.SignalAll();
  }

  // The thread: does what was started, one after the other.
  void Work() {
    while (true) {
      std::shared_ptr<Job> job;
      {
        MutexLock lock(&mu_);
        // One that is done on its caller's thread was first.
        while (!ending_ && (queue_.empty() || running_ > queue_.size())) changed_.Wait(&mu_);
        if (queue_.empty()) return;
        job = queue_.front();
      }
      job->Do(engine_);
      MutexLock lock(&mu_);
      queue_.pop_front();
      --running_;
      changed_.SignalAll();
    }
  }

  mutable Engine engine_;
  Mutex mu_;
  CondVar changed_;
  size_t running_ ABSL_GUARDED_BY(mu_) = 0;  // Collectives not over, those in queue_ among them.
  std::deque<std::shared_ptr<Job>> queue_ ABSL_GUARDED_BY(mu_);  // Not over; the first is done now.
  std::vector<WorkPtr> messages_ ABSL_GUARDED_BY(mu_);
  size_t sweep_ ABSL_GUARDED_BY(mu_) = 64;
  int groups_ ABSL_GUARDED_BY(mu_) = 0;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<ProcessGroup>> Group::NewGroup(std::span<const Rank> ranks) {
  std::set<Rank> seen;
  Rank mine = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size() || !seen.insert(ranks[i]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("new_group: rank ", ranks[i], " is ",
                       seen.contains(ranks[i]) ? "there twice" : "none of this group"));
    }
    if (ranks[i] == rank()) mine = static_cast<Rank>(i);
  }
  GroupOptions options = engine_.options();
  {
    MutexLock lock(&mu_);
    absl::StrAppend(&options.name, "/", ++groups_);
  }
  if (mine < 0) return nullptr;
  if (engine_.store() == nullptr) {
    return absl::FailedPreconditionError("new_group: this group has no store to make another by");
  }
  return ProcessGroup::Create(engine_.shared_store(), mine, static_cast<int>(ranks.size()),
                              std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Create(std::shared_ptr<Store> store,
                                                                   Rank rank, int size,
                                                                   GroupOptions options) {
  if (size < 1 || rank < 0 || rank >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " in a world of ", size, " makes no sense"));
  }
  HLAUNCH_ASSIGN_OR_RETURN(AlgorithmChoices choices, ChoicesFromEnvironment());
  if (options.single_copy == SingleCopy::kIfFaster) {
    HLAUNCH_ASSIGN_OR_RETURN(options.single_copy, SingleCopyFromEnvironment());
  }
  HLAUNCH_ASSIGN_OR_RETURN(std::unique_ptr<ProcessTransport> transport,
                           ProcessTransport::Create(*store, rank, size,
                                                    {.name = options.name,
                                                     .address = options.address,
                                                     .shared_memory = options.shared_memory,
                                                     .single_copy = options.single_copy,
                                                     .local_ranks = options.local_ranks}));
  return std::make_unique<Group>(std::move(store), std::move(transport), std::move(options),
                                 std::move(choices));
}

std::unique_ptr<ProcessGroup> ProcessGroup::Over(std::unique_ptr<Transport> transport,
                                                 GroupOptions options) {
  return std::make_unique<Group>(nullptr, std::move(transport), std::move(options),
                                 ChoicesFromEnvironment().value_or(AlgorithmChoices()));
}

absl::StatusOr<Rank> ProcessGroup::Recv(DataType type, std::span<std::byte> into, Rank from,
                                        uint64_t tag) {
  const WorkPtr work = StartRecv(type, into, from, tag);
  HLAUNCH_RETURN_IF_ERROR(work->Wait());
  return work->source();
}

}  // namespace hlaunch
