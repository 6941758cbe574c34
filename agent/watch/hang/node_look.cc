// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/node_look.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/watch/hang/flight_record.h"
#include "agent/watch/hang/rank_activity.h"
#include "agent/watch/hang/rank_pace.h"
#include "agent/watch/hang/tap.h"
#include "agent/watch/hang/tap_request.h"
#include "agent/watch/hang/user_place.h"
#include "agent/watch/stall/stack_dump.h"
#include "agent/watch/stall/stack_text.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "comm/record/recorded_calls.h"
#include "proto/base/log.h"

namespace hlaunch {

namespace {

constexpr Duration kPatience = std::chrono::seconds(15);
constexpr Duration kPythonLimit = std::chrono::seconds(1);
constexpr Duration kPrompt = std::chrono::milliseconds(100);
constexpr size_t kLongRecord = 1 << 14;  // Shorter ones cost next to nothing.

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

// A script reports nothing before it imports torch; it may be stuck there.
bool IsPython(pid_t pid) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error);
  return !error && absl::StartsWith(program.filename().string(), "python");
}

}  // namespace

// Looks at one rank: its questions are asked one after the other.
class NodeLook::RankLook {
 public:
  RankLook(asio::io_context& loop, const LookPlan& plan, int local_rank)
      : loop_(loop), plan_(plan) {
    snapshot_.rank = plan.first_rank + local_rank;
    snapshot_.local_rank = local_rank;
    snapshot_.host = plan.host;
  }

  void Started(pid_t pid) {
    snapshot_.pid = pid;
    started_ = MonotonicClock().Now();
  }

  void Ended(bool succeeded) {
    alive_ = false;
    snapshot_.ended = succeeded;
    snapshot_.died = !succeeded;
    snapshot_.in_store = snapshot_.in_p2p = snapshot_.busy = snapshot_.holds_interpreter = false;
    snapshot_.waits = snapshot_.on_device = snapshot_.flows = snapshot_.child_works = false;
    for (GroupSnapshot& group : snapshot_.groups) {
      for (CollectiveCall& call : group.latest) call.inside = false;
      for (PeerCalls& calls : group.peers) calls.unfinished = 0;
    }
  }

  // Finds out whether the rank has moved on since the last time.
  void Glance(std::function<void()> done) {
    done_ = std::move(done);
    now_ = MonotonicClock().Now();
    stopped_ = false;
    if (!alive_ || snapshot_.pid == 0) return EndGlance();
    server_ = FindTapServer(plan_.tap, snapshot_.rank, snapshot_.pid);
    moved_now_ = BytesMoved(server_);
    if (still_) moved_ += moved_now_ - moved_before_;
    snapshot_.moved = moved_ + calls_;  // The record may be an old one.
    if (server_ == 0) {
      still_ = now_ - started_ >= plan_.patience && IsPython(snapshot_.pid);
      return EndGlance();
    }
    const std::optional<ProcessEntry> process = ReadProcess(server_);
    stopped_ = process && (process->state == 'T' || process->state == 't');
    if (stopped_) still_ = true;
    records_ = Records();
    glance_now_.clear();
    pace_ = PaceSample();
    by_python_ = late_now_ = device_behind_ = false;
    if (stopped_) return EndGlance();
    if (asked_ == server_ && called_) return plan_.closely ? EndGlance() : AskBriefly(0);
    // What a program loads later may bring a recorder.
    Ask("", [this](const Answer& handlers) {
      records_.answered = !absl::IsDeadlineExceeded(handlers.status());
      if (!records_.answered) return OnGlance();
      if (asked_ != server_) too_long_.clear();
      asked_ = server_;
      TakeQuestions(handlers.ok() ? *handlers : "");
      plan_.closely ? EndGlance() : AskBriefly(0);
    });
  }

  // Then looks at it closely, since some rank has not.
  void Look(const HostConnections& connections, std::function<void()> done) {
    done_ = std::move(done);
    connections_ = &connections;
    if (!alive_ || snapshot_.pid == 0) return End();
    if (server_ == 0) {
      LookAtProcess(snapshot_.pid);
      still_ = still_ && !snapshot_.busy;
      return End();
    }
    if (stopped_) return NoteStopped();
    if (!records_.answered) return OnRecords();
    if (still_ && !by_python_ && !plan_.closely && !unfinished_ && glance_ == at_record_) {
      LookAtProcess(server_);  // The record is what it was: all calls were over.
      return AskOfStillness();
    }
    records_ = Records();
    AskRecorder(0);
  }

