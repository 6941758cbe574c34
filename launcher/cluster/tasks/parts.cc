// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/parts.h"

#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "launcher/cluster/task_start/start_part.h"
#include "launcher/cluster/task_start/unit_scope.h"
#include "launcher/cluster/tasks/kept_parts.h"
#include "launcher/cluster/tasks/part_holder.h"
#include "launcher/cluster/tasks/part_state.h"
#include "launcher/cluster/tasks/part_words.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

constexpr size_t kMostKept = 100;      // Ended parts whose end the head knows.
constexpr size_t kMostUnknown = 1000;  // Ended parts whose end it does not know.
constexpr size_t kMostComplaint = 2000;
// For changes that the kernel does not tell: its watches may be used up.
constexpr Duration kLookTime = std::chrono::seconds(2);
constexpr Duration kLookPause = std::chrono::milliseconds(100);

std::string BootId() {
  return std::string(absl::StripAsciiWhitespace(ReadSmallFile("/proc/sys/kernel/random/boot_id")));
}

}  // namespace

// A part of a job. Belongs to Parts.
struct Parts::Part {
  explicit Part(asio::io_context& loop) : pause(loop) {}
  PartRecord record;
  JobFolderFacts said;
  std::optional<PartHolder> holder;  // Unset: the part has ended.
  std::optional<asio::posix::stream_descriptor> complaint;
  std::string complained;
  int watch = 0;
  asio::steady_timer pause;  // Between two looks.
  bool paused = false;
  bool missed = false;     // Something has changed during the pause.
  bool has_group = false;  // The part has ended, but its control group still exists.
  std::string told;        // The state that was told last, as text.
};

Parts::Parts(asio::io_context& loop, Settings settings,
             std::function<void(const PartTold&)> changed)
    : loop_(loop),
      settings_(std::move(settings)),
      changed_(std::move(changed)),
      folders_(settings_.folder),
      boot_id_(BootId()),
      watch_(loop, IN_MOVED_TO | IN_CREATE),
      sweep_(loop, folders_),
      look_(loop) {}

Parts::~Parts() = default;

absl::Status Parts::Open() {
  HLAUNCH_RETURN_IF_ERROR(folders_.Open());
  for (const uint64_t job : folders_.All()) {
    absl::StatusOr<PartRecord> record = folders_.Read(job);
    if (!record.ok()) {
      // The daemon may have been killed between the folder and the first record.
      if (!folders_.HasRecord(job) && folders_.SetAside(job)) continue;
      LogWarning(absl::StrCat("the folder ", folders_.PartPath(job),
                              " is no part of a job: ", record.status().message()));
      continue;
    }
    FindAgain(*std::move(record));
  }
  sweep_.Begin();
  LookAtAll();
  return absl::OkStatus();
}

void Parts::FindAgain(PartRecord record) {
  auto part = std::make_unique<Part>(loop_);
  part->record = std::move(record);
  const PartRecord& kept = part->record;
  const bool lives =
      kept.holder > 0 && kept.boot_id == boot_id_ && !HasEnded(kept.holder, kept.start_time);
  Part& there = *(parts_[kept.order.job] = std::move(part));
  if (lives) {
    Watch(there);
  } else {
    RemoveGroup(there);
  }
  there.said = folders_.Look(kept.order.job, kept.order.uid);
  there.told = TextOf(ToJson(ToldOf(there)));
}

absl::Status Parts::Start(const PartOrder& order) {
  const auto refuse = [&](absl::string_view why) {
    return absl::ResourceExhaustedError(absl::StrCat("host ", settings_.host, ": ", why));
  };
  if (const auto found = parts_.find(order.job); found != parts_.end()) {
    if (found->second->record.mark == MarkOfToken(order.token)) {
      changed_(ToldOf(*found->second));
      return absl::OkStatus();
    }
    if (found->second->holder) return refuse("a part of another head's job of that number runs");
    if (!folders_.SetAside(order.job)) {
      return refuse("what an older job has left cannot be removed");
    }
    sweep_.Begin();
    parts_.erase(found);
  }
  if (living() >= settings_.most) {
    return refuse(absl::StrCat(living(), " parts of jobs run here, as many as max-parts allows"));
  }
  if (const absl::Status made = folders_.Make(order.job); !made.ok()) return refuse(made.message());
  auto part = std::make_unique<Part>(loop_);
  if (const absl::Status begun = Begin(*part, order); !begun.ok()) {
    folders_.SetAside(order.job);
    sweep_.Begin();
    return refuse(begun.message());
  }
  Part& there = *(parts_[order.job] = std::move(part));
  ReadComplaint(there);
  Look(there);
  return absl::OkStatus();
}

