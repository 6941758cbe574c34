// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/self_messages.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/collective_runner.h"

namespace hlaunch {

// A receive from this rank itself. The owner's lock guards its result. It does not need the owner
// any more when it is destroyed.
class SelfMessages::Receipt : public Work {
 public:
  Receipt(SelfMessages& owner, DataType type_in, std::span<std::byte> into_in, uint64_t tag_in,
          Instant deadline_in)
      : type(type_in),
        into(into_in),
        tag(tag_in),
        deadline(deadline_in),
        owner_(owner),
        self_(owner.self_) {}

  absl::Status Wait(std::optional<Duration> patience) override {
    return owner_.Await(*this, patience.has_value() ? After(*patience) : deadline);
  }
  bool Done() override { return owner_.IsOver(*this); }
  Rank source() const override { return self_; }

  const DataType type;
  const std::span<std::byte> into;
  const uint64_t tag;
  const Instant deadline;
  std::optional<absl::Status> result;

 private:
  SelfMessages& owner_;
  const Rank self_;
};

void SelfMessages::Deliver(const Message& message, Receipt& receipt) {
  if (message.type != receipt.type || message.bytes.size() != receipt.into.size()) {
    receipt.result = absl::InvalidArgumentError(
        absl::StrCat("send with tag ", message.tag, " does not match: rank ", self_,
                     " sends itself ", message.bytes.size(), " bytes of ", Name(message.type),
                     " and expects ", receipt.into.size(), " of ", Name(receipt.type)));
  } else {
    std::copy(message.bytes.begin(), message.bytes.end(), receipt.into.begin());
    receipt.result = absl::OkStatus();
  }
  changed_.SignalAll();
}

void SelfMessages::Send(DataType type, std::span<const std::byte> from, uint64_t tag) {
  Message message{type, tag, {from.begin(), from.end()}};
  MutexLock lock(&mu_);
  const auto waits = std::find_if(posted_.begin(), posted_.end(),
                                  [&](const auto& receipt) { return receipt->tag == tag; });
  if (waits == posted_.end()) {
    sent_.push_back(std::move(message));
    return;
  }
  const std::shared_ptr<Receipt> receipt = *waits;
  posted_.erase(waits);
  Deliver(message, *receipt);
}

WorkPtr SelfMessages::Receive(DataType type, std::span<std::byte> into, uint64_t tag,
                              Duration timeout) {
  auto receipt = std::make_shared<Receipt>(*this, type, into, tag, After(timeout));
  MutexLock lock(&mu_);
  const auto message = std::find_if(sent_.begin(), sent_.end(),
                                    [&](const Message& other) { return other.tag == tag; });
  if (!end_.ok()) {
    receipt->result = end_;
  } else if (message != sent_.end()) {
    Deliver(*message, *receipt);
    sent_.erase(message);
  } else {
    posted_.push_back(receipt);
  }
  return receipt;
}

// Ends a receive whose time is up. After that no byte of its caller is touched.
bool SelfMessages::Settle(Receipt& receipt) {
  if (!receipt.result.has_value() && MonotonicClock().Now() >= receipt.deadline) {
    std::erase_if(posted_, [&](const auto& other) { return other.get() == &receipt; });
    receipt.result = absl::DeadlineExceededError(absl::StrCat(
        "rank ", self_, " waited in vain for rank ", self_, " in send with tag ", receipt.tag));
  }
  return receipt.result.has_value();
}

bool SelfMessages::IsOver(Receipt& receipt) {
  MutexLock lock(&mu_);
  return Settle(receipt);
}

absl::Status SelfMessages::Await(Receipt& receipt, Instant until) {
  MutexLock lock(&mu_);
  while (!Settle(receipt)) {
    if (MonotonicClock().Now() >= until) {
      return absl::DeadlineExceededError(
          absl::StrCat("send with tag ", receipt.tag, " is not over yet"));
    }
    changed_.WaitUntil(&mu_, std::min(until, receipt.deadline));
  }
  return *receipt.result;
}

void SelfMessages::End(const absl::Status& why) {
  MutexLock lock(&mu_);
  if (end_.ok()) end_ = why;
  for (const auto& receipt : posted_) receipt->result = end_;
  posted_.clear();
  changed_.SignalAll();
}

}  // namespace hlaunch
