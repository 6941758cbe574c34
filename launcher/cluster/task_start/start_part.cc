// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/task_start/start_part.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "agent/workers/process/close_range.h"
#include "agent/workers/process/tool_run.h"
#include "launcher/cluster/task_start/private_tmp.h"
#include "launcher/cluster/task_start/unit_scope.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr Duration kScopeTime = std::chrono::seconds(20);  // D-Bus may have to start first.
constexpr Duration kNamesTime = std::chrono::seconds(20);  // A name service may be slow.

absl::Status NoResources(absl::string_view what) {
  return absl::ResourceExhaustedError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Puts the message into an unnamed file, which `hold` reads as its stdin.
absl::StatusOr<UniqueFd> FileOf(const std::string& bytes) {
  UniqueFd file(::memfd_create("hlaunch-start", MFD_CLOEXEC));
  if (!file.valid()) return NoResources("no memory for the start of a part");
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return NoResources("no memory for the start of a part");
    done += static_cast<size_t>(n);
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// The functions below run in the child, which is root at first.

// Closes all of the daemon's descriptors but these. If a child kept an end of another part's pipe,
// the end of file would not come there.
void CloseAllBut(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = STDERR_FILENO + 1;
  for (const int fd : kept) {
    const auto here = static_cast<unsigned>(fd);
    CloseRange(first, here - 1);
    first = here + 1;
  }
  CloseRange(first);
}

void TakeSignals(bool taken) {
  sigset_t blocked;
  taken ? ::sigemptyset(&blocked) : ::sigfillset(&blocked);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

void ForgetTheDaemon() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  TakeSignals(true);
  ::setsid();
  // The daemon's unit may protect it from the kernel's OOM killer. A job must not inherit that.
  const UniqueFd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (::write(score.get(), "0", 1) < 0) return;
}

bool AwaitGate(int gate) {
  char byte = 0;
  ssize_t n = 0;
  while ((n = ::read(gate, &byte, 1)) < 0 && errno == EINTR) {
  }
  return n == 1;
}

absl::StatusOr<UserEntry> FindUser(const PartStart& start) {
  const ToolAnswer found = RunTool({"getent", "passwd", "--", start.user}, kNamesTime);
  if (const absl::Status asked = CheckGetent(found.exit_code); absl::IsUnavailable(asked)) {
    return absl::UnavailableError(
        absl::StrCat("cannot find out who the user ", start.user, " is: ", asked.message()));
  }
  absl::StatusOr<UserEntry> user = ReadUserEntry(found.text);
  if (!user.ok() || user->name != start.user) {
    return absl::PermissionDeniedError(
        absl::StrCat("there is no user ", start.user, " here; all hosts need the same users"));
  }
  HLAUNCH_RETURN_IF_ERROR(CheckUser(*user, start.user, start.uid, start.rule));
  return user;
}

// All groups are needed: without some of them the job might be kept from its own files, or not be
// kept from those of others.
absl::StatusOr<std::vector<gid_t>> GroupsOf(const UserEntry& user) {
  const ToolAnswer found = RunTool({"getent", "initgroups", "--", user.name}, kNamesTime);
  const absl::Status asked = CheckGetent(found.exit_code);
  absl::StatusOr<std::vector<gid_t>> groups =
      asked.ok() ? ReadGroups(found.text, user.name) : absl::StatusOr<std::vector<gid_t>>(asked);
  if (!groups.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot find out the groups of the user ", user.name,
                                               ": ", groups.status().message()));
  }
  groups->insert(groups->begin(), user.gid);
  return groups;
}

absl::Status GiveFolder(const std::string& path, const UserEntry& user) {
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.valid() && ::fchown(folder.get(), user.uid, user.gid) == 0) return absl::OkStatus();
  return NoResources(absl::StrCat("cannot give ", path, " to ", user.name));
}

// The order matters: after the drop of the user the rest would be refused. Once the user is
// dropped, the user's other processes may signal this one, which still has the daemon's memory. So
// call this with all signals blocked.
absl::Status Become(const UserEntry& user, const std::vector<gid_t>& groups) {
  if (::setgroups(groups.size(), groups.data()) != 0 ||
      ::setresgid(user.gid, user.gid, user.gid) != 0 ||
      ::setresuid(user.uid, user.uid, user.uid) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot become ", user.name, ": ", std::strerror(errno)));
  }
  uid_t real = 0, effective = 0, saved = 0;
  ::getresuid(&real, &effective, &saved);
  const bool is_root = user.uid == 0;
  gid_t real_group = 0, effective_group = 0, saved_group = 0;
  ::getresgid(&real_group, &effective_group, &saved_group);
  const bool done = real == user.uid && effective == user.uid && saved == user.uid &&
                    real_group == user.gid && effective_group == user.gid &&
                    saved_group == user.gid;
  if (done && (is_root || ::setresuid(0, 0, 0) != 0)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("cannot become ", user.name, " for good"));
}

