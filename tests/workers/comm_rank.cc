// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// A rank of a job in which all ranks compute the same: comm_rank SECONDS ELEMENTS [TIMEOUT_S]. It
// runs all verbs in turn and checks each result until rank 0 has had enough. It prints "done after
// N calls", or the error and the time since the last good turn. The time-out holds once this rank
// has printed "begun" after its first turn: until then processes start and connect, which takes
// long on a busy machine.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/bootstrap.h"

extern char** environ;

namespace hlaunch {
namespace {

constexpr Duration kStart = std::chrono::minutes(5);
constexpr DataType kInt = DataType::kInt64;

class Program {
 public:
  Program(ProcessGroup& group, size_t count, Duration timeout)
      : group_(group), count_(count), timeout_(timeout) {}

  absl::Status Run(Collective call) {
    return group_.Run(std::move(call), begun_ ? timeout_ : kStart);
  }

  // Runs one call of each verb; false if a result is wrong.
  bool Turn(absl::Status* status) {
    const int64_t rank = group_.rank(), size = group_.size();
    std::vector<int64_t> mine(count_, rank + calls_), sum(count_), all(count_ * size);
    const auto bytes = [](std::vector<int64_t>& values) {
      return std::as_writable_bytes(std::span(values));
    };
    *status = Run(AllReduce(kInt, ReduceOp::kSum, bytes(mine), bytes(sum)));
    if (!status->ok()) return true;
    if (sum.back() != size * calls_ + size * (size - 1) / 2) return false;
    ++calls_;
    *status = Run(AllGather(kInt, bytes(mine), bytes(all)));
    if (!status->ok()) return true;
    for (int64_t r = 0; r < size; ++r) {
      if (all[r * count_] - all[0] != r) return false;
    }
    *status = Run(Broadcast(kInt, bytes(mine), 1));
    if (!status->ok()) return true;
    if (mine.back() != 1 + calls_ - 1) return false;
    std::vector<int64_t> turned(all.size());
    for (int64_t r = 0; r < size; ++r) all[r * count_] = 100 * rank + r;
    *status = Run(AllToAll(kInt, bytes(all), bytes(turned)));
    if (!status->ok()) return true;
    for (int64_t r = 0; r < size; ++r) {
      if (turned[r * count_] != 100 * r + rank) return false;
    }
    return true;
  }

  int64_t calls() const { return calls_; }
  bool begun() const { return begun_; }
  void Begin() { begun_ = true; }

 private:
  ProcessGroup& group_;
  const size_t count_;
  const Duration timeout_;
  int64_t calls_ = 0;
  bool begun_ = false;
};

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: comm_rank SECONDS ELEMENTS [TIMEOUT_S]\n");
    return 2;
  }
  std::map<std::string, std::string> environment;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string text = *line;
    environment[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  GroupOptions options;
  options.timeout = kStart;
  auto group = InitProcessGroup("env://", -1, -1, options, environment);
  if (!group.ok()) {
    std::printf("no group: %s\n", group.status().ToString().c_str());
    return 1;
  }
  Program program(**group, std::strtoull(argv[2], nullptr, 10),
                  std::chrono::seconds(argc > 3 ? std::atoi(argv[3]) : 20));
  const auto begin = MonotonicClock().Now();
  auto last = begin;
  while (true) {
    const auto now = MonotonicClock().Now();
    absl::Status status;
    if (!program.Turn(&status)) {
      std::printf("wrong result after %ld calls\n", static_cast<long>(program.calls()));
      return 1;
    }
    int64_t enough = now - begin > std::chrono::seconds(std::atoi(argv[1]));
    if (status.ok()) {
      status =
          program.Run(Broadcast(kInt, std::as_writable_bytes(std::span<int64_t>(&enough, 1)), 0));
    }
    if (!status.ok()) {
      std::printf("%s; %.3f s after the last turn\n", status.ToString().c_str(),
                  std::chrono::duration<double>(MonotonicClock().Now() - last).count());
      return 1;
    }
    last = MonotonicClock().Now();
    if (!program.begun()) {
      program.Begin();
      std::printf("begun\n");
      std::fflush(stdout);
    }
    if (enough != 0) break;
  }
  std::printf("done after %ld calls\n", static_cast<long>(program.calls()));
  return 0;
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) { return hlaunch::Main(argc, argv); }