  // Forgets what was seen of the process: it was long ago at the next close look.
  void LookAway() {
    seen_.reset();
    seen_below_.reset();
  }

  bool still() const { return alive_ && still_; }
  bool ended() const { return snapshot_.ended; }
  const RankSnapshot& snapshot() const { return snapshot_; }
  const PaceSample& pace() const { return pace_; }
  pid_t tool() const { return dump_ ? dump_->tool() : 0; }

 private:
  using Answer = absl::StatusOr<std::string>;

  void Ask(const std::string& what, std::function<void(Answer)> then) {
    Ask(what, std::move(then), plan_.answer_limit);
  }

  void Ask(const std::string& what, std::function<void(Answer)> then, Duration limit) {
    question_at_ = MonotonicClock().Now();
    request_.emplace(loop_, TapSocketPath(plan_.tap, snapshot_.rank, server_), what,
                     std::move(then), limit);
  }

  // A stopped process would leave the question unanswered.
  void NoteStopped() {
    snapshot_.answers = false;
    still_ = true;
    LookAtProcess(server_);
    End();
  }

  // What the rank's recorders have answered in this look.
  struct Records {
    bool answered = true;  // All of them.
    std::string progress;
    std::optional<FlightRecord> record;  // Of all together.
  };

  struct Question {
    std::string whole;     // Has the whole record as its answer.
    std::string brief;     // Tells only how far the rank is; empty if there is no such question.
    bool is_long = false;  // The record is.
  };

  void TakeQuestions(const std::string& handlers) {
    const std::vector<Question> before = std::move(questions_);
    questions_.clear();
    for (const std::string& whole : RecorderQuestions(handlers)) {
      if (too_long_.count(whole) > 0) continue;
      const auto known = std::find_if(before.begin(), before.end(),
                                      [&](const auto& one) { return one.whole == whole; });
      questions_.push_back(
          known != before.end() ? *known : Question{whole, BriefQuestion(whole, handlers), false});
    }
    snapshot_.hidden = !too_long_.empty();
    has_pace_ = absl::StrContains(handlers, kPaceHandler);
  }

  void AskBriefly(size_t number) {
    if (number == questions_.size()) return AskForPace();
    const Question& question = questions_[number];
    const bool by_python = question.brief == kProgressHandler;
    const bool briefly =
        question.is_long && !question.brief.empty() && (!by_python || (MayAskPython() && !late_));
    const auto then = [=, this](const Answer& answer) {
      const bool in_time = !absl::IsDeadlineExceeded(answer.status());
      if (briefly && !answer.ok() && (in_time || by_python)) {
        // A server that does not know the question never will; Python may hold its lock.
        in_time ? questions_[number].brief.clear() : void(late_ = late_now_ = true);
        return AskBriefly(number);
      }
      if (absl::IsResourceExhausted(answer.status())) {
        NoteTooLong(number);
        return AskBriefly(number);
      }
      if (!answer.ok() && !absl::IsNotFound(answer.status())) {
        records_.answered = false;
        return OnGlance();
      }
      by_python_ = by_python_ || (briefly && by_python);
      if (answer.ok()) NoteProgress(number, briefly, *answer);
      AskBriefly(number + 1);
    };
    Ask(briefly ? question.brief : question.whole, then,
        briefly && by_python ? std::min(kPythonLimit, plan_.answer_limit) : plan_.answer_limit);
  }

  void NoteProgress(size_t number, bool briefly, const std::string& answer) {
    Question& question = questions_[number];
    if (briefly && answer.size() > kLongRecord) question.brief.clear();  // It was not understood.
    const bool by_python = briefly && question.brief == kProgressHandler;
    absl::StrAppend(&glance_now_, by_python ? ProgressOf(answer) : FlightProgress(answer));
    if (by_python) TakePace(answer);
    if (briefly && !by_python) device_behind_ = device_behind_ || HasUnfinishedCalls(answer);
    if (!briefly && question.is_long && !question.brief.empty()) NoteMessages(answer);
    question.is_long = briefly || answer.size() > kLongRecord;
    if (!briefly && (!snapshot_.recorded || !called_)) {
      const std::optional<FlightRecord> record = ParseFlightRecord(answer);
      snapshot_.recorded = snapshot_.recorded || record;
      called_ = called_ || (record && !record->groups.empty());
    }
  }

