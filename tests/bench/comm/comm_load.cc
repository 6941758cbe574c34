// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// One rank of comm_speed.py with hlaunch's collectives: comm_load VERB BYTES TIMES. Rank 0 prints
// the microseconds per call. The calls and their order are those of mpi_load.c and gloo_load.py.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "comm/bootstrap.h"

extern char** environ;

namespace hlaunch {
namespace {

constexpr DataType kFloat = DataType::kFloat32;

double Micros() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "comm_load: %s\n", status.ToString().c_str());
  std::exit(1);
}

class Load {
 public:
  Load(ProcessGroup& group, const std::string& verb, size_t bytes)
      : group_(group),
        verb_(verb),
        from_(bytes * group.size(), std::byte{1}),
        into_(bytes * group.size(), std::byte{1}) {
    one_ = std::span<std::byte>(from_).first(bytes);
    other_ = std::span<std::byte>(into_).first(bytes);
  }

  void Call() {
    if (verb_ == "barrier") return Must(group_.Run(Barrier()));
    if (verb_ == "all_reduce") {
      return Must(group_.Run(AllReduce(kFloat, ReduceOp::kSum, one_, other_)));
    }
    if (verb_ == "broadcast") return Must(group_.Run(Broadcast(kFloat, one_, 0)));
    if (verb_ == "all_gather") return Must(group_.Run(AllGather(kFloat, one_, into_)));
    if (verb_ == "reduce_scatter") {
      return Must(group_.Run(ReduceScatter(kFloat, ReduceOp::kSum, from_, other_)));
    }
    if (verb_ == "all_to_all") return Must(group_.Run(AllToAll(kFloat, from_, into_)));
    // Sends there and back between neighbours.
    const Rank peer = group_.rank() ^ 1;
    if (group_.rank() % 2 == 0) {
      Must(group_.Send(kFloat, one_, peer));
      Must(group_.Recv(kFloat, other_, peer).status());
    } else {
      Must(group_.Recv(kFloat, other_, peer).status());
      Must(group_.Send(kFloat, one_, peer));
    }
  }

 private:
  ProcessGroup& group_;
  const std::string verb_;
  std::vector<std::byte> from_, into_;
  std::span<std::byte> one_, other_;
};

int Main(int argc, char** argv) {
  if (argc < 4 || argc % 3 != 1) {
    std::fprintf(stderr, "usage: comm_load VERB BYTES TIMES [VERB BYTES TIMES …]\n");
    return 2;
  }
  std::map<std::string, std::string> environment;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string text = *line;
    environment[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  GroupOptions options;
  options.timeout = std::chrono::minutes(1);
  options.shared_memory = std::getenv("COMM_LOAD_TCP") == nullptr;
  if (const char* ranks = std::getenv("LOCAL_WORLD_SIZE")) options.local_ranks = std::atoi(ranks);
  auto group = InitProcessGroup("env://", -1, -1, options, environment);
  Must(group.status());
  for (int row = 1; row < argc; row += 3) {
    Load load(**group, argv[row], std::strtoull(argv[row + 1], nullptr, 10));
    const int times = std::atoi(argv[row + 2]);
    for (int i = 0; i < times / 10 + 2; ++i) load.Call();
    std::vector<double> rounds;
    for (int round = 0; round < 5; ++round) {
      Must((*group)->Run(Barrier()));
      const double begin = Micros();
      for (int i = 0; i < times; ++i) load.Call();
      rounds.push_back((Micros() - begin) / times);
    }
    std::sort(rounds.begin(), rounds.end());
    if ((*group)->rank() == 0) std::printf("%.3f\n", rounds[rounds.size() / 2]);
  }
  Must((*group)->Run(Barrier()));
  return 0;
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) { return hlaunch::Main(argc, argv); }
