// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/stack_dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/watch/stall/stack_text.h"
#include "agent/workers/process/process.h"
#include "agent/workers/process/tool_run.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr Duration kToolLimit = std::chrono::seconds(10);
constexpr Duration kAnswerLimit = std::chrono::seconds(2);  // For a process to write its stacks.
constexpr Duration kLook = std::chrono::milliseconds(50);
// The name that hlaunch.heartbeat() gives the memory file to which faulthandler writes.
constexpr absl::string_view kStacksFile = "/memfd:hlaunch-stacks";

bool Catches(pid_t pid, int signal) {
  for (absl::string_view line :
       absl::StrSplit(ReadSmallFile(absl::StrCat("/proc/", pid, "/status")), '\n')) {
    uint64_t caught = 0;
    if (absl::ConsumePrefix(&line, "SigCgt:\t")) {
      return absl::SimpleHexAtoi(line, &caught) && ((caught >> (signal - 1)) & 1) != 0;
    }
  }
  return false;
}

bool IsStacksFile(const std::string& path) {
  std::array<char, 64> target{};
  const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
  return n > 0 && absl::StartsWith({target.data(), static_cast<size_t>(n)}, kStacksFile);
}

// Opens the memory file to which the process writes its stacks. It opens nothing else, because that
// could block.
UniqueFd OpenStacksFile(pid_t pid, int fd) {
  const std::string path = absl::StrCat("/proc/", pid, "/fd/", fd);
  return IsStacksFile(path) ? UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) : UniqueFd();
}

off_t SizeOf(const UniqueFd& file) {
  struct stat st = {};
  return ::fstat(file.get(), &st) == 0 ? st.st_size : 0;
}

// Returns one line of the tool's output that says why it shows nothing.
std::string Complaint(absl::string_view text) {
  constexpr size_t kMaxBytes = 200;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  for (const absl::string_view line : lines) {
    for (const absl::string_view word : {"rror", "not permitted", "denied", "No such"}) {
      if (absl::StrContains(line, word)) return std::string(line.substr(0, kMaxBytes));
    }
  }
  return lines.empty() ? "it said nothing" : std::string(lines.back().substr(0, kMaxBytes));
}

}  // namespace

int FindStacksFile(pid_t pid) {
  int last = -1;  // The last of several: a process that registers again writes there.
  std::error_code error;
  for (std::filesystem::directory_iterator entry(absl::StrCat("/proc/", pid, "/fd"), error), end;
       !error && entry != end; entry.increment(error)) {
    int fd = -1;
    const std::string path = entry->path().string();
    if (IsStacksFile(path) && absl::SimpleAtoi(entry->path().filename().string(), &fd)) {
      last = std::max(last, fd);
    }
  }
  return last;
}

struct StackDump::State : std::enable_shared_from_this<State> {
  State(asio::io_context& in, std::vector<StackTarget> all, Duration limit,
        std::function<void(std::vector<ProcessStacks>)> tell_whom)
      : loop(in),
        timer(in),
        targets(std::move(all)),
        deadline(MonotonicClock().Now() + limit),
        done(std::move(tell_whom)) {}

  asio::io_context& loop;
  asio::steady_timer timer;
  const std::vector<StackTarget> targets;
  const Instant deadline;
  std::function<void(std::vector<ProcessStacks>)> done;
  std::string py_spy = "py-spy";
  bool py_spy_missing = false;
  std::optional<ToolRun> tool;
  UniqueFd file;    // The file to which a process writes its stacks.
  off_t begin = 0;  // Size of the file before the signal.
  off_t seen = 0;   // Size of the file at the last look.
  Instant answer_by;
  std::vector<ProcessStacks> found;

  const StackTarget& target() const { return targets[found.size() - 1]; }
  pid_t pid() const { return target().process.pid; }

  void Next() {
    if (found.size() == targets.size()) return Finish();
    const ProcessEntry& process = targets[found.size()].process;
    found.push_back({ReadProcess(process.pid).value_or(process).ToString(), "", ""});
    const std::string number = absl::StrCat(pid());
    // Tries with C's frames first, and without them if that fails. Only by its whole name is a
    // library's file told from the user's.
    const std::string whole = "--full-filenames";
    Run("py-spy", {py_spy, "dump", "--native", "--pid", number, whole}, [this, number, whole] {
      if (py_spy_missing) return AskIt();
      if (MonotonicClock().Now() < deadline) found.back().problem.clear();
      Run("py-spy", {py_spy, "dump", "--pid", number, whole}, [this] { AskIt(); });
    });
  }