  // A device that waits for a message does not wait for the slowest rank.
  void NoteMessages(const std::string& record) {
    const std::optional<FlightRecord> calls = ParseFlightRecord(record);
    sends_ = sends_ || (calls && std::any_of(calls->groups.begin(), calls->groups.end(),
                                             [](const auto& one) { return one.messages > 0; }));
  }

  // Python knows what the rank itself does.
  void AskForPace() {
    if (by_python_ || !has_pace_ || !called_ || !MayAskPython() || late_) return OnGlance();
    const auto then = [this](const Answer& answer) {
      if (answer.ok()) TakePace(*answer);
      if (absl::IsDeadlineExceeded(answer.status())) late_ = late_now_ = true;
      OnGlance();
    };
    Ask(std::string(kPaceHandler), then, std::min(kPythonLimit, plan_.answer_limit));
  }

  // Python answers once it gets its lock, which a rank that computes may hold until it waits.
  void TakePace(const std::string& answer) {
    pace_ = PaceOf(answer);
    const bool prompt = MonotonicClock().Now() - question_at_ < kPrompt;
    if (pace_.pace == Pace::kWaits && !prompt) pace_.pace = Pace::kUnknown;
  }

  // Adds what Python does not know.
  void CompletePace() {
    if (pace_.pace == Pace::kUnknown) return;
    AddProcessorUse(server_, &pace_);
    pace_.calls = glance_now_;
    if (pace_.pace == Pace::kWorks && device_behind_) {
      pace_.pace = sends_ ? Pace::kUnknown : Pace::kWaits;
    }
  }

  void OnGlance() {
    const OwnCalls own = OwnCallsOf(ReadCallRecords(server_, kMaxGroupsOfRank));
    called_ = called_ || !own.groups.empty();
    absl::StrAppend(&glance_now_, own.progress);
    CompletePace();
    const bool known = std::exchange(known_, snapshot_.recorded);
    still_ = known && (!records_.answered || glance_now_ == glance_);
    if (records_.answered) glance_ = glance_now_;
    if (!still_) NoteMoved();
    EndGlance();
  }

  void NoteMoved() {
    still_since_ = now_;
    late_ = late_now_;
    snapshot_.place.clear();
    snapshot_.holds_interpreter = snapshot_.waits = snapshot_.in_store = dumped_ = false;
  }

  void AskRecorder(size_t number) {
    if (number == questions_.size()) return OnRecords();
    Ask(questions_[number].whole, [this, number](const Answer& json) {
      if (absl::IsResourceExhausted(json.status())) {
        NoteTooLong(number);
        return AskRecorder(number);
      }
      if (!json.ok() && !absl::IsNotFound(json.status())) {
        records_.answered = false;
        return OnRecords();
      }
      if (json.ok()) AddRecord(*json);
      AskRecorder(number + 1);
    });
  }

  // Such a record takes too long to read, so the server is not asked for it again.
  void NoteTooLong(size_t number) {
    too_long_.insert(questions_[number].whole);
    questions_.erase(questions_.begin() + static_cast<ptrdiff_t>(number));
    if (std::exchange(snapshot_.hidden, true)) return;
    LogWarning(absl::StrCat("the flight record of rank ", snapshot_.rank,
                            " is too long to be read (8 MiB): hangs in which it takes part cannot "
                            "be explained. TORCH_FR_BUFFER_SIZE=2000 keeps it short"));
  }

  void AddRecord(const std::string& json) {
    absl::StrAppend(&records_.progress, FlightProgress(json));
    std::optional<FlightRecord> more = ParseFlightRecord(json);
    if (!more) return;
    if (!records_.record) {
      records_.record = std::move(more);
      return;
    }
    FlightRecord& record = *records_.record;
    record.in_p2p |= more->in_p2p;
    record.device_in_p2p |= more->device_in_p2p;
    record.calls += more->calls;
    for (GroupSnapshot& group : more->groups) {
      if (record.groups.size() < kMaxGroupsOfRank) record.groups.push_back(std::move(group));
    }
  }

