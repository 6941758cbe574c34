// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/exit_notice.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

std::string ReadSmallFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[8192];
  const ssize_t n = fd.valid() ? ::read(fd.get(), buffer, sizeof(buffer)) : -1;
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : std::string();
}

namespace {

constexpr uint32_t kExitingFlag = 0x4;  // PF_EXITING of linux/sched.h.

// "4711 (a ) name) S 1 4711 4711 …": the name may contain anything; the last ')' ends it.
std::optional<ProcessEntry> ReadEntry(pid_t pid) {
  const std::string stat = ReadSmallFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t open = stat.find('(');
  const size_t close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(close + 1), ' ', absl::SkipEmpty());
  ProcessEntry entry;
  uint32_t flags = 0;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[6], &flags) ||
      !absl::SimpleAtoi(fields[1], &entry.parent) || !absl::SimpleAtoi(fields[3], &entry.session) ||
      !absl::SimpleAtoi(fields[19], &entry.start_time)) {
    return std::nullopt;
  }
  entry.pid = pid;
  entry.state = fields[0][0];
  entry.exiting = (flags & kExitingFlag) != 0;
  entry.command = stat.substr(open + 1, close - open - 1);
  return entry;
}

// Our own number in /proc. It is not our pid if /proc belongs to an outer pid namespace (unshare
// --pid without --mount-proc): its numbers then mean other processes. 0: /proc is missing, or does
// not show us.
pid_t OwnNumberInProc() {
  char target[32];
  const ssize_t n = ::readlink("/proc/self", target, sizeof(target));
  const absl::string_view text(target, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  pid_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

bool ProcIsOurs() { return OwnNumberInProc() == ::getpid(); }

// The numbers of one line of /proc/N/status, as of "NSpid:\t4711\t12": one for each pid namespace
// from that of /proc inwards.
std::vector<pid_t> NumbersOf(absl::string_view status, absl::string_view name) {
  std::vector<pid_t> numbers;
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    for (const absl::string_view word : absl::StrSplit(line, '\t', absl::SkipEmpty())) {
      if (!absl::SimpleAtoi(word, &numbers.emplace_back())) return {};
    }
  }
  return numbers;
}

std::string StatusOf(pid_t shown) {
  return ReadSmallFile(absl::StrCat("/proc/", shown, "/status"));
}

using ByParent = std::multimap<pid_t, ProcessEntry>;

// What is below this process in `all`, which has the numbers of an outer pid namespace, with the
// numbers of our own. `self` is our number there.
ByParent WithOwnNumbers(const ByParent& all, pid_t self) {
  const size_t level = NumbersOf(StatusOf(self), "NSpid:").size();
  ByParent below;
  if (level == 0) return below;
  std::vector<std::pair<pid_t, pid_t>> parents = {{self, ::getpid()}};  // There, and here.
  for (size_t i = 0; i < parents.size() && i <= all.size(); ++i) {
    const auto [there, here] = parents[i];
    const auto [first, last] = all.equal_range(there);
    for (auto it = first; it != last; ++it) {
      const std::string status = StatusOf(it->second.pid);
      const std::vector<pid_t> pids = NumbersOf(status, "NSpid:");
      const std::vector<pid_t> sessions = NumbersOf(status, "NSsid:");
      if (pids.size() < level || sessions.size() < level) continue;  // It is gone.
      ProcessEntry entry = it->second;
      entry.shown = entry.pid;
      entry.pid = pids[level - 1];
      entry.parent = here;
      entry.session = sessions[level - 1];
      parents.emplace_back(entry.shown, entry.pid);
      below.emplace(here, std::move(entry));
    }
  }
  return below;
}

ByParent AllByParent() {
  ByParent all;
  const pid_t self = OwnNumberInProc();
  if (self == 0) return all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return all;
  while (const dirent* item = ::readdir(proc.get())) {
    pid_t pid;
    if (!absl::SimpleAtoi(item->d_name, &pid)) continue;
    if (std::optional<ProcessEntry> entry = ReadEntry(pid)) all.emplace(entry->parent, *entry);
  }
  return self == ::getpid() ? all : WithOwnNumbers(all, self);
}

pid_t NumberInProc(const ProcessEntry& entry) { return entry.shown != 0 ? entry.shown : entry.pid; }

// The children of all threads of this process, as the kernel lists them. Unset if the kernel does
// not list them (CONFIG_PROC_CHILDREN) or if a thread has just ended.
std::optional<std::vector<pid_t>> ReadChildren() {
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir("/proc/self/task"), ::closedir);
  if (threads == nullptr || !ProcIsOurs()) return std::nullopt;
  std::vector<pid_t> found;
  while (const dirent* item = ::readdir(threads.get())) {
    if (item->d_name[0] == '.') continue;
    std::ifstream file(absl::StrCat("/proc/self/task/", item->d_name, "/children"));
    if (!file.is_open()) return std::nullopt;
    for (pid_t pid = 0; file >> pid;) found.push_back(pid);
    if (!file.eof()) return std::nullopt;
  }
  return found;
}

bool Reap(pid_t pid) {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) == 0 &&
         info.si_pid == pid;
}

