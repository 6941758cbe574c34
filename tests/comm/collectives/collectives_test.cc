// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests every verb, op, type, world and size on every transport against a slow second
// implementation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/call/algorithm.h"
#include "comm/reduce/reduce_kernels.h"
#include "tests/comm/ranks.h"
#include "tests/comm/reference.h"

namespace hlaunch {
namespace {

using testing::Each;

constexpr DataType kTypes[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                               DataType::kFloat64, DataType::kInt8,     DataType::kUint8,
                               DataType::kInt32,   DataType::kInt64,    DataType::kBool};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg,  ReduceOp::kProduct,
                             ReduceOp::kMin, ReduceOp::kMax,  ReduceOp::kBand,
                             ReduceOp::kBor, ReduceOp::kBxor, ReduceOp::kPremulSum};

// The calls of one rank in a world, each checked at once. The first difference ends them.
class Checker {
 public:
  explicit Checker(ProcessGroup& group) : group_(group), rank_(group.rank()), size_(group.size()) {}

  const std::string& wrong() const { return wrong_; }

  void Reduction(Verb verb, ReduceOp op, DataType type, size_t count, Rank root = 0) {
    if (!wrong_.empty()) return;
    Begin(absl::StrCat(Name(verb), " ", Name(op), " of ", count, " x ", Name(type)));
    const size_t whole = verb == Verb::kReduceScatter ? count * size_ : count;
    const auto inputs = Inputs(type, op, whole);
    std::vector<double> factors;
    for (Rank rank = 0; rank < size_; ++rank) factors.push_back(0.5 + rank);
    Elements out(type, count);
    const auto& from = inputs[rank_].bytes;
    const double factor = factors[rank_];
    if (verb == Verb::kAllReduce && calls_ % 2 == 0) {  // The call is in place.
      out = inputs[rank_];
      Call(AllReduce(type, op, out.bytes, out.bytes, factor));
    } else if (verb == Verb::kAllReduce) {
      Call(AllReduce(type, op, from, out.bytes, factor));
    } else if (verb == Verb::kReduce) {
      Call(Reduce(type, op, from, out.bytes, root, factor));
      if (rank_ != root) return;
    } else {
      Call(ReduceScatter(type, op, from, out.bytes, {}, factor));
    }
    if (verb != Verb::kReduceScatter) return Compare(Difference(out, inputs, op, factors));
    std::vector<Elements> parts;
    for (const Elements& input : inputs) parts.push_back(Slice(input, rank_ * count, count));
    Compare(Difference(out, parts, op, factors));
  }

  void UnequalReduceScatter(DataType type, const std::vector<size_t>& counts) {
    if (!wrong_.empty()) return;
    Begin("unequal reduce_scatter");
    size_t whole = 0, begin = 0;
    for (Rank rank = 0; rank < size_; ++rank) {
      if (rank < rank_) begin += counts[rank];
      whole += counts[rank];
    }
    const auto inputs = Inputs(type, ReduceOp::kSum, whole);
    Elements out(type, counts[rank_]);
    Call(ReduceScatter(type, ReduceOp::kSum, inputs[rank_].bytes, out.bytes, counts));
    std::vector<Elements> parts;
    for (const Elements& input : inputs) parts.push_back(Slice(input, begin, counts[rank_]));
    Compare(Difference(out, parts, ReduceOp::kSum, {}));
  }

  void Move(Verb verb, size_t bytes, Rank root) {
    if (!wrong_.empty()) return;
    Begin(absl::StrCat(Name(verb), " of ", bytes, " bytes, root ", root));
    const size_t whole = verb == Verb::kScatter || verb == Verb::kAllToAll ? bytes * size_ : bytes;
    const auto inputs = Inputs(DataType::kByte, ReduceOp::kNone, whole);
    const auto& from = inputs[rank_].bytes;
    std::vector<std::byte> out(bytes), all(bytes * size_), want;
    switch (verb) {
      case Verb::kBroadcast:
        out = from;
        Call(Broadcast(DataType::kByte, out, root));
        return Compare(out, inputs[root].bytes);
      case Verb::kScatter:
        Call(Scatter(DataType::kByte, rank_ == root ? std::span(from) : std::span<std::byte>(), out,
                     root));
        return Compare(out, Slice(inputs[root], rank_ * bytes, bytes).bytes);
      case Verb::kAllToAll:
        Call(AllToAll(DataType::kByte, from, all));
        for (const Elements& input : inputs) Add(&want, Slice(input, rank_ * bytes, bytes).bytes);
        return Compare(all, want);
      case Verb::kGather:
        Call(Gather(DataType::kByte, from, rank_ == root ? std::span(all) : std::span<std::byte>(),
                    root));
        if (rank_ != root) return;
        break;
      default:
        Call(AllGather(DataType::kByte, from, all));
    }
    for (const Elements& input : inputs) Add(&want, input.bytes);
    Compare(all, want);
  }