  void OnRecords() {
    snapshot_.answers = records_.answered;
    const OwnCalls own = OwnCallsOf(ReadCallRecords(server_, kMaxGroupsOfRank));
    const std::string progress =
        records_.answered ? absl::StrCat(records_.progress, own.progress) : progress_;
    // What Python tells briefly leaves out messages.
    const bool same = progress == progress_ || !(by_python_ || plan_.closely);
    still_ = same && (plan_.closely ? snapshot_.recorded : still_);
    progress_ = progress;
    if (!still_) NoteMoved();
    LookAtProcess(server_);
    if (records_.answered && records_.record) TakeRecord(*std::move(records_.record), own);
    at_record_ = records_.answered ? glance_ : "";
    unfinished_ = snapshot_.in_p2p || HasUnfinished();
    still_&& records_.answered ? AskOfStillness() : End();
  }

  bool HasUnfinished() const {
    return std::any_of(snapshot_.groups.begin(), snapshot_.groups.end(), [](const auto& group) {
      return IsInside(group) ||
             std::any_of(group.peers.begin(), group.peers.end(),
                         [](const PeerCalls& calls) { return calls.unfinished > 0; });
    });
  }

  void AskOfStillness() {
    Ask("wait_counter_values", [this](const Answer& counters) {
      snapshot_.in_store = counters.ok() && WaitsForStore(*counters);
      AskForGroups();
    });
  }

  void TakeRecord(FlightRecord record, const OwnCalls& own) {
    snapshot_.recorded = true;
    calls_ = static_cast<uint64_t>(record.calls + own.calls);
    snapshot_.moved = moved_ + calls_;
    snapshot_.groups = std::move(record.groups);
    const size_t room = kMaxGroupsOfRank - std::min(kMaxGroupsOfRank, snapshot_.groups.size());
    snapshot_.groups.insert(
        snapshot_.groups.end(), own.groups.begin(),
        own.groups.begin() + static_cast<ptrdiff_t>(std::min(room, own.groups.size())));
    for (GroupSnapshot& group : snapshot_.groups) Complete(&group);
    // A rank that waits for its device asks it again and again, or sleeps while threads that serve
    // the device compute a little.
    const bool device_works = record.device_in_p2p || DeviceIsInside();
    snapshot_.on_device = spins_ && device_works && !snapshot_.child_works;
    if (snapshot_.on_device || (device_works && !snapshot_.child_works && !moves_)) {
      snapshot_.busy = false;
    }
    snapshot_.in_p2p = record.in_p2p || own.in_p2p || (record.device_in_p2p && snapshot_.on_device);
  }

  bool DeviceIsInside() const {
    return std::any_of(snapshot_.groups.begin(), snapshot_.groups.end(),
                       [](const auto& group) { return !group.backend.empty() && IsInside(group); });
  }

  // Adds what Python has told of the group.
  void Complete(GroupSnapshot* group) const {
    const auto known = groups_.find(std::string(TorchName(group->name)));
    if (known == groups_.end()) return;
    if (group->members.empty()) group->members = known->second.members;
    const std::string& description = known->second.description;
    if (!description.empty() && description != "undefined") group->description = description;
  }

  // The questions about groups and stacks need the interpreter's lock. So a rank that has not
  // answered one of them is not asked again until it has gone on: its server would run out of
  // threads.
  bool MayAskPython() const { return !snapshot_.holds_interpreter; }

  void AskForGroups() {
    const bool known = std::all_of(
        snapshot_.groups.begin(), snapshot_.groups.end(), [this](const GroupSnapshot& group) {
          return !group.members.empty() || groups_.count(std::string(TorchName(group.name))) > 0;
        });
    if (known || !MayAskPython()) return AskForStack();
    Ask("hlaunch_groups", [this](const Answer& json) {
      NoteAnswer(json);
      if (json.ok()) groups_ = ParseGroups(*json);
      for (GroupSnapshot& group : snapshot_.groups) {
        groups_.try_emplace(std::string(TorchName(group.name)));  // It is not asked for again.
        Complete(&group);
      }
      AskForStack();
    });
  }

  void AskForStack() {
    // Not now_: a question that was not answered has taken its time since.
    if (MonotonicClock().Now() - still_since_ < plan_.patience) return End();
    if (!MayAskPython()) return dumped_ ? End() : DumpStack();
    Ask("dump_traceback", [this](const Answer& text) {
      NoteAnswer(text);
      if (!MayAskPython()) return DumpStack();
      if (text.ok()) {
        const StackSummary stack = SummarizeStacks(*text);
        snapshot_.place = UserPlace(stack);
        if (stack.waits_in.empty()) return AskForWait();
        NoteWait();
      }
      End();
    });
  }