absl::Status Parts::Begin(Part& part, const PartOrder& order) {
  const std::string folder = folders_.JobPath(order.job);
  part.record.order = order;
  part.record.mark = MarkOfToken(order.token);
  part.record.boot_id = boot_id_;
  part.record.made_ms = WallMillis();
  HLAUNCH_RETURN_IF_ERROR(folders_.Keep(part.record));
  const PartStart start = {order.job,
                           order.user,
                           order.uid,
                           settings_.rule,
                           settings_.limits,
                           settings_.private_tmp ? folders_.PrivatePath(order.job) : "",
                           folder,
                           settings_.program,
                           StartOfPart(order, folder)};
  HLAUNCH_ASSIGN_OR_RETURN(WaitingPart waiting, ForkPart(start));
  // A process that cannot be identified or recorded is not let go: it ends when its gate closes.
  const auto give_up = [&waiting](absl::Status why) {
    waiting.gate.Close();
    ::waitpid(waiting.pid, nullptr, 0);
    return why;
  };
  const std::optional<ProcessEntry> found = ReadProcess(waiting.pid);
  if (!found) return give_up(absl::ResourceExhaustedError("/proc cannot be read"));
  part.record.holder = waiting.pid;
  part.record.start_time = found->start_time;
  part.record.order.token.clear();
  part.record.order.request.environment.clear();
  if (const absl::Status kept = folders_.Keep(part.record); !kept.ok()) return give_up(kept);
  Watch(part);
  LetGo(waiting);
  part.complaint.emplace(loop_, waiting.complaint.Release());
  LogInfo(absl::StrCat("job ", order.job, ": starting node ", order.node_rank, " for user ",
                       order.user));
  return absl::OkStatus();
}

void Parts::Watch(Part& part) {
  const uint64_t job = part.record.order.job;
  part.holder.emplace(loop_, part.record.holder, part.record.start_time, [this, job] {
    const auto found = parts_.find(job);
    if (found != parts_.end() && found->second->holder) Ended(*found->second);
  });
  const absl::StatusOr<UniqueFd> folder = folders_.OpenJob(job);
  if (!folder.ok()) return;
  part.watch = watch_.Watch(folder->get(), [this, job] {
    if (const auto found = parts_.find(job); found != parts_.end()) LookSoon(*found->second);
  });
}

// Reads the complaint until the holder has taken over, or the process has ended.
void Parts::ReadComplaint(Part& part) {
  const uint64_t job = part.record.order.job;
  part.complaint->async_wait(
      asio::posix::stream_descriptor::wait_read, [this, job](std::error_code error) {
        if (error) return;
        const auto found = parts_.find(job);
        if (found == parts_.end() || !found->second->complaint) return;
        Part& there = *found->second;
        char bytes[512];
        const ssize_t n = ::read(there.complaint->native_handle(), bytes, sizeof bytes);
        const bool more = n > 0 && there.complained.size() < kMostComplaint;
        if (n > 0) there.complained.append(bytes, static_cast<size_t>(n));
        if (more) return ReadComplaint(there);
        there.complaint.reset();
      });
}

void Parts::Ended(Part& part) {
  part.holder->Reap();
  part.holder.reset();
  if (part.complaint) {
    char bytes[kMostComplaint];
    const ssize_t n = ::read(part.complaint->native_handle(), bytes, sizeof bytes);
    if (n > 0) part.complained.append(bytes, static_cast<size_t>(n));
    part.complaint.reset();
  }
  watch_.Forget(part.watch);
  const uint64_t job = part.record.order.job;
  part.said = folders_.Look(job, part.record.order.uid);
  if (!part.said.held && !part.complained.empty()) {
    absl::string_view why = absl::StripAsciiWhitespace(part.complained);
    absl::ConsumePrefix(&why, "hlaunch: ");
    part.record.trouble = PrintableLine(why);
    folders_.Keep(part.record).IgnoreError();
  }
  RemoveGroup(part);
  Look(part);
}

// Kills what the job has left in the group, and removes the group. Killed processes take a moment
// to end.
void Parts::RemoveGroup(Part& part) {
  KillScope(part.record.order.job);
  part.has_group = !RemoveScope(part.record.order.job);
  if (folders_.SetAsidePrivate(part.record.order.job)) sweep_.Begin();
}

// Looks at the first change at once, and at later ones only after a pause, since a job may make
// many changes.
void Parts::LookSoon(Part& part) {
  if (part.paused) {
    part.missed = true;
    return;
  }
  part.paused = true;
  Look(part);
  part.pause.expires_after(kLookPause);
  part.pause.async_wait([this, job = part.record.order.job](std::error_code error) {
    if (error) return;
    const auto found = parts_.find(job);
    if (found == parts_.end()) return;
    found->second->paused = false;
    if (std::exchange(found->second->missed, false)) LookSoon(*found->second);
  });
}