  // Rank r sends r + s + `more` bytes to rank s.
  void UnequalAllToAll(size_t more) {
    if (!wrong_.empty()) return;
    Begin("unequal all_to_all");
    const auto count = [&](Rank from, Rank to) { return (from * to) % 5 + (from + to) % 3 * more; };
    std::vector<size_t> give, get;
    std::vector<std::byte> from, want;
    const auto inputs = Inputs(DataType::kByte, ReduceOp::kNone, 8 + 3 * more);
    for (Rank rank = 0; rank < size_; ++rank) {
      give.push_back(count(rank_, rank));
      get.push_back(count(rank, rank_));
      Add(&from, Slice(inputs[rank_], 0, give.back()).bytes);
      Add(&want, Slice(inputs[rank], 0, get.back()).bytes);
    }
    std::vector<std::byte> out(want.size());
    Call(AllToAll(DataType::kByte, from, out, give, get));
    Compare(out, want);
  }

  void UnequalAllGather(size_t more) {
    if (!wrong_.empty()) return;
    Begin("unequal all_gather");
    std::vector<size_t> counts;
    std::vector<std::byte> want;
    const auto inputs = Inputs(DataType::kByte, ReduceOp::kNone, size_ * 2 + more);
    for (Rank rank = 0; rank < size_; ++rank) {
      counts.push_back(rank % 3 == 1 ? 0 : rank + rank % 2 * more);
      Add(&want, Slice(inputs[rank], 0, counts.back()).bytes);
    }
    std::vector<std::byte> out(want.size());
    Call(AllGather(DataType::kByte, Slice(inputs[rank_], 0, counts[rank_]).bytes, out, counts));
    Compare(out, want);
  }

  void Sync() {
    if (!wrong_.empty()) return;
    Begin("barrier");
    Call(Barrier());
  }

 private:
  void Begin(std::string what) {
    what_ = std::move(what);
    ++calls_;
  }
  std::vector<Elements> Inputs(DataType type, ReduceOp op, size_t count) {
    std::vector<Elements> inputs;
    for (Rank rank = 0; rank < size_; ++rank) {
      inputs.push_back(Input(type, op, count, rank, calls_));
    }
    return inputs;
  }
  static Elements Slice(const Elements& all, size_t begin, size_t count) {
    Elements slice(all.type, 0);
    const size_t element = ElementSize(all.type);
    slice.bytes.assign(all.bytes.begin() + begin * element,
                       all.bytes.begin() + (begin + count) * element);
    return slice;
  }
  static void Add(std::vector<std::byte>* to, const std::vector<std::byte>& bytes) {
    to->insert(to->end(), bytes.begin(), bytes.end());
  }
  // Runs the call, or begins it and waits then.
  void Call(Collective call) {
    const absl::Status status =
        calls_ % 3 == 0 ? group_.Start(std::move(call))->Wait() : group_.Run(std::move(call));
    if (!status.ok()) wrong_ = absl::StrCat(what_, ": ", status.ToString());
  }
  void Compare(const std::string& difference) {
    if (wrong_.empty() && !difference.empty()) wrong_ = absl::StrCat(what_, ": ", difference);
  }
  void Compare(const std::vector<std::byte>& got, const std::vector<std::byte>& want) {
    if (got != want) Compare("other bytes");
  }