  // The stack does not show that the script waits for a message it has asked for before.
  void AskForWait() {
    Ask("hlaunch_waits", [this](const Answer& waits) {
      NoteAnswer(waits);
      if (waits.ok() && *waits == "1") NoteWait();
      End();
    });
  }

  void NoteWait() {
    snapshot_.waits = true;
    snapshot_.in_p2p = snapshot_.in_p2p || !WaitsForGroup();
  }

  bool WaitsForGroup() const {
    return snapshot_.in_store || std::any_of(snapshot_.groups.begin(), snapshot_.groups.end(),
                                             [](const auto& group) { return IsInside(group); });
  }

  void NoteAnswer(const Answer& answer) {
    if (absl::IsDeadlineExceeded(answer.status())) snapshot_.holds_interpreter = true;
  }

  // Gets the stack by a debugger's means, because the rank does not report it itself.
  void DumpStack() {
    dumped_ = true;
    const auto process = ReadProcess(server_);
    const bool is_held = !process || process->state == 'T' || process->state == 'D';
    if (is_held || snapshot_.traced) return End();  // No tool could stop the process to look.
    dump_.emplace(loop_, std::vector<StackTarget>{TapStackTarget(*process)}, plan_.tools,
                  plan_.dump_limit, [this](const std::vector<ProcessStacks>& found) {
                    if (!found.empty()) snapshot_.place = UserPlace(SummarizeStacks(found[0].text));
                    dump_.reset();
                    End();
                  });
  }

  void LookAtProcess(pid_t pid) {
    RankActivity activity = ReadActivity(pid, *connections_);
    if (pid == server_) activity.moved = moved_now_;  // Not what the glance has made it move.
    snapshot_.state = activity.state;
    snapshot_.kernel = activity.kernel;
    snapshot_.traced = activity.traced;
    snapshot_.addresses.assign(activity.addresses.begin(), activity.addresses.end());
    snapshot_.unheard.assign(activity.unheard.begin(), activity.unheard.end());
    const Duration apart = now_ - seen_at_;
    snapshot_.busy = seen_ && WasBusy(*seen_, activity, apart);
    spins_ = seen_ && Spun(*seen_, activity, apart);
    moves_ = seen_ && MovedMuch(*seen_, activity, apart);
    snapshot_.flows = seen_ && BytesFlowed(*seen_, activity, apart);
    seen_ = activity;
    seen_at_ = now_;
    LookBelow(pid, apart);
  }

  // A data loader, an upload: a rank may wait for a process that it has started.
  void LookBelow(pid_t pid, Duration apart) {
    const std::vector<pid_t> below = still_ ? ProcessesBelow(pid) : std::vector<pid_t>();
    std::optional<RankActivity> activity;
    if (!below.empty()) activity = ReadActivityOf(below, *connections_);
    snapshot_.child_works =
        activity && seen_below_ && WasBusy(*seen_below_, *activity, apart) && !snapshot_.busy;
    snapshot_.busy = snapshot_.busy || snapshot_.child_works;
    seen_below_ = activity;
  }

  // Notes the bytes moved until now: what our questions make the process read and write must not
  // count.
  void End() {
    const uint64_t moved = still_ && server_ != 0 ? BytesMoved(server_) : 0;
    if (moved > 0) moved_before_ = moved;
    if (moved > 0 && seen_) seen_->moved = moved;
    EndGlance();
  }

  void EndGlance() {
    snapshot_.still = still();
    const std::function<void()> done = std::exchange(done_, nullptr);
    if (done) done();
  }

