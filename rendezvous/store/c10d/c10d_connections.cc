// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_connections.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// The bytes of replies that all clients together may leave unread. One client alone may leave
// max_unread_bytes and the largest reply.
constexpr size_t kMaxUnreadOfAll = 512 << 20;
// Fewer bytes do not count as still arriving: they are a few requests behind a wait, not a value.
constexpr size_t kLittle = 4 << 10;
// The requests of one turn; one that names several keys counts as several. They take a fraction of
// a millisecond.
constexpr size_t kTurn = 256;
constexpr size_t kNoEnd = std::numeric_limits<size_t>::max();
// While more clients than this have their turn to come, a burst is executed at once: what waits for
// a turn takes memory, up to 256 KiB each.
constexpr size_t kMostTurns = 256;
// All releases of torch begin the keys of a job's first process group with it, and nobody else
// does.
constexpr absl::string_view kKeysOfTorch = "default_pg";

}  // namespace

C10dConnections::C10dConnections(const C10dServerOptions& options, const Clock& clock, Warn warn)
    : options_(options), clock_(clock), warn_(std::move(warn)), commands_(options.limits) {}

void C10dConnections::Add(std::unique_ptr<C10dConnection> connection) {
  const Id id = connection->id;
  connections_.emplace(id, std::move(connection));
}

C10dConnection* C10dConnections::Find(Id id) const {
  const auto it = connections_.find(id);
  return it == connections_.end() ? nullptr : it->second.get();
}

void C10dConnections::Take(C10dConnection& connection, absl::string_view bytes) {
  AwaitSilence(connection, Instant());
  const bool behind = connection.blocked(options_.max_unread_bytes) || !connection.unparsed.empty();
  if (!behind) return TakeRequests(connection, bytes);
  // A client's own socket is not read then, but a proxy's socket also brings the bytes of others.
  connection.unparsed.Append(bytes);
  if (connection.unparsed.size() > MaxC10dMessageBytes(options_.limits)) {
    return Refuse(connection, absl::ResourceExhaustedError("it sends much behind a wait"));
  }
  AwaitRequests(connection);
  CountArriving(connection);
}

// Executes the requests in `bytes`, which are new or what is unparsed, as long as the turn lasts
// and their replies can be sent.
void C10dConnections::TakeRequests(C10dConnection& connection, absl::string_view bytes) {
  const Id id = connection.id;
  const size_t most = turns_.size() < kMostTurns ? kTurn : kNoEnd;
  if (const absl::Status taken = TakeWhole(connection, &bytes, most); !taken.ok()) {
    return Refuse(connection, taken);
  }
  if (connection.unparsed.empty()) {
    connection.unparsed.Append(bytes);
  } else {
    connection.unparsed.Keep(bytes.size());
  }
  if (!connection.SendReplies()) return Close(id);
  CountArriving(connection);
  if (!notified_.empty()) SendNotices();
  WakeReady();
  if (C10dConnection* still = Find(id)) Continue(*still);
}

// Updates the sum after bytes of the connection were taken. May close other connections. What only
// waits for its turn does not count: it does not stand still.
void C10dConnections::CountArriving(C10dConnection& connection) {
  const bool blocked = connection.blocked(options_.max_unread_bytes);
  const size_t held =
      connection.parser.arriving_bytes() + (blocked ? connection.unparsed.size() : 0);
  const size_t bytes = held < kLittle ? 0 : held;
  if (bytes == 0 && connection.arriving == 0) return;
  SetArriving(connection, bytes);
  if (bytes > 0) LimitArriving(connection);
}

void C10dConnections::SetArriving(C10dConnection& connection, size_t bytes) {
  if (connection.arriving > 0) arrivals_.erase({connection.arrived_last, connection.id});
  arriving_ = arriving_ - connection.arriving + bytes;
  connection.arriving = bytes;
  if (bytes == 0) return;
  connection.arrived_last = ++last_arrival_;
  arrivals_.insert({connection.arrived_last, connection.id});
}

// Closes the clients that stand still longest, to make room for `connection`, whose own request is
// judged once it is whole. So many half requests take no more memory than the store may.
void C10dConnections::LimitArriving(C10dConnection& connection) {
  const Id latest = connection.id;  // Closing another connection may close this one, too.
  while (arrivals_.size() > 1 && commands_.bytes() + arriving_ > options_.limits.total_bytes) {
    const Id stalest = arrivals_.begin()->second;
    if (stalest == latest) return;
    Refuse(
        *Find(stalest),
        absl::ResourceExhaustedError(absl::StrCat(
            "it stands still with a part of a request, and all that is still arriving would take "
            "the store over its limit: ",
            commands_.bytes() + arriving_, ", at most ", options_.limits.total_bytes,
            options_.limits.by_option ? "; raise it with --store-max-total" : "")));
  }
}