  ProcessGroup& group_;
  const Rank rank_;
  const int size_;
  int calls_ = 0;
  std::string what_, wrong_;
};

constexpr size_t kSizes[] = {0, 1, 7, 130, 4099, 30001};

// Sanitizers slow all this down tenfold, and check memory use rather than results.
#ifdef HLAUNCH_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr size_t kLarge = kSanitized ? 40001 : 300001;

// HLAUNCH_TEST_ALL=1: every type with every op, size and world on every transport, for minutes.
const bool kAll = std::getenv("HLAUNCH_TEST_ALL") != nullptr;

// Sizes of worlds: powers of two and their neighbours.
std::vector<int> Worlds() {
  if (kSanitized && !kAll) return {1, 2, 3, 5, 8};
  return {1, 2, 3, 4, 5, 6, 7, 8, 9};
}

class Collectives : public testing::TestWithParam<TransportKind> {
 protected:
  void RunIn(int size, const std::function<void(Checker&, ProcessGroup&)>& calls) {
    const auto wrong = GetParam().run(size, [&](TestRank& self) {
      const auto group = self.join({.timeout = std::chrono::seconds(300)});
      Checker checker(*group);
      calls(checker, *group);
      checker.Sync();
      return checker.wrong();
    });
    EXPECT_THAT(wrong, Each("")) << "in a world of " << size;
  }
};

TEST_P(Collectives, EveryReductionIsRight) {
  for (const int size : Worlds()) {
    RunIn(size, [&](Checker& check, ProcessGroup&) {
      int turn = 0, skipped = 0;
      const bool processes = (GetParam().run != RunAsThreads || kSanitized) && !kAll;
      for (const Verb verb : {Verb::kAllReduce, Verb::kReduce, Verb::kReduceScatter}) {
        for (const DataType type : kTypes) {
          for (const ReduceOp op : kOps) {
            if (!CheckReduction(op, type).ok()) continue;
            for (const size_t count : kSizes) {
              // Processes are slower, so they run each case in one of three worlds. The larger
              // sizes take turns among the ops.
              if (processes && (++skipped + size) % (kSanitized ? 27 : 3) != 0) continue;
              if (count > 4000 && !kAll && ++turn % (count > 5000 ? 23 : 5) != 0) continue;
              check.Reduction(verb, op, type, count, turn % size);
            }
          }
        }
        check.Reduction(verb, ReduceOp::kSum, DataType::kFloat32, kLarge);
      }
      std::vector<size_t> counts;
      for (int rank = 0; rank < size; ++rank)
        counts.push_back(rank % 3 == 2 ? 0 : 30000 * rank + 5);
      check.UnequalReduceScatter(DataType::kInt32, counts);
    });
  }
}

TEST_P(Collectives, EveryMoveIsRight) {
  for (const int size : Worlds()) {
    RunIn(size, [&](Checker& check, ProcessGroup&) {
      for (const Verb verb :
           {Verb::kBroadcast, Verb::kAllGather, Verb::kGather, Verb::kScatter, Verb::kAllToAll}) {
        for (const size_t bytes : kSizes) check.Move(verb, bytes, static_cast<Rank>(bytes % size));
        check.Move(verb, kLarge, size - 1);
      }
      for (const size_t more : {0, 3, 60000}) {
        check.UnequalAllToAll(more);
        check.UnequalAllGather(more);
      }
    });
  }
}

// Each algorithm must be right, whatever the table chooses.
TEST_P(Collectives, EveryAlgorithmIsRight) {
  struct Forced {
    const char* variable;
    const char* algorithm;
    Verb verb;
  };
  for (const Forced& forced : {Forced{"ALL_REDUCE", "exchange", Verb::kAllReduce},
                               {"ALL_REDUCE", "bruck", Verb::kAllReduce},
                               {"ALL_REDUCE", "direct", Verb::kAllReduce},
                               {"ALL_REDUCE", "ring", Verb::kAllReduce},
                               {"ALL_REDUCE", "recursive_doubling", Verb::kAllReduce},
                               {"REDUCE", "flat", Verb::kReduce},
                               {"REDUCE", "direct", Verb::kReduce},
                               {"BROADCAST", "flat", Verb::kBroadcast},
                               {"BROADCAST", "tree", Verb::kBroadcast},
                               {"BROADCAST", "scatter_gather", Verb::kBroadcast},
                               {"ALL_GATHER", "flat", Verb::kAllGather},
                               {"ALL_GATHER", "bruck", Verb::kAllGather},
                               {"ALL_GATHER", "ring", Verb::kAllGather}}) {
    const std::string variable = absl::StrCat("HLAUNCH_COMM_", forced.variable);
    ::setenv(variable.c_str(), forced.algorithm, 1);
    for (const int size : {2, 5}) {
      SCOPED_TRACE(forced.algorithm);
      RunIn(size, [&](Checker& check, ProcessGroup&) {
        for (const size_t count : kSizes) {
          if (forced.verb != Verb::kAllReduce && forced.verb != Verb::kReduce) {
            check.Move(forced.verb, count, size / 2);
            continue;
          }
          for (const DataType type : {DataType::kFloat16, DataType::kFloat32, DataType::kInt64}) {
            check.Reduction(forced.verb, ReduceOp::kSum, type, count, size / 2);
            if (IsFloat(type)) check.Reduction(forced.verb, ReduceOp::kAvg, type, count, size / 2);
          }
        }
      });
    }
    ::unsetenv(variable.c_str());
  }
}

TEST_P(Collectives, RandomProgramsAreRight) {
  for (int seed = 1; seed <= (kSanitized ? 4 : 12); ++seed) {
    RunIn(1 + seed % 6, [&](Checker& check, ProcessGroup& group) {
      uint32_t state = seed;  // The same on all ranks.
      const auto pick = [&](uint32_t below) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % below;
      };
      for (int call = 0; call < 40; ++call) {
        const size_t count = pick(8) == 0 ? pick(100000) : pick(1000);
        const auto root = static_cast<Rank>(pick(group.size()));
        switch (pick(10)) {
          case 0:
            check.Sync();
            break;
          case 1:
          case 2:
          case 3: {
            constexpr Verb kReductions[] = {Verb::kAllReduce, Verb::kReduce, Verb::kReduceScatter};
            const DataType type = kTypes[pick(9)];
            const ReduceOp op = kOps[pick(9)];
            const Verb verb = kReductions[pick(3)];
            if (CheckReduction(op, type).ok()) check.Reduction(verb, op, type, count, root);
            break;
          }
          case 4:
            check.UnequalAllToAll(count);
            break;
          case 5:
            check.UnequalAllGather(count);
            break;
          default: {
            constexpr Verb kMoves[] = {Verb::kBroadcast, Verb::kAllGather, Verb::kGather,
                                       Verb::kScatter, Verb::kAllToAll};
            check.Move(kMoves[pick(5)], count, root);
          }
        }
      }
    });
  }
}