  asio::io_context& loop_;
  const LookPlan& plan_;
  RankSnapshot snapshot_;
  bool alive_ = true;
  bool still_ = false;
  pid_t server_ = 0;
  pid_t asked_ = 0;                  // The server that has told its questions.
  std::vector<Question> questions_;  // That its recorders answer.
  std::set<std::string> too_long_;   // Of these, that are not asked any more.
  Records records_;
  const HostConnections* connections_ = nullptr;  // During a close look.
  std::string progress_;                          // The counters of the flight recorders.
  std::string glance_;                            // How far the rank was at the last glance.
  std::string glance_now_;                        // The same, at the one in progress.
  PaceSample pace_;                               // At the last glance.
  bool has_pace_ = false;                         // The tap tells it.
  bool device_behind_ = false;                    // At this glance: some call is not over there.
  bool sends_ = false;                            // It has called single ranks.
  Instant question_at_;                           // When the last question was asked.
  std::string at_record_;                         // The glance at the last record.
  bool unfinished_ = true;                        // Some call was, at the last record.
  bool known_ = false;                            // At the last glance a recorder had answered.
  bool called_ = false;                           // Some recorder has seen a call.
  bool by_python_ = false;                        // Python has told a part of the glance.
  bool late_ = false;      // Python has not told in time, and is not asked before the rank moves.
  bool late_now_ = false;  // The same, at this glance.
  bool stopped_ = false;   // At this glance.
  Instant started_;
  Instant still_since_;
  Instant now_;                // When the look began.
  bool dumped_ = false;        // In this standstill.
  uint64_t moved_ = 0;         // Bytes moved while it stood still.
  uint64_t calls_ = 0;         // Calls by the last record.
  uint64_t moved_before_ = 0;  // Bytes moved by the end of the last look.
  uint64_t moved_now_ = 0;     // Bytes moved by the begin of this one.
  bool spins_ = false;         // As Spun and MovedMuch say of the last look.
  bool moves_ = false;
  std::optional<RankActivity> seen_;
  std::optional<RankActivity> seen_below_;  // Of the processes that the rank has started.
  Instant seen_at_;
  std::map<std::string, KnownGroup> groups_;
  std::optional<TapRequest> request_;
  std::optional<StackDump> dump_;
  std::function<void()> done_;
};

LookPlan PlanLook(const Assignment& assignment, const WorkerSpec& spec, const NodeFacts& facts) {
  const std::optional<Duration>& timeout = spec.hang_rule.timeout;
  return {facts.tap,
          facts.host,
          assignment.first_rank,
          spec.nproc,
          timeout ? std::min(*timeout / 4, kPatience) : kPatience,
          DirectoryOf(spec.argv[0])};
}

NodeLook::NodeLook(asio::io_context& loop, LookPlan plan) : plan_(std::move(plan)) {
  for (int local_rank = 0; local_rank < plan_.workers; ++local_rank) {
    ranks_.push_back(std::make_unique<RankLook>(loop, plan_, local_rank));
  }
}

NodeLook::~NodeLook() = default;

void NodeLook::Started(int local_rank, pid_t pid) {
  ranks_[static_cast<size_t>(local_rank)]->Started(pid);
}

void NodeLook::Ended(int local_rank, bool succeeded) {
  ranks_[static_cast<size_t>(local_rank)]->Ended(succeeded);
}

void NodeLook::Begin(std::function<void()> done) {
  done_ = std::move(done);
  for_all_ = [this] { LookClosely(); };
  under_way_ = plan_.workers + 1;
  for (const auto& rank : ranks_) rank->Glance([this] { Finish(); });
  Finish();
}

void NodeLook::LookClosely() {
  const bool close = plan_.closely || std::any_of(ranks_.begin(), ranks_.end(),
                                                  [](const auto& rank) { return rank->still(); });
  if (close) connections_ = HostConnections::Read();
  for_all_ = [this] {
    const std::function<void()> done = std::exchange(done_, nullptr);
    done();
  };
  under_way_ = close ? plan_.workers + 1 : 1;
  for (const auto& rank : ranks_) {
    close ? rank->Look(connections_, [this] { Finish(); }) : rank->LookAway();
  }
  Finish();
}

void NodeLook::Finish() {
  if (--under_way_ > 0) return;
  const std::function<void()> next = std::exchange(for_all_, nullptr);
  next();
}

bool NodeLook::still() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const auto& rank) { return rank->still(); }) ||
         std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->ended(); });
}

bool NodeLook::recorded() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const auto& rank) { return rank->snapshot().recorded; });
}

std::vector<RankSnapshot> NodeLook::snapshots() const {
  std::vector<RankSnapshot> snapshots;
  for (const auto& rank : ranks_) snapshots.push_back(rank->snapshot());
  return snapshots;
}

std::vector<PaceSample> NodeLook::paces() const {
  std::vector<PaceSample> paces;
  for (const auto& rank : ranks_) paces.push_back(rank->pace());
  return paces;
}

std::vector<pid_t> NodeLook::tools() const {
  std::vector<pid_t> pids;
  for (const auto& rank : ranks_) {
    if (rank->tool() != 0) pids.push_back(rank->tool());
  }
  return pids;
}

}  // namespace hlaunch