void Parts::Look(Part& part) {
  const PartRecord& record = part.record;
  part.said = folders_.Look(record.order.job, record.order.uid);
  const PartTold told = ToldOf(part);
  std::string text = TextOf(ToJson(told));
  if (text == part.told) return;
  part.told = std::move(text);
  if (!told.trouble.empty()) LogWarning(absl::StrCat("job ", told.job, ": ", told.trouble));
  changed_(told);
}

PartTold Parts::ToldOf(const Part& part) const {
  return TellPart({part.record, part.said, part.holder.has_value(), WallMillis(), boot_id_,
                   settings_.host, reachable_at_});
}

void Parts::LookAtAll() {
  for (const auto& [job, part] : parts_) {
    if (part->holder) part->holder->Look();
    if (part->holder) Look(*part);
    if (part->has_group) RemoveGroup(*part);
  }
  RemoveOld();
  look_.expires_after(kLookTime);
  look_.async_wait([this](std::error_code error) {
    if (!error) LookAtAll();
  });
}

void Parts::RemoveOld() {
  std::vector<EndedPart> known, unknown;
  for (const auto& [job, part] : parts_) {
    if (!part->holder && !part->has_group) {  // Only a part that is kept gets its group removed.
      (part->record.forgotten ? known : unknown).push_back({job, part->record.order.uid});
    }
  }
  const auto remove = [this](const std::vector<EndedPart>& ended, size_t most) {
    for (const uint64_t job : PartsToRemove(ended, most)) {
      if (folders_.SetAside(job)) parts_.erase(job);
      sweep_.Begin();
    }
  };
  remove(known, kMostKept);
  remove(unknown, kMostUnknown);
}

absl::Status Parts::Signal(const SignalOrder& order) {
  const auto found = parts_.find(order.job);
  if (found == parts_.end()) {
    return absl::NotFoundError(
        absl::StrCat("host ", settings_.host, " has no part of job ", order.job));
  }
  const bool known = order.signal == SIGTERM || order.signal == SIGINT || order.signal == SIGKILL;
  if (!known) return absl::InvalidArgumentError("a part is sent SIGTERM, SIGINT or SIGKILL");
  Part& part = *found->second;
  if (!part.holder) return absl::OkStatus();
  if (order.signal == SIGKILL) {
    part.record.killed = true;
    folders_.Keep(part.record).IgnoreError();
  }
  part.holder->Signal(order.signal);
  if (order.signal == SIGKILL) KillScope(order.job);
  return absl::OkStatus();
}

absl::Status Parts::Leave(uint64_t job, const std::string& reason) {
  const auto found = parts_.find(job);
  if (found == parts_.end()) {
    return absl::NotFoundError(absl::StrCat("host ", settings_.host, " has no part of job ", job));
  }
  if (!found->second->holder) return absl::OkStatus();
  return reason.empty() ? folders_.TakeBackLeave(job) : folders_.TellToLeave(job, reason);
}

absl::Status Parts::Forget(const ForgetOrder& order) {
  const auto found = parts_.find(order.job);
  if (found == parts_.end()) return absl::OkStatus();
  Part& part = *found->second;
  if (part.holder) {
    return absl::FailedPreconditionError(
        absl::StrCat("host ", settings_.host, ": the part of job ", order.job, " runs"));
  }
  if (part.record.forgotten) return absl::OkStatus();
  part.record.forgotten = true;
  return folders_.Keep(part.record);
}

void Parts::SetReachableAt(const std::string& address) {
  if (address == reachable_at_) return;
  reachable_at_ = address;
  for (const auto& [job, part] : parts_) {
    if (part->holder) Look(*part);
  }
}

std::vector<PartTold> Parts::All() const {
  std::vector<PartTold> all;
  for (const auto& [job, part] : parts_) {
    if (!part->record.forgotten) all.push_back(ToldOf(*part));
  }
  return all;
}

const PartRecord* Parts::Find(uint64_t job) const {
  const auto found = parts_.find(job);
  return found == parts_.end() ? nullptr : &found->second->record;
}

bool Parts::Lives(uint64_t job) const {
  const auto found = parts_.find(job);
  return found != parts_.end() && found->second->holder.has_value();
}

size_t Parts::living() const {
  return static_cast<size_t>(std::count_if(parts_.begin(), parts_.end(), [](const auto& entry) {
    return entry.second->holder.has_value();
  }));
}

}  // namespace hlaunch
