// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/mpi_look.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/watch/hang/call_returns.h"
#include "agent/watch/hang/rank_activity.h"
#include "agent/watch/hang/user_place.h"
#include "agent/watch/stall/stack_dump.h"
#include "agent/watch/stall/stack_text.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "rendezvous/round/hang/mpi_hang.h"

namespace hlaunch {
namespace {

constexpr Duration kDumpLimit = std::chrono::seconds(4);  // For one process.
constexpr int kSearches = 12;                             // So many looks search a worker for MPI,
constexpr size_t kMostBelow = 4;                          // Of a wrapper's processes.
constexpr int kSearchesApart = 12;                        // and later one of so many.
constexpr int kFirstRest = 12;     // Looks without samples after one showed that all is well.
constexpr int kLongestRest = 720;  // It is twice as long each time.
constexpr int kWellAreEnough = 2;  // So many ranks outside of MPI show that.

bool HasMpi(pid_t pid) {
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, "/libmpi")) return true;
  }
  return false;
}

// Returns the process of a worker that uses MPI; 0 if there is none. A shell may have started it.
pid_t FindMpi(pid_t worker) {
  if (HasMpi(worker)) return worker;
  std::vector<pid_t> below = ProcessesBelow(worker);
  below.resize(std::min(below.size(), kMostBelow));
  for (const pid_t pid : below) {
    if (HasMpi(pid)) return pid;
  }
  return 0;
}

bool IsPython(const std::string& frame) { return absl::StrContains(frame, ".py:"); }

// "PMPI_Barrier" of "PMPI_Barrier () from libmpi.so.40"; empty if the frame is not MPI's.
std::string MpiFunction(const std::string& frame) {
  const std::string name = frame.substr(0, frame.find_first_of(" (@"));
  const std::string lower = absl::AsciiStrToLower(name);
  if (!absl::StartsWith(lower, "mpi_") && !absl::StartsWith(lower, "pmpi_")) return "";
  const bool plain = std::all_of(
      name.begin(), name.end(), [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
  return plain ? name : "";
}

// Returns true if gdb or py-spy show that the frame is a system's or a library's.
bool IsOfLibrary(const std::string& frame) {
  const size_t at = frame.rfind(") at ");
  const bool built_elsewhere = at != frame.npos && frame[at + 5] == '.';  // ../sysdeps/…
  return built_elsewhere || absl::StrContains(frame, ") from ") ||
         absl::StrContains(frame, ".so") || absl::StartsWith(frame, "__");
}

// Returns true if the frame is one of Python's interpreter, which calls a user's own lines.
bool IsOfInterpreter(const std::string& frame) {
  return absl::StartsWith(frame, "_PyEval_") || absl::StartsWith(frame, "PyEval_");
}

// The innermost frame of the user's own from `begin` on. In Python only a tool that knows Python
// shows it.
std::string PlaceFrom(const std::vector<std::string>& frames, size_t begin) {
  StackSummary own;
  for (size_t i = begin; i < frames.size(); ++i) {
    if (!IsOfLibrary(frames[i])) own.frames.push_back(frames[i]);
  }
  const bool python = std::any_of(own.frames.begin(), own.frames.end(), IsPython);
  if (!python && std::any_of(frames.begin(), frames.end(), IsOfInterpreter)) return "";
  if (!python && !own.frames.empty()) own.frames.resize(1);
  std::string place = UserPlace(own);
  absl::StripAsciiWhitespace(&place);
  return std::string(absl::StripSuffix(place, " ()"));
}

// Returns the address of the frame that gdb shows first after the outermost one of MPI's, in the
// main thread, which it shows last; 0 if there is none.
uint64_t AddressOfCaller(absl::string_view text) {
  const size_t main = text.rfind("\nThread 1 (");
  if (main == text.npos) return 0;
  uint64_t address = 0;
  bool after_mpi = false;
  for (absl::string_view line : absl::StrSplit(text.substr(main), '\n')) {
    if (!absl::StartsWith(line, "#")) continue;
    const size_t in = line.find(" in ");
    const size_t number = line.find(" 0x");
    const bool has_address = number != line.npos && in != line.npos && number < in;
    const bool of_mpi = has_address && !MpiFunction(std::string(line.substr(in + 4))).empty();
    uint64_t found = 0;
    if (after_mpi && has_address &&
        absl::SimpleHexAtoi(line.substr(number + 1, in - number - 1), &found)) {
      address = found;
    }
    after_mpi = of_mpi;
  }
  return address;
}

}  // namespace

MpiStack ReadMpiStack(absl::string_view text) {
  const std::vector<std::string> frames = SummarizeStacks(text).frames;
  MpiStack stack;
  stack.known = !frames.empty();
  size_t begin = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    std::string function = MpiFunction(frames[i]);
    if (function.empty()) continue;
    stack.function = std::move(function);
    begin = i + 1;
  }
  stack.place = PlaceFrom(frames, begin);
  if (!stack.function.empty()) stack.returns_to = AddressOfCaller(text);
  return stack;
}

