// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_group.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/call/algorithm.h"
#include "comm/collective_queue.h"
#include "comm/collective_runner.h"
#include "comm/process_transport/process_transport.h"
#include "comm/record/call_record.h"
#include "comm/self_messages.h"
#include "comm/transport/shared_transport.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// A call that was over before its caller could wait for it.
class DoneWork : public Work {
 public:
  explicit DoneWork(absl::Status result) : result_(std::move(result)) {}
  absl::Status Wait(std::optional<Duration>) override { return result_; }
  bool Done() override { return true; }

 private:
  const absl::Status result_;
};

// For the time in which a thread waits for a message.
class RecordedWait {
 public:
  RecordedWait(CallRecord* record, Rank peer, bool sends)
      : record_(record), peer_(peer), sends_(sends) {
    if (record_ != nullptr) record_->BeginMessageWait(peer_, sends_);
  }
  ~RecordedWait() {
    if (record_ != nullptr) record_->EndMessageWait(peer_, sends_);
  }
  RecordedWait(const RecordedWait&) = delete;
  RecordedWait& operator=(const RecordedWait&) = delete;

 private:
  CallRecord* const record_;
  const Rank peer_;
  const bool sends_;
};

// A send or a receive. It goes on while any thread has its turn at the transport.
template <typename Direction>
class MessageWork : public Work {
 public:
  MessageWork(SharedTransport& transport, CallRecord* record, Direction message, Duration timeout)
      : transport_(transport),
        record_(record),
        peer_(message.peer),
        message_(message),
        deadline_(After(timeout)) {}

  void Start() {
    if (record_ != nullptr) record_->CallMessage(peer_, kSends);
    SharedTransport::Turn turn(transport_);
    turn->Start(&message_);
  }

  absl::Status Wait(std::optional<Duration> patience) override {
    const Instant until = patience.has_value() ? After(*patience) : deadline_;
    const RecordedWait waits(record_, peer_, kSends);
    SharedTransport::Turn turn(transport_);
    if (until >= deadline_) {
      const absl::Status result = turn.Wait(message_, deadline_);
      NoteEnd();
      return result;
    }
    HLAUNCH_ASSIGN_OR_RETURN(const bool done, turn.WaitUntil(message_, until));
    if (done) {
      NoteEnd();
      return absl::OkStatus();
    }
    return absl::DeadlineExceededError(absl::StrCat(Text(message_), " is not over yet"));
  }

  bool Done() override {
    if (IsDone(message_)) {
      NoteEnd();
      return true;
    }
    SharedTransport::Turn turn(transport_);
    const Instant now = MonotonicClock().Now();
    const auto done = turn.WaitUntil(message_, now);
    if (done.ok() && !*done && now < deadline_) return false;
    turn.Wait(message_, deadline_).IgnoreError();  // It is over or has timed out.
    NoteEnd();
    return true;
  }

  Rank source() const override { return IsDone(message_) ? message_.peer : -1; }

 private:
  static constexpr bool kSends = std::is_same_v<Direction, Outgoing>;

  void NoteEnd() {
    if (record_ != nullptr && !noted_.exchange(true)) record_->EndMessage(peer_, kSends);
  }

  SharedTransport& transport_;
  CallRecord* const record_;  // Null: not recorded. Of the group, as transport_.
  const Rank peer_;           // As it was asked for: less than 0 for any.
  std::atomic<bool> noted_ = false;
  Direction message_;
  const Instant deadline_;
};

// Keeps messages alive as long as the transport knows them, even if the caller drops them.
class MessageKeeper {
 public:
  void Keep(WorkPtr work) {
    MutexLock lock(&mu_);
    if (works_.size() >= sweep_) {
      std::erase_if(works_,
                    [](const WorkPtr& other) { return other.use_count() == 1 && other->Done(); });
      sweep_ = std::max<size_t>(64, 2 * works_.size());
    }
    works_.push_back(std::move(work));
  }

 private:
  Mutex mu_;
  std::vector<WorkPtr> works_ ABSL_GUARDED_BY(mu_);
  size_t sweep_ ABSL_GUARDED_BY(mu_) = 64;  // At this number, works that are done are dropped.
};

class Group : public ProcessGroup {
 public:
  Group(std::shared_ptr<Store> store, std::unique_ptr<Transport> transport, GroupOptions options,
        AlgorithmChoices choices)
      : store_(std::move(store)),
        options_(std::move(options)),
        runner_(std::move(transport), std::move(choices)),
        self_(runner_.transport().rank()),
        record_(options_.recorded ? CallRecord::Open(options_.name) : nullptr),
        queue_(runner_, record_.get()) {}

  Rank rank() const override { return runner_.transport().rank(); }
  int size() const override { return runner_.transport().size(); }
  const GroupOptions& options() const override { return options_; }

  absl::StatusOr<std::unique_ptr<ProcessGroup>> NewGroup(std::span<const Rank> ranks) override;

  absl::Status Run(Collective call, std::optional<Duration> timeout) override {
    HLAUNCH_RETURN_IF_ERROR(Check(call, rank(), size()));
    return queue_.Run(std::move(call), timeout.value_or(options_.timeout));
  }

