// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Random programs of works, checked against a slow second implementation. Several threads wait for
// the works, in another order at each rank. PROGRAMS is the number of programs and SEED the number
// of the first; a failing program tells its number.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/comm/ranks.h"
#include "tests/comm/reference.h"

namespace hlaunch {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::IsEmpty;

constexpr int kBatch = 8;   // Programs that a group runs before its ranks leave.
constexpr int kNested = 2;  // Groups for collectives that follow a work in any order.
constexpr uint64_t kRingTag = 1'000, kStarTag = 2'000, kNextTag = 3'000;

int FromEnvironment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  int value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  size_t Below(size_t n) { return engine_() % n; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Below(values.size())];
  }
  template <typename T>
  void Shuffle(std::vector<T>* values) {
    for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[Below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

Elements Part(const Elements& whole, size_t begin, size_t count) {
  Elements part(whole.type, count);
  const size_t size = ElementSize(whole.type);
  std::copy_n(whole.bytes.begin() + begin * size, count * size, part.bytes.begin());
  return part;
}

Elements Joined(const std::vector<Elements>& parts) {
  Elements whole(parts[0].type, 0);
  for (const Elements& part : parts) {
    whole.bytes.insert(whole.bytes.end(), part.bytes.begin(), part.bytes.end());
  }
  return whole;
}

// One call at one rank: what it reads and writes, and the expected result.
struct Made {
  std::string name;
  Elements from{DataType::kByte, 0}, into{DataType::kByte, 0};
  std::vector<Elements> want;                // The result, or the inputs of its reduction.
  ReduceOp op = ReduceOp::kNone;             // Reduction of `want`.
  std::vector<WorkPtr> works = {};           // Empty if the call was waited for at once or dropped.
  std::thread other = {};                    // Another thread that waits too.
  std::string wrong = {}, other_wrong = {};  // The error of each thread.

  std::string Look() const {
    if (!wrong.empty() || !other_wrong.empty()) return absl::StrCat(wrong, other_wrong);
    if (want.empty()) return "";
    if (op != ReduceOp::kNone) return Difference(into, want, op, {});
    return into.bytes == want[0].bytes ? "" : "other bytes";
  }
};

// The calls of one rank. `shared_` chooses calls that are the same at all ranks. Each rank chooses
// by itself how it waits for their ends.
class Program {
 public:
  Program(int seed, ProcessGroup& group, const std::vector<std::unique_ptr<ProcessGroup>>& nested)
      : seed_(seed),
        group_(group),
        rank_(group.rank()),
        size_(group.size()),
        shared_(seed),
        own_(seed * 64 + rank_ + 1'000'003) {
    for (const auto& one : nested) nested_.push_back(one.get());
  }

  // Returns "" if all calls gave the expected results.
  std::string Run() {
    const int calls = 3 + static_cast<int>(shared_.Below(7));
    for (step_ = 0; step_ < calls; ++step_) Begin();
    std::vector<Made*> order;
    for (const auto& made : made_) order.push_back(made.get());
    own_.Shuffle(&order);
    for (Made* made : order) Finish(*made);
    // The dropped calls end before this one.
    const absl::Status last = group_.Run(Barrier());
    if (!last.ok()) return absl::StrCat("seed ", seed_, ", the last barrier: ", last.ToString());
    for (const auto& made : made_) {
      const std::string wrong = made->Look();
      if (!wrong.empty()) return absl::StrCat("seed ", seed_, ", ", made->name, ": ", wrong);
    }
    return "";
  }

 private:
  void Begin() {
    type_ = shared_.OneOf({DataType::kInt32, DataType::kInt64, DataType::kFloat32,
                           DataType::kBfloat16, DataType::kUint8});
    op_ = shared_.OneOf({ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct});
    count_ = shared_.OneOf<size_t>({0, 1, 7, 500, 20'000, 90'000});
    root_ = static_cast<Rank>(shared_.Below(size_));
    made_.push_back(std::make_unique<Made>());
    Made& made = *made_.back();
    constexpr void (Program::*kMessages[])(Made&) = {&Program::StartRing, &Program::StartStar,
                                                     &Program::StartToSelf};
    constexpr Collective (Program::*kCollectives[])(Made&) = {
        &Program::MakeBarrier,  &Program::MakeBroadcast, &Program::MakeAllGather,
        &Program::MakeGather,   &Program::MakeScatter,   &Program::MakeReduceScatter,
        &Program::MakeAllToAll, &Program::MakeReduce,    &Program::MakeAllReduce};
    const size_t which = shared_.Below(std::size(kMessages) + std::size(kCollectives));
    if (which < std::size(kMessages)) return (this->*kMessages[which])(made);
    Collect(made, (this->*kCollectives[which - std::size(kMessages)])(made));
  }

  // The `count` input elements of each rank.
  std::vector<Elements> Inputs(size_t count) const {
    std::vector<Elements> inputs;
    for (Rank rank = 0; rank < size_; ++rank) {
      inputs.push_back(Input(type_, op_, count, rank, seed_ * 16 + step_));
    }
    return inputs;
  }

  std::vector<Elements> MyPartOf(const std::vector<Elements>& inputs) const {
    std::vector<Elements> parts;
    for (const Elements& input : inputs) parts.push_back(Part(input, rank_ * count_, count_));
    return parts;
  }

  // A number that differs from rank to rank.
  std::vector<size_t> UnequalCounts() const {
    std::vector<size_t> counts;
    for (Rank rank = 0; rank < size_; ++rank) counts.push_back(count_ / 2 * (rank % 3) + rank);
    return counts;
  }

  Collective MakeBarrier(Made&) { return Barrier(); }

  Collective MakeBroadcast(Made& made) {
    const std::vector<Elements> inputs = Inputs(count_);
    made.into = inputs[rank_];
    made.want = {inputs[root_]};
    return Broadcast(type_, made.into.bytes, root_);
  }

  Collective MakeAllGather(Made& made) {
    std::vector<size_t> counts(size_, count_);
    const bool unequal = shared_.Below(2) == 0;
    if (unequal) counts = UnequalCounts();
    std::vector<Elements> inputs;
    for (Rank rank = 0; rank < size_; ++rank) {
      inputs.push_back(Input(type_, op_, counts[rank], rank, seed_ + step_));
    }
    made.from = inputs[rank_];
    made.want = {Joined(inputs)};
    made.into = Elements(type_, made.want[0].count());
    return AllGather(type_, made.from.bytes, made.into.bytes,
                     unequal ? counts : std::vector<size_t>());
  }

  Collective MakeGather(Made& made) {
    const std::vector<Elements> inputs = Inputs(count_);
    made.from = inputs[rank_];
    if (rank_ == root_) made.want = {Joined(inputs)};
    made.into = Elements(type_, rank_ == root_ ? count_ * size_ : 0);
    return Gather(type_, made.from.bytes, made.into.bytes, root_);
  }

  Collective MakeScatter(Made& made) {
    const std::vector<Elements> inputs = Inputs(count_ * size_);
    if (rank_ == root_) made.from = inputs[root_];
    made.want = {Part(inputs[root_], rank_ * count_, count_)};
    made.into = Elements(type_, count_);
    return Scatter(type_, made.from.bytes, made.into.bytes, root_);
  }

  Collective MakeReduceScatter(Made& made) {
    const std::vector<Elements> inputs = Inputs(count_ * size_);
    made.from = inputs[rank_];
    made.want = MyPartOf(inputs);
    made.op = op_;
    made.into = Elements(type_, count_);
    return ReduceScatter(type_, op_, made.from.bytes, made.into.bytes);
  }

  Collective MakeAllToAll(Made& made) {
    const std::vector<Elements> inputs = Inputs(count_ * size_);
    made.from = inputs[rank_];
    made.want = {Joined(MyPartOf(inputs))};
    made.into = Elements(type_, count_ * size_);
    return AllToAll(type_, made.from.bytes, made.into.bytes);
  }

  Collective MakeReduce(Made& made) {
    const std::vector<Elements> inputs = Inputs(count_);
    made.from = inputs[rank_];
    if (rank_ == root_) made.want = inputs;
    made.op = op_;
    made.into = Elements(type_, rank_ == root_ ? count_ : 0);
    return Reduce(type_, op_, made.from.bytes, made.into.bytes, root_);
  }

  Collective MakeAllReduce(Made& made) {
    made.want = Inputs(count_);
    made.op = op_;
    made.from = made.want[rank_];
    const bool in_place = own_.Below(2) == 0;
    made.into = in_place ? made.from : Elements(type_, count_);
    return AllReduce(type_, op_, in_place ? made.into.bytes : made.from.bytes, made.into.bytes);
  }

  // Begins `call` and chooses how to wait for its end.
  void Collect(Made& made, const Collective& call) {
    made.name = absl::StrCat("call ", step_, ", ", Text(Common(call, size_)));
    const size_t follows = shared_.Below(4);
    if (follows > 1 && own_.Below(5) == 0) {
      made.wrong = Told(group_.Run(call));
      return;
    }
    const WorkPtr work = group_.Start(call);
    if (follows > 1 && own_.Below(5) == 0) return;  // Only the last barrier waits for it.
    made.works.push_back(work);
    if (follows == 0 && !nested_.empty()) {
      ProcessGroup* const group = nested_.back();
      nested_.pop_back();
      made.other = std::thread([this, &made, work, group] { ThenReduce(made, *work, *group); });
    } else if (follows < 2) {
      made.other =
          std::thread([this, &made, work, tag = kNextTag + step_] { ThenSend(made, *work, tag); });
    } else if (own_.Below(2) == 0) {
      made.other = std::thread([&made, work] { made.other_wrong = Told(work->Wait()); });
    }
  }

  static std::string Told(const absl::Status& status) {
    return status.ok() ? "" : status.ToString();
  }

  // Does what a callback of `work` could do: runs a collective of another group.
  void ThenReduce(Made& made, Work& work, ProcessGroup& group) const {
    made.other_wrong = Told(work.Wait());
    const DataType type = DataType::kInt64;
    Elements sum(type, 1);
    sum.SetInteger(0, rank_ + 1);
    const WorkPtr next = group.Start(AllReduce(type, ReduceOp::kSum, sum.bytes, sum.bytes));
    absl::StrAppend(&made.other_wrong, Told(next->Wait()));
    if (sum.Integer(0) != size_ * (size_ + 1) / 2) absl::StrAppend(&made.other_wrong, "wrong sum");
  }

  // Does what a callback of `work` could do: exchanges messages with the neighbouring ranks.
  void ThenSend(Made& made, Work& work, uint64_t tag) const {
    made.other_wrong = Told(work.Wait());
    const DataType type = DataType::kInt64;
    Elements given(type, 1), got(type, 1);
    given.SetInteger(0, rank_);
    const WorkPtr received = group_.StartRecv(type, got.bytes, Before(), tag);
    const WorkPtr sent = group_.StartSend(type, given.bytes, After(), tag);
    absl::StrAppend(&made.other_wrong, Told(received->Wait()), Told(sent->Wait()));
    if (got.Integer(0) != Before()) absl::StrAppend(&made.other_wrong, "another message");
  }

  Rank After() const { return (rank_ + 1) % size_; }
  Rank Before() const { return (rank_ + size_ - 1) % size_; }

  void StartRing(Made& made) {
    made.name = absl::StrCat("call ", step_, ", messages around a ring");
    const std::vector<Elements> inputs = Inputs(count_);
    made.from = inputs[rank_];
    made.want = {inputs[Before()]};
    made.into = Elements(type_, count_);
    const uint64_t tag = kRingTag + step_;
    made.works = {group_.StartSend(type_, made.from.bytes, After(), tag),
                  group_.StartRecv(type_, made.into.bytes, Before(), tag)};
    if (own_.Below(2) == 0) std::swap(made.works[0], made.works[1]);
  }

  // All ranks send to the root, which takes the first message that comes.
  void StartStar(Made& made) {
    made.name = absl::StrCat("call ", step_, ", messages to rank ", root_);
    made.from = Input(DataType::kUint8, ReduceOp::kSum, 1, rank_, seed_);
    const uint64_t tag = kStarTag + step_;
    if (rank_ != root_) {
      made.works = {group_.StartSend(DataType::kUint8, made.from.bytes, root_, tag)};
      return;
    }
    made.other = std::thread([this, &made, tag] {
      std::vector<int> seen(size_);
      for (int i = 0; i < size_ - 1; ++i) TakeAny(made, tag, &seen);
      seen[rank_] = 1;
      if (std::count(seen.begin(), seen.end(), 1) != size_) made.other_wrong += "not one of each";
    });
  }

  void TakeAny(Made& made, uint64_t tag, std::vector<int>* seen) const {
    Elements got(DataType::kUint8, 1);
    const auto source = group_.Recv(DataType::kUint8, got.bytes, kAnyRank, tag);
    if (!source.ok()) {
      absl::StrAppend(&made.other_wrong, source.status().ToString());
    } else if (got.bytes != Input(DataType::kUint8, ReduceOp::kSum, 1, *source, seed_).bytes) {
      absl::StrAppend(&made.other_wrong, "not from rank ", *source);
    } else {
      ++(*seen)[*source];
    }
  }

  void StartToSelf(Made& made) {
    made.name = absl::StrCat("call ", step_, ", a message to itself");
    made.want = {Inputs(count_)[rank_]};
    made.from = made.want[0];
    made.into = Elements(type_, count_);
    made.works = {group_.StartRecv(type_, made.into.bytes, rank_, kRingTag + step_),
                  group_.StartSend(type_, made.from.bytes, rank_, kRingTag + step_)};
  }

  // Waits for the end of `made` in one of several ways.
  void Finish(Made& made) {
    for (const WorkPtr& work : made.works) {
      switch (own_.Below(3)) {
        case 0:
          while (!work->Done()) std::this_thread::yield();
          break;
        case 1:
          while (absl::IsDeadlineExceeded(work->Wait(1ms)) && !work->Done()) continue;
          break;
        default:
          break;
      }
      absl::StrAppend(&made.wrong, Told(work->Wait()));
    }
    if (made.other.joinable()) made.other.join();
  }

  const int seed_;
  ProcessGroup& group_;
  const Rank rank_;
  const int size_;
  Dice shared_, own_;
  std::vector<ProcessGroup*> nested_;  // Groups that no call of this program has used.
  std::vector<std::unique_ptr<Made>> made_;
  int step_ = 0;
  // Parameters of the current call.
  DataType type_ = DataType::kByte;
  ReduceOp op_ = ReduceOp::kNone;
  size_t count_ = 0;
  Rank root_ = 0;
};

std::string RunPrograms(ProcessGroup& group, bool has_store, int first, int count) {
  std::vector<Rank> all;
  for (Rank rank = 0; rank < group.size(); ++rank) all.push_back(rank);
  std::vector<std::unique_ptr<ProcessGroup>> nested;
  for (int i = 0; has_store && i < kNested; ++i) {
    auto made = group.NewGroup(all);
    if (!made.ok()) return made.status().ToString();
    nested.push_back(*std::move(made));
  }
  for (int seed = first; seed < first + count; ++seed) {
    const std::string wrong = Program(seed, group, nested).Run();
    if (!wrong.empty()) return wrong;
  }
  return "";
}

class RandomPrograms : public testing::TestWithParam<TransportKind> {};

TEST_P(RandomPrograms, DoWhatTheirCallsSay) {
  const int programs = FromEnvironment("PROGRAMS", 2 * kBatch), first = FromEnvironment("SEED", 0);
  std::printf("%d programs, seeds %d to %d\n", programs, first, first + programs - 1);
  std::fflush(stdout);  // Flush before ranks are forked.
  const bool has_store = GetParam().name != std::string("Loopback");
  for (int done = 0; done < programs; done += kBatch) {
    const int seed = first + done, count = std::min(kBatch, programs - done);
    const int size = 2 + seed / kBatch % 3;
    const auto results = GetParam().run(size, [&](TestRank& self) {
      const auto group = self.join({.timeout = 90s, .local_ranks = size});
      return RunPrograms(*group, has_store, seed, count);
    });
    ASSERT_THAT(results, Each(IsEmpty())) << "seeds " << seed << " to " << seed + count - 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, RandomPrograms, testing::ValuesIn(kTransportKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace hlaunch