// Repeats the same inputs in the same world and expects the same bits on all ranks.
TEST_P(Collectives, BitsDependOnNothingButTheInputs) {
  for (const char* algorithm : {"", "ring", "recursive_doubling"}) {
    ::setenv("HLAUNCH_COMM_ALL_REDUCE", algorithm, 1);
    for (const int size : {2, 5}) {
      const auto sums = GetParam().run(size, [&](TestRank& self) -> std::string {
        const auto group = self.join({.timeout = std::chrono::seconds(300)});
        std::string all;
        for (const DataType type : {DataType::kFloat16, DataType::kFloat32}) {
          for (const size_t count : {100, 50000}) {
            std::string first;
            for (int again = 0; again < 3; ++again) {
              Elements data = Input(type, ReduceOp::kSum, count, group->rank(), 3);
              const absl::Status status =
                  group->Run(AllReduce(type, ReduceOp::kSum, data.bytes, data.bytes));
              if (!status.ok()) return status.ToString();
              std::string bits(reinterpret_cast<const char*>(data.bytes.data()), data.bytes.size());
              if (again > 0 && bits != first) return "another time, other bits";
              first = bits;
            }
            all += absl::StrCat(std::hash<std::string>()(first), " ");
          }
        }
        return all;
      });
      EXPECT_THAT(sums, Each(sums[0])) << algorithm;
    }
  }
  ::unsetenv("HLAUNCH_COMM_ALL_REDUCE");
}

INSTANTIATE_TEST_SUITE_P(Hosts, Collectives, testing::Values(TransportKind{"Hosts", RunAsHosts}),
                         [](const auto& kind) { return kind.param.name; });
INSTANTIATE_TEST_SUITE_P(All, Collectives, testing::ValuesIn(kTransportKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace hlaunch