  WorkPtr Start(Collective call, std::optional<Duration> timeout) override {
    absl::Status status = Check(call, rank(), size());
    if (!status.ok()) return std::make_shared<DoneWork>(std::move(status));
    return queue_.Start(std::move(call), timeout.value_or(options_.timeout));
  }

  absl::Status MonitoredBarrier(Duration timeout) override {
    return queue_.MonitoredBarrier(timeout);
  }

  WorkPtr StartSend(DataType type, std::span<const std::byte> from, Rank to,
                    uint64_t tag) override {
    if (absl::Status status = CheckPeer("send", type, from.size(), to, false);
        !status.ok() || to == rank()) {
      if (status.ok()) self_.Send(type, from, tag);
      return std::make_shared<DoneWork>(std::move(status));
    }
    return StartMessage<Outgoing>({{to, {Verb::kSend, type}, tag}, from});
  }

  WorkPtr StartRecv(DataType type, std::span<std::byte> into, Rank from, uint64_t tag) override {
    if (absl::Status status = CheckPeer("recv", type, into.size(), from, true); !status.ok()) {
      return std::make_shared<DoneWork>(std::move(status));
    }
    if (from == rank() || size() == 1) {
      return self_.Receive(type, into, tag, options_.timeout);
    }
    return StartMessage<Incoming>({{from, {Verb::kSend, type}, tag}, into});
  }

  absl::Status failure() const override {
    SharedTransport::Turn turn(runner_.transport());
    return turn->failure() == nullptr ? absl::OkStatus() : turn->failure()->status;
  }
  void Abort(const std::string& why) override {
    self_.End(absl::CancelledError(absl::StrCat("rank ", rank(), ": ", why)));
    runner_.transport().Abort(why);
  }
  void SayGoodbye(const std::string& why) override {
    SharedTransport::Turn turn(runner_.transport());
    turn->SayGoodbye(why);
  }

 private:
  absl::Status CheckPeer(const char* verb, DataType type, size_t bytes, Rank peer, bool any) const;

  template <typename Direction>
  WorkPtr StartMessage(const Direction& message) {
    auto work = std::make_shared<MessageWork<Direction>>(runner_.transport(), record_.get(),
                                                         message, options_.timeout);
    work->Start();
    messages_.Keep(work);
    return work;
  }

  const std::shared_ptr<Store> store_;
  const GroupOptions options_;
  mutable CollectiveRunner runner_;
  SelfMessages self_;
  const std::unique_ptr<CallRecord> record_;  // Null: not recorded.
  MessageKeeper messages_;  // Before queue_: a call that still runs may move them on.
  CollectiveQueue queue_;
  Mutex mu_;
  int groups_ ABSL_GUARDED_BY(mu_) = 0;  // How many NewGroup has made.
};

absl::Status Group::CheckPeer(const char* verb, DataType type, size_t bytes, Rank peer,
                              bool any) const {
  if (any && peer == kAnyRank) peer = 0;
  if (peer < 0 || peer >= size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(verb, ": there is no rank ", peer, " in a world of ", size()));
  }
  if (static_cast<int>(type) >= kDataTypes || bytes % ElementSize(type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(verb, ": ", bytes, " bytes are no whole number of ", Name(type)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> Group::NewGroup(std::span<const Rank> ranks) {
  std::set<Rank> seen;
  Rank mine = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size() || !seen.insert(ranks[i]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("new_group: rank ", ranks[i],
                       seen.contains(ranks[i]) ? " is there twice" : " is not in this group"));
    }
    if (ranks[i] == rank()) mine = static_cast<Rank>(i);
  }
  GroupOptions options = options_;
  {
    MutexLock lock(&mu_);
    absl::StrAppend(&options.name, "/", ++groups_);
  }
  if (mine < 0) return nullptr;
  if (store_ == nullptr) {
    return absl::FailedPreconditionError(
        "new_group: this group has no store, which a new group needs");
  }
  return ProcessGroup::Create(store_, mine, static_cast<int>(ranks.size()), std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Create(std::shared_ptr<Store> store,
                                                                   Rank rank, int size,
                                                                   GroupOptions options) {
  if (size < 1 || rank < 0 || rank >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " in a world of ", size, ": ranks go from 0 to ", size - 1));
  }
  HLAUNCH_ASSIGN_OR_RETURN(AlgorithmChoices choices, ChoicesFromEnvironment());
  if (options.single_copy == SingleCopy::kUnlessSlow) {
    HLAUNCH_ASSIGN_OR_RETURN(options.single_copy, SingleCopyFromEnvironment());
  }
  HLAUNCH_ASSIGN_OR_RETURN(std::unique_ptr<ProcessTransport> transport,
                           ProcessTransport::Create(*store, rank, size,
                                                    {.name = options.name,
                                                     .address = options.address,
                                                     .shared_memory = options.shared_memory,
                                                     .single_copy = options.single_copy,
                                                     .local_ranks = options.local_ranks,
                                                     .secret = options.secret,
                                                     .round = options.round}));
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
