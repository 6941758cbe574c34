// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/follow_job.h"

#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/remote/detached/log_reader.h"

namespace hlaunch {
namespace {

// The poll interval where inotify reports nothing: another host wrote to a shared file system.
constexpr int kLookMs = 500;

// Tells when to look at the job again. Belongs to one thread.
class JobWatch {
 public:
  explicit JobWatch(const DetachedJob& job)
      : job_(job), news_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)), holder_(WatchHolder(job)) {
    if (news_.valid()) {
      ::inotify_add_watch(news_.get(), job.directory.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
    }
  }

  // Whether the job will write nothing more.
  bool Over() const {
    if (job_.life == JobLife::kEnded || job_.life == JobLife::kLost) return true;
    if (holder_.valid()) {
      pollfd poll = {holder_.get(), POLLIN, 0};
      return ::poll(&poll, 1, 0) == 1;
    }
    const absl::StatusOr<DetachedJob> now = ReadJob(job_.directory);
    return !now.ok() || now->life == JobLife::kEnded || now->life == JobLife::kLost;
  }

  // Waits until there may be something new. Returns true if `signals` became readable.
  bool Wait(int signals) {
    pollfd polls[] = {{signals, POLLIN, 0}, {news_.get(), POLLIN, 0}, {holder_.get(), POLLIN, 0}};
    ::poll(polls, 3, kLookMs);
    char bytes[4096];
    while (news_.valid() && ::read(news_.get(), bytes, sizeof(bytes)) > 0) {
    }
    return polls[0].revents != 0;
  }

 private:
  const DetachedJob& job_;
  UniqueFd news_, holder_;
};

void ShowTail(LogReader& reader, const FollowWish& wish) {
  std::deque<LogLine> last;
  while (std::optional<LogLine> line = reader.Next()) {
    last.push_back(*std::move(line));
    if (last.size() > *wish.tail) last.pop_front();
  }
  for (const LogLine& line : last) wish.show(line);
}

}  // namespace

UniqueFd WatchHolder(const DetachedJob& job) {
  if (job.life != JobLife::kRuns) return UniqueFd();
  // Not ::pidfd_open: glibc 2.36 declares it without extern "C".
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, job.holder.pid, 0)));
  // Checked after the open: another process may have taken over the pid before.
  return Lives(job.holder, PlaceOfThisProcess()).value_or(false) ? std::move(fd) : UniqueFd();
}

UniqueFd SignalsOfPerson() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

FollowEnd FollowJob(const DetachedJob& job, const FollowWish& wish) {
  LogReader reader(absl::StrCat(job.directory, "/", kLogName));
  JobWatch watch(job);
  bool over = watch.Over();  // Checked before its log is read.
  if (wish.tail.has_value()) ShowTail(reader, wish);
  while (true) {
    while (const std::optional<LogLine> line = reader.Next()) wish.show(*line);
    if (wish.shown) wish.shown();
    if (wish.enough && wish.enough()) return FollowEnd::kEnough;
    if (!wish.follow) return FollowEnd::kRead;
    if (over) return FollowEnd::kEnded;
    if (watch.Wait(wish.signals)) return FollowEnd::kAsked;
    over = watch.Over();
  }
}

}  // namespace hlaunch