bool IsIn(absl::Span<const pid_t> pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

// Waits until one of the children in `entries` exits, at most 50 ms: nothing tells us when a
// grandchild that lost its parent becomes our child.
void WaitForAnExit(const std::vector<ProcessEntry>& entries, Duration left) {
  std::vector<UniqueFd> pidfds;
  std::vector<pollfd> polls;
  for (const ProcessEntry& entry : entries) {
    if (entry.parent != ::getpid() || polls.size() == 64) continue;
    pidfds.push_back(OpenPidfd(entry.pid));
    if (pidfds.back().valid()) polls.push_back({pidfds.back().get(), POLLIN, 0});
  }
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  ::poll(polls.data(), polls.size(), static_cast<int>(std::clamp<int64_t>(ms, 1, 50)));
}

// Without /proc only the children themselves can be seen. The init of a pid namespace may kill
// everything in it; other processes wait for children that end by themselves.
KillReport KillUnseen(const Clock& clock, Instant deadline) {
  KillReport report;
  do {
    if (::getpid() == 1) ::kill(-1, SIGKILL);
    siginfo_t info = {};
    const int result = ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG);
    if (result != 0) break;  // No child is left.
    if (info.si_pid != 0) {
      ++report.ended;
    } else {
      ::poll(nullptr, 0, 5);
    }
  } while (clock.Now() < deadline);
  return report;
}

}  // namespace

std::string ProcessEntry::ToString() const {
  const std::string where = ReadSmallFile(absl::StrCat("/proc/", NumberInProc(*this), "/wchan"));
  return absl::StrCat(command, "[", pid, "], state ", std::string(1, state),
                      where.empty() || where == "0" ? "" : absl::StrCat(" in ", where));
}

std::optional<ProcessEntry> ReadProcess(pid_t pid) {
  return ProcIsOurs() ? ReadEntry(pid) : std::nullopt;
}

bool IgnoresSignal(const ProcessEntry& entry, int signal) {
  const std::string name = "\nSigIgn:\t";
  const std::string status = StatusOf(NumberInProc(entry));
  const size_t at = status.find(name);
  uint64_t mask = 0;
  return at != std::string::npos &&
         absl::SimpleHexAtoi(absl::string_view(status).substr(at + name.size(), 16), &mask) &&
         (mask >> (signal - 1) & 1) != 0;
}

bool SignalProcess(const ProcessEntry& entry, int signal) {
  // Our child keeps its pid until this thread reaps it.
  if (entry.parent == ::getpid()) return ::kill(entry.pid, signal) == 0;
  // Another process's pid may have been reused since it was read: take a pidfd, then check again.
  const UniqueFd pidfd = OpenPidfd(entry.pid);
  // Without pidfds, the pid might be reused in the microseconds between the check and the signal.
  const bool unheld = !pidfd.valid() && !KernelHasPidfds();
  const std::optional<ProcessEntry> again = ReadEntry(NumberInProc(entry));
  if (!again.has_value() || again->start_time != entry.start_time) return false;
  if (unheld) return ::kill(entry.pid, signal) == 0;
  if (!pidfd.valid()) return false;
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0) return true;
  // We may not signal it, which kill says too, or a container runtime refuses the call.
  return errno == EPERM && ::kill(entry.pid, signal) == 0;
}

std::vector<ProcessEntry> Descendants(pid_t root, absl::Span<const pid_t> spared) {
  const ByParent all = AllByParent();
  std::vector<ProcessEntry> found;
  const auto add_children = [&](pid_t parent, absl::Span<const pid_t> except) {
    const auto [first, last] = all.equal_range(parent);
    for (auto it = first; it != last; ++it) {
      if (!IsIn(except, it->second.pid)) found.push_back(it->second);
    }
  };
  add_children(root, spared);
  // The table is not a snapshot: a reused pid could close a cycle, hence the limit.
  for (size_t i = 0; i < found.size() && found.size() <= all.size(); ++i) {
    add_children(found[i].pid, {});
  }
  return found;
}

bool BecomeSubreaper() { return ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0; }

int SignalDescendants(pid_t root, int signal, absl::Span<const pid_t> spared) {
  int sent = 0;
  for (const ProcessEntry& entry : Descendants(root, spared)) {
    if (entry.state != 'Z' && SignalProcess(entry, signal)) ++sent;
  }
  return sent;
}

int ReapOrphans(absl::Span<const pid_t> owned) {
  int reaped = 0;
  siginfo_t info = {};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
         !IsIn(owned, info.si_pid) && Reap(info.si_pid)) {
    ++reaped;
    info = {};
  }
  return reaped;
}

bool HasChildren(absl::Span<const pid_t> spared) {
  siginfo_t info = {};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD) return false;
  if (spared.empty()) return true;
  const std::optional<std::vector<pid_t>> children = ReadChildren();
  return !children || std::any_of(children->begin(), children->end(),
                                  [&](pid_t child) { return !IsIn(spared, child); });
}

KillReport KillAndReapDescendants(const Clock& clock, Instant deadline,
                                  absl::Span<const pid_t> spared) {
  if (OwnNumberInProc() == 0) return KillUnseen(clock, deadline);
  KillReport report;
  while (true) {
    if (!HasChildren()) return report;
    std::vector<ProcessEntry> left = Descendants(::getpid(), spared);
    // Our children come first. A process that loses its parent becomes our child for the next pass,
    // so the loop ends.
    for (const ProcessEntry& entry : left) SignalProcess(entry, SIGKILL);
    const auto reaped = std::remove_if(left.begin(), left.end(), [](const ProcessEntry& entry) {
      return entry.parent == ::getpid() && Reap(entry.pid);
    });
    const bool progress = reaped != left.end();
    if (left.empty()) return report;
    report.ended += static_cast<int>(left.end() - reaped);
    left.erase(reaped, left.end());
    const Instant now = clock.Now();
    if (now >= deadline) {
      report.stuck = std::move(left);
      return report;
    }
    if (!progress) WaitForAnExit(left, deadline - now);
  }
}

}  // namespace hlaunch