absl::Status C10dConnections::TakeWhole(C10dConnection& connection, absl::string_view* bytes,
                                        size_t most) {
  for (size_t done = 0; done < most && !connection.blocked(options_.max_unread_bytes);) {
    HLAUNCH_ASSIGN_OR_RETURN(std::optional<C10dRequest> request, connection.parser.Next(bytes));
    if (!request.has_value()) break;
    done += std::max<size_t>(1, request->keys.size());
    HLAUNCH_RETURN_IF_ERROR(Execute(connection, *std::move(request)));
  }
  return absl::OkStatus();
}

absl::Status C10dConnections::Execute(C10dConnection& connection, C10dRequest request) {
  if (connection.requests_to_judge > 0) JudgeRelease(connection, request);
  if (connection.waiting && request.op != C10dOp::kCancelWait) {
    if (connection.parser.dialect() == C10dDialect::kTorch22) {
      connection.held = std::make_unique<C10dRequest>(std::move(request));
      return absl::OkStatus();
    }
    // Older clients have no CANCEL_WAIT: a client that goes on has timed out, and would take a late
    // reply to its wait for the reply to this request. (If the key came between its time-out and
    // this request, that has already happened; PyTorch's own server did no better.)
    commands_.CancelWait(connection.id);
  }
  if (request.op == C10dOp::kListKeys && commands_.ListsLong()) {
    connection.listing = std::make_unique<C10dCommands::Listing>(&unread_);
    Schedule(connection);
    return absl::OkStatus();
  }
  SendBuffer& replies = connection.replies();
  HLAUNCH_ASSIGN_OR_RETURN(const C10dCommands::Outcome outcome,
                           commands_.Execute(connection.id, std::move(request), &replies.text()));
  replies.Recount();
  connection.waiting = outcome.waits;
  if (!std::exchange(connection.known, true)) connection.OnKnown();
  for (const C10dCommands::Notice& notice : outcome.notices) {
    SendBuffer& to = Find(notice.client)->replies();
    to.text().append(notice.bytes);
    to.Recount();
    notified_.insert(notice.client);
  }
  return CheckUnread();
}

// Tells once of ranks with two releases of torch that number the store's requests differently. They
// would wait for each other until a time-out that blames one of them.
void C10dConnections::JudgeRelease(C10dConnection& connection, const C10dRequest& request) {
  --connection.requests_to_judge;
  if (request.keys.empty() || !absl::StrContains(request.keys.front(), kKeysOfTorch)) return;
  connection.requests_to_judge = 0;
  const bool newer = connection.parser.dialect() == C10dDialect::kTorch22;
  std::string& source = newer ? newer_torch_ : older_torch_;
  if (!source.empty()) return;
  source = connection.Source();
  if (newer_torch_.empty() || older_torch_.empty()) return;
  warn_(absl::StrCat("store: ranks have different releases of torch: 2.2 or newer at ",
                     newer_torch_, ", and 2.1 or older at ", older_torch_,
                     "; they wait for each other in vain, so give all of them the same torch"));
}

absl::Status C10dConnections::CheckUnread() const {
  if (unread_ <= std::max(kMaxUnreadOfAll, 2 * MaxC10dMessageBytes(options_.limits))) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError("all clients together leave too many replies unread");
}

// Called after the requests were executed, so that no client is closed meanwhile.
void C10dConnections::SendNotices() {
  for (const Id id : std::exchange(notified_, {})) {
    C10dConnection* watcher = Find(id);
    if (watcher == nullptr) continue;
    // A client that does not read must not use up what all clients may leave unread.
    if (watcher->SendReplies() &&
        watcher->replies().size() <= MaxC10dMessageBytes(options_.limits)) {
      AwaitRequests(*watcher);
    } else {
      Close(id);
    }
  }
}

// Decides what comes next for a connection whose turn is over.
void C10dConnections::Continue(C10dConnection& connection) {
  AwaitRequests(connection);
  const bool blocked = connection.blocked(options_.max_unread_bytes);
  const bool more = !blocked && !connection.unparsed.empty();
  if (connection.gone && !more) return Close(connection.id);
  if (blocked) return;
  if (more) {
    Schedule(connection);  // A client with many requests must let others run.
  } else if (connection.parser.awaits_silence()) {
    AwaitSilence(connection, clock_.Now() + options_.silence);
  }
}

// Stops reading from a client whose replies cannot be sent.
void C10dConnections::AwaitRequests(C10dConnection& connection) {
  connection.AwaitRequests(!connection.blocked(options_.max_unread_bytes) &&
                           connection.unparsed.empty());
}