// Returns only if it fails.
absl::Status Execute(const PartStart& start, const UserEntry& user) {
  std::string words[] = {"hlaunch", "hold", "--stdin"};
  char* const argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  std::string variables[] = {absl::StrCat("HOME=", user.home), absl::StrCat("USER=", user.name),
                             absl::StrCat("LOGNAME=", user.name),
                             absl::StrCat("SHELL=", user.shell),
                             "PATH=/usr/local/bin:/usr/bin:/bin"};
  std::vector<char*> env;
  for (std::string& variable : variables) env.push_back(variable.data());
  env.push_back(nullptr);
  if (::chdir("/") != 0) return absl::InternalError("no root folder");
  ::signal(SIGPIPE, SIG_DFL);
  TakeSignals(true);  // A pending signal may end the process here, which leaves no core.
  ::execve(start.program.c_str(), argv, env.data());
  return absl::NotFoundError(
      absl::StrCat("cannot run ", start.program, " as ", user.name, ": ", std::strerror(errno)));
}

absl::Status RunPart(const PartStart& start, int message, int complaint) {
  EnterScope(start.job, start.limits, kScopeTime);  // The job runs even without a scope.
  HLAUNCH_RETURN_IF_ERROR(HoldToLimits(start.job, ScopeName(start.job), start.limits));
  HLAUNCH_ASSIGN_OR_RETURN(const UserEntry user, FindUser(start));
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<gid_t> groups, GroupsOf(user));
  HLAUNCH_RETURN_IF_ERROR(GiveFolder(start.folder, user));
  if (!start.private_tmp.empty()) HLAUNCH_RETURN_IF_ERROR(EnterPrivateTmp(start.private_tmp));
  TakeSignals(false);
  HLAUNCH_RETURN_IF_ERROR(Become(user, groups));
  ::prctl(PR_SET_DUMPABLE, 0);  // Holds until exec; dropping the user may have set it again.
  // The user must not get root's keyring. On a kernel without keys there is none to leave.
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::dup2(message, STDIN_FILENO);
  ::dup2(null.get(), STDOUT_FILENO);
  ::dup2(complaint, STDERR_FILENO);
  return Execute(start, user);
}

[[noreturn]] void BecomePart(const PartStart& start, int message, int gate, int complaint) {
  CloseAllBut({message, gate, complaint});
  ForgetTheDaemon();
  // The daemon is gone and does not know of this process.
  if (!AwaitGate(gate)) ::_exit(kExitNotStarted);
  ::signal(SIGPIPE, SIG_IGN);
  const absl::Status failed = RunPart(start, message, complaint);
  const std::string why(failed.message());
  if (::write(complaint, why.data(), why.size()) < 0) ::_exit(kExitNoResources);
  ::_exit(kExitNotStarted);
}

}  // namespace

absl::StatusOr<WaitingPart> ForkPart(const PartStart& start) {
  HLAUNCH_ASSIGN_OR_RETURN(const UniqueFd message, FileOf(EncodeStart(start.message)));
  int gate[2], complaint[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) return NoResources("no pipe");
  UniqueFd gate_end(gate[0]);
  WaitingPart part;
  part.gate = UniqueFd(gate[1]);
  if (::pipe2(complaint, O_CLOEXEC) != 0) return NoResources("no pipe");
  part.complaint = UniqueFd(complaint[0]);
  const UniqueFd complaint_end(complaint[1]);
  part.pid = ::fork();
  if (part.pid < 0) return NoResources("no new process");
  if (part.pid == 0) BecomePart(start, message.get(), gate_end.get(), complaint_end.get());
  ::fcntl(part.complaint.get(), F_SETFL, O_NONBLOCK);
  return part;
}

void LetGo(WaitingPart& part) {
  const char byte = 1;
  while (::write(part.gate.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  part.gate.Close();
}

}  // namespace hlaunch
