// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/collective_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {

// A collective that runs on the thread of the queue.
class CollectiveQueue::QueuedCall : public Work {
 public:
  QueuedCall(Collective call, uint64_t number, Duration timeout)
      : call_(std::move(call)), number_(number), timeout_(timeout) {}

  void RunOn(CollectiveRunner& runner) { Finish(runner.Run(call_, number_, After(timeout_))); }

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

  uint64_t number() const { return number_; }

 private:
  void Finish(absl::Status result) {
    MutexLock lock(&mu_);
    result_ = std::move(result);
    changed_.SignalAll();
  }

  const Collective call_;
  const uint64_t number_;
  const Duration timeout_;
  Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mu_);
};

CollectiveQueue::~CollectiveQueue() {
  {
    MutexLock lock(&mu_);
    ending_ = true;
    changed_.SignalAll();
    // A call that is done may still be in the queue.
    const bool all_done =
        std::all_of(queue_.begin(), queue_.end(), [](const auto& call) { return call->Done(); });
    if (!all_done) runner_.transport().Abort("the group was left with calls under way");
  }
  if (thread_.joinable()) thread_.Join();
}

absl::Status CollectiveQueue::Run(Collective&& call, Duration timeout) {
  std::shared_ptr<QueuedCall> queued;
  uint64_t number = 0;
  {
    MutexLock lock(&mu_);
    if (under_way_ == 0) {
      ++under_way_;
      number = NextNumber(call);
    } else {
      queued = Enqueue(std::move(call), timeout);
    }
  }
  if (queued != nullptr) return queued->Wait(std::nullopt);
  const absl::Status result = runner_.Run(call, number, After(timeout));
  EndCall(number);
  return result;
}

WorkPtr CollectiveQueue::Start(Collective&& call, Duration timeout) {
  MutexLock lock(&mu_);
  return Enqueue(std::move(call), timeout);
}

absl::Status CollectiveQueue::MonitoredBarrier(Duration timeout) {
  uint64_t number = 0;
  {
    MutexLock lock(&mu_);
    while (under_way_ > 0) changed_.Wait(&mu_);
    ++under_way_;
    number = ++number_;
    if (record_ != nullptr) record_->BeginMonitoredBarrier(number);
  }
  const absl::Status result = runner_.MonitoredBarrier(number, timeout);
  EndCall(number);
  return result;
}

std::shared_ptr<CollectiveQueue::QueuedCall> CollectiveQueue::Enqueue(Collective&& call,
                                                                      Duration timeout) {
  // First, since it may fail: then the caller frees what the call would use.
  if (!thread_.joinable()) thread_ = Thread("hl-collectives", [this] { RunQueue(); });
  const uint64_t number = NextNumber(call);
  auto queued = std::make_shared<QueuedCall>(std::move(call), number, timeout);
  queue_.push_back(queued);
  ++under_way_;
  changed_.SignalAll();
  return queued;
}

uint64_t CollectiveQueue::NextNumber(const Collective& call) {
  ++number_;
  if (record_ != nullptr) {
    const size_t bytes = call.from.empty() ? call.into.size() : call.from.size();
    record_->Begin(number_, call.verb, call.type, bytes / ElementSize(call.type));
  }
  return number_;
}

void CollectiveQueue::EndCall(uint64_t number) {
  MutexLock lock(&mu_);
  --under_way_;
  if (record_ != nullptr) record_->End(number);
  changed_.SignalAll();
}

void CollectiveQueue::RunQueue() {
  while (true) {
    std::shared_ptr<QueuedCall> call;
    {
      MutexLock lock(&mu_);
      // A call that runs on its caller's thread goes first.
      while (!ending_ && (queue_.empty() || under_way_ > queue_.size())) changed_.Wait(&mu_);
      if (queue_.empty()) return;
      call = queue_.front();
    }
    call->RunOn(runner_);
    MutexLock lock(&mu_);
    queue_.pop_front();
    --under_way_;
    if (record_ != nullptr) record_->End(call->number());
    changed_.SignalAll();
  }
}

}  // namespace hlaunch