// Answers all clients whose keys have come. Removing a client may make another one ready, so this
// loops until none is left.
void C10dConnections::WakeReady() {
  for (;;) {
    const std::vector<Id> ready = commands_.TakeReady();
    if (ready.empty()) return;
    for (const Id id : ready) {
      C10dConnection* connection = Find(id);
      if (connection == nullptr) continue;
      connection->waiting = false;
      PutByte(&connection->replies().text(), kC10dStopWaiting);
      if (!connection->SendReplies()) {
        Remove(id);
        continue;
      }
      AwaitRequests(*connection);
      if (connection->held != nullptr) Schedule(*connection);
    }
  }
}

void C10dConnections::Schedule(C10dConnection& connection) {
  if (!std::exchange(connection.scheduled, true)) turns_.push_back(connection.id);
}

// Takes the turns that were due when it was called; a connection that is due again comes after the
// events of the others.
void C10dConnections::TakeTurns() {
  if (!turns_.empty()) {
    for (const Id id : std::exchange(turns_, {})) {
      if (C10dConnection* connection = Find(id)) TakeTurn(*connection);
    }
  }
  if (!silences_.empty()) EndSilences();
  heap_trim_.Note(commands_.bytes());
}

void C10dConnections::TakeTurn(C10dConnection& connection) {
  connection.scheduled = false;
  if (connection.waiting && connection.held != nullptr) return Continue(connection);
  if (connection.listing != nullptr) {
    const absl::StatusOr<bool> listed = List(connection);
    if (!listed.ok()) return Refuse(connection, listed.status());
    if (!*listed) return Schedule(connection);  // Others come first.
  }
  if (const auto held = std::move(connection.held); held != nullptr) {
    const absl::Status executed = Execute(connection, std::move(*held));
    if (!executed.ok()) return Refuse(connection, executed);
  }
  TakeRequests(connection, connection.unparsed.bytes());
}

// Makes the next portion of a list; returns whether that was the last.
absl::StatusOr<bool> C10dConnections::List(C10dConnection& connection) {
  HLAUNCH_ASSIGN_OR_RETURN(const bool whole, commands_.GoOn(*connection.listing));
  HLAUNCH_RETURN_IF_ERROR(CheckUnread());
  if (!whole) return false;
  SendBuffer& replies = connection.replies();
  std::string& made = connection.listing->reply.text();
  if (replies.text().empty()) {
    replies.text().swap(made);
  } else {
    replies.text().append(made);
    made.clear();
  }
  connection.listing->reply.Recount();
  replies.Recount();
  connection.listing.reset();
  return true;
}

Instant C10dConnections::next_turn() const {
  if (!turns_.empty()) return Instant();
  return silences_.empty() ? Instant::max() : silences_.begin()->first;
}

// If `until` is Instant(), no silence is awaited any longer.
void C10dConnections::AwaitSilence(C10dConnection& connection, Instant until) {
  if (connection.silent_until == until) return;
  silences_.erase({connection.silent_until, connection.id});
  connection.silent_until = until;
  if (until != Instant()) silences_.insert({until, connection.id});
}

void C10dConnections::EndSilences() {
  const Instant now = clock_.Now();
  while (!silences_.empty() && silences_.begin()->first <= now) {
    C10dConnection& connection = *Find(silences_.begin()->second);
    AwaitSilence(connection, Instant());
    const absl::Status executed = Execute(connection, connection.parser.Silence());
    if (executed.ok()) {
      TakeRequests(connection, "");
    } else {
      Refuse(connection, executed);
    }
  }
}

void C10dConnections::Refuse(C10dConnection& connection, const absl::Status& why) {
  const std::string line =
      absl::StrCat("store: closed the connection from ", connection.Source(), ": ", why.message());
  Close(connection.id);
  warn_(line);
}

void C10dConnections::Close(Id id) {
  Remove(id);
  WakeReady();
}

void C10dConnections::CloseAfterTurns(Id id) {
  C10dConnection* connection = Find(id);
  if (connection != nullptr) connection->gone = true;
  if (connection == nullptr || !connection->scheduled) Close(id);
}

void C10dConnections::CloseAfterAll(Id id) {
  CloseAfterTurns(id);
  while (C10dConnection* still = Find(id)) TakeTurn(*still);
}

void C10dConnections::Remove(Id id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  it->second->TellEnd();
  AwaitSilence(*it->second, Instant());
  SetArriving(*it->second, 0);
  commands_.Forget(id);
  connections_.erase(it);
}

void C10dConnections::Clear() {
  notified_.clear();
  connections_.clear();
  turns_.clear();
  silences_.clear();
  arrivals_.clear();
  arriving_ = 0;
  commands_ = C10dCommands(options_.limits);
}

}  // namespace hlaunch