  void Finish() {
    timer.cancel();
    tool.reset();
    if (auto tell = std::exchange(done, nullptr)) tell(std::move(found));
  }

  // Runs a tool. `otherwise` is called if the tool showed no stack.
  void Run(absl::string_view name, const std::vector<std::string>& argv,
           std::function<void()> otherwise) {
    const Duration left = std::min(kToolLimit, deadline - MonotonicClock().Now());
    if (left <= Duration::zero()) {
      Note("time was up");
      return Next();
    }
    tool.emplace(loop, argv, left,
                 [self = shared_from_this(), name,
                  otherwise = std::move(otherwise)](const ToolOutput& output) {
                   if (!self->done) return;
                   if (!SummarizeStacks(output.text).frames.empty()) {
                     return self->Take(name, output.text);
                   }
                   self->py_spy_missing |= output.missing;
                   self->Note(output.missing
                                  ? absl::StrCat(name, " is not installed")
                                  : absl::StrCat(name, ": ",
                                                 output.text.empty() ? output.problem
                                                                     : Complaint(output.text)));
                   otherwise();
                 });
  }

  void Note(absl::string_view problem) {
    absl::StrAppend(&found.back().problem, found.back().problem.empty() ? "" : "; ", problem);
  }

  void Take(absl::string_view how, absl::string_view text) {
    found.back().problem.clear();
    found.back().text = absl::StrCat("by ", how, ":\n", text);
    Next();
  }

  // Makes the process write its own stacks.
  void AskIt() {
    const int signal = target().stack_signal;
    file = signal > 0 ? OpenStacksFile(pid(), target().stack_fd) : UniqueFd();
    if (!file.valid()) return AskGdb();
    begin = seen = SizeOf(file);
    if (!Catches(pid(), signal) || !SignalProcess(target().process, signal)) return AskGdb();
    answer_by = std::min(deadline, MonotonicClock().Now() + kAnswerLimit);
    AwaitAnswer();
  }

  // Waits until something was written and nothing new has come since the last look.
  void AwaitAnswer() {
    timer.expires_after(kLook);
    timer.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (error || !self->done) return;
      const off_t size = SizeOf(self->file);
      if (size > self->begin && size == self->seen) return self->TakeAnswer(size);
      self->seen = size;
      if (MonotonicClock().Now() < self->answer_by) return self->AwaitAnswer();
      self->Note("faulthandler: it does not answer");
      self->AskGdb();
    });
  }

  void TakeAnswer(off_t size) {
    std::string text(std::min<size_t>(static_cast<size_t>(size - begin), ToolRun::kMaxBytes), '\0');
    const ssize_t n = ::pread(file.get(), text.data(), text.size(), begin);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    if (SummarizeStacks(text).frames.empty()) return AskGdb();
    Take("faulthandler", text);
  }

  void AskGdb() {
    file = UniqueFd();
    Run("gdb",
        {"gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex",
         "set auto-load off", "-p", absl::StrCat(pid()), "-ex", "thread apply all bt 40"},
        [this] { Next(); });
  }
};

StackDump::StackDump(asio::io_context& loop, std::vector<StackTarget> targets,
                     const std::string& tools, Duration limit,
                     std::function<void(std::vector<ProcessStacks>)> done)
    : state_(std::make_shared<State>(loop, std::move(targets), limit, std::move(done))) {
  const std::string beside = absl::StrCat(tools, "/py-spy");
  if (!tools.empty() && ::access(beside.c_str(), X_OK) == 0) state_->py_spy = beside;
  asio::post(loop, [state = state_] {
    if (state->done) state->Next();
  });
}

StackDump::~StackDump() {
  state_->done = nullptr;
  state_->timer.cancel();
  state_->tool.reset();
}

pid_t StackDump::tool() const { return state_->tool ? state_->tool->pid() : 0; }

}  // namespace hlaunch