struct MpiLook::State {
  // One worker.
  struct Worker {
    RankSnapshot snapshot;
    bool alive = true;
    int searches = 0;
    pid_t process = 0;  // That uses MPI.
    std::optional<RankActivity> seen;
    std::optional<RankActivity> seen_below;
    Instant seen_at;
    MpiStack stack;                      // The last sample.
    std::optional<CallReturns> returns;  // Of the call of MPI in which it was then.
    std::string class_before;
    int rest = 0;
    int next_rest = kFirstRest;

    void Forget() {
      stack = {};
      returns.reset();
      snapshot.samples = 0;
      snapshot.mpi_call.clear();
      snapshot.place.clear();
      snapshot.in_one_call = false;
    }
  };

  State(asio::io_context& the_loop, const LookPlan& the_plan) : loop(the_loop), plan(the_plan) {
    for (int local_rank = 0; local_rank < plan.workers; ++local_rank) {
      Worker worker;
      worker.snapshot.rank = plan.first_rank + local_rank;
      worker.snapshot.local_rank = local_rank;
      worker.snapshot.host = plan.host;
      workers.push_back(std::move(worker));
    }
  }

  void Search(Worker* worker) {
    if (worker->process != 0 && ReadProcess(worker->process)) return;
    worker->process = 0;
    worker->snapshot.mpi = false;
    if (++worker->searches > kSearches && worker->searches % kSearchesApart != 0) return;
    worker->process = FindMpi(worker->snapshot.pid);
    worker->snapshot.mpi = worker->process != 0;
    worker->seen.reset();
    worker->Forget();
  }

  void LookAt(Worker* worker, Instant now) {
    RankSnapshot& rank = worker->snapshot;
    if (!worker->alive || rank.pid == 0) return;
    Search(worker);
    if (worker->process == 0) return;
    const RankActivity activity = ReadActivity(worker->process, {});
    const Duration apart = now - worker->seen_at;
    rank.state = activity.state;
    rank.kernel = activity.kernel;
    rank.traced = activity.traced;
    const bool moves = !worker->seen || MovedMuch(*worker->seen, activity, apart);
    rank.spins = !moves && Spun(*worker->seen, activity, apart);
    rank.busy = moves || WasBusy(*worker->seen, activity, apart);
    worker->seen = activity;
    LookBelow(worker, apart);
    worker->seen_at = now;
    if (worker->returns && worker->returns->count() != 0) Rest(worker);
    // One that was seen to be well is left alone for a while.
    if (worker->rest > 0 && --worker->rest > 0) rank.spins = false, rank.busy = true;
    const std::string now_class = absl::StrCat(rank.spins, rank.busy, IsStopped(rank));
    if (std::exchange(worker->class_before, now_class) != now_class) worker->Forget();
  }

  static void LookBelow(Worker* worker, Duration apart) {
    const std::vector<pid_t> below = ProcessesBelow(worker->process);
    std::optional<RankActivity> activity;
    if (!below.empty()) activity = ReadActivityOf(below, {});
    worker->snapshot.child_works =
        activity && worker->seen_below && WasBusy(*worker->seen_below, *activity, apart);
    worker->seen_below = activity;
  }

  // The workers whose stacks are read, those that do nothing first.
  void Choose() {
    chosen.clear();
    for (const bool idle : {true, false}) {
      for (Worker& worker : workers) {
        const RankSnapshot& rank = worker.snapshot;
        const bool readable = worker.alive && worker.process != 0 && rank.state != 'D' &&
                              !rank.traced && !IsStopped(rank);
        const bool known = idle && rank.samples > 0;  // It has not moved since.
        if (!readable || known || rank.busy != !idle || chosen.size() >= kMostSampled) continue;
        chosen.push_back(&worker);
      }
    }
  }

  void SampleNext() {
    if (chosen.empty()) return Finish();
    Worker* worker = chosen.front();
    chosen.erase(chosen.begin());
    const std::optional<ProcessEntry> process = ReadProcess(worker->process);
    if (!process) return SampleNext();
    dump.emplace(loop, std::vector<StackTarget>{{*process}}, plan.tools, kDumpLimit,
                 [this, worker](const std::vector<ProcessStacks>& found) {
                   Note(worker, found.empty() ? MpiStack() : ReadMpiStack(found[0].text));
                   dump.reset();
                   SampleNext();
                 });
  }

  void Note(Worker* worker, MpiStack stack) {
    RankSnapshot& rank = worker->snapshot;
    // What the tool has made it do must not count.
    const RankActivity now = ReadActivity(worker->process, {});
    if (worker->seen) worker->seen->moved = now.moved;
    if (!stack.known) return Rest(worker);
    const bool first = rank.samples == 0;
    const bool same = stack.function == worker->stack.function &&
                      (stack.function.empty() || stack.place == worker->stack.place);
    if (!first && !same) return Rest(worker);
    ++rank.samples;
    if (first) worker->returns = CallReturns::Open(worker->process, stack.returns_to);
    rank.in_one_call = worker->returns.has_value();
    rank.mpi_call = std::string(absl::StripPrefix(stack.function, "P"));
    rank.place = stack.place;
    worker->stack = std::move(stack);
    if (rank.spins && rank.mpi_call.empty() && ++outside >= kWellAreEnough) {
      for (Worker& one : workers) Rest(&one);
      chosen.clear();
    }
  }

  // Samples have shown that it goes on, or nothing.
  static void Rest(Worker* worker) {
    worker->Forget();
    if (worker->rest > 0) return;
    worker->rest = worker->next_rest;
    worker->next_rest = std::min(2 * worker->next_rest, kLongestRest);
  }

  void Finish() {
    const std::function<void()> tell = std::exchange(done, nullptr);
    if (tell) tell();
  }

  asio::io_context& loop;
  const LookPlan plan;
  std::vector<Worker> workers;
  std::vector<Worker*> chosen;  // Whose stacks are to be read in this look.
  int outside = 0;              // Of those that were read, are in no call of MPI.
  std::optional<StackDump> dump;
  std::function<void()> done;
};

MpiLook::MpiLook(asio::io_context& loop, const LookPlan& plan)
    : state_(std::make_unique<State>(loop, plan)) {}

MpiLook::~MpiLook() = default;

void MpiLook::Started(int local_rank, pid_t pid) {
  state_->workers[static_cast<size_t>(local_rank)].snapshot.pid = pid;
}

void MpiLook::Ended(int local_rank, bool succeeded) {
  State::Worker& worker = state_->workers[static_cast<size_t>(local_rank)];
  worker.alive = false;
  worker.snapshot.ended = succeeded;
  worker.snapshot.died = !succeeded;
}

void MpiLook::Look(bool stacks, std::function<void()> done) {
  state_->done = std::move(done);
  const Instant now = MonotonicClock().Now();
  for (State::Worker& worker : state_->workers) state_->LookAt(&worker, now);
  state_->outside = 0;
  state_->chosen.clear();
  if (stacks) state_->Choose();
  state_->SampleNext();
}

std::vector<RankSnapshot> MpiLook::snapshots() const {
  std::vector<RankSnapshot> snapshots;
  for (const State::Worker& worker : state_->workers) {
    if (worker.alive && worker.process == 0) return {};
    snapshots.push_back(worker.snapshot);
  }
  return snapshots;
}

pid_t MpiLook::tool() const { return state_->dump ? state_->dump->tool() : 0; }

}  // namespace hlaunch
