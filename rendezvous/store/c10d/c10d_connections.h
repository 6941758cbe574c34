// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/store/c10d/c10d_commands.h"
#include "rendezvous/store/c10d/c10d_connection.h"
#include "rendezvous/store/c10d/c10d_server_options.h"
#include "rendezvous/store/keys/heap_trim.h"

namespace hlaunch {

// All clients of a master store and their requests. Executes each client's requests in order, some
// hundred in a turn, so that nobody's burst holds up the others, and wakes clients that wait.
// Closes a client that sends nonsense, leaves too much unread, or stands still with half a request
// while there is no room for the requests of others (the limit of the store's total counts what is
// still arriving). Knows no socket. Belongs to one thread. Every method that takes a connection may
// close it, and others.
//
// A connection's life:
//
//            bytes                     reply does not fit
//   reading -------> parse, execute ---------------------> writing
//      ^  ^               |                                   |
//      |  +---------------+ nothing more to take              |
//      +------------------------------------------------------+ room again
class C10dConnections {
 public:
  using Id = C10dConnection::Id;
  using Warn = std::function<void(const std::string& line)>;

  // `options` and `clock` must outlive it. `warn` is called for each client that is refused.
  C10dConnections(const C10dServerOptions& options, const Clock& clock, Warn warn);

  Id NextId() { return ++last_id_; }
  void Add(std::unique_ptr<C10dConnection> connection);
  C10dConnection* Find(Id id) const;  // Null if it is closed.

  // Takes bytes that have come from the client.
  void Take(C10dConnection& connection, absl::string_view bytes);
  // Continues with the client, after replies that had been stuck were sent.
  void Continue(C10dConnection& connection);
  // Removes a client that is gone, and wakes the clients that this makes ready.
  void Close(Id id);
  // The same, but what the client has sent is executed first: in its turns, or at once.
  void CloseAfterTurns(Id id);
  void CloseAfterAll(Id id);

  // Continues with connections that had more to do than one turn allows, and with those whose
  // client was silent for long enough. Call it once a turn.
  void TakeTurns();
  // Returns when TakeTurns has something to do: Instant() means now, Instant::max() means never.
  Instant next_turn() const;

  // Closes all connections without telling the clients, and removes all keys.
  void Clear();

  // The bytes of replies that all connections hold.
  size_t* unread() { return &unread_; }

 private:
  void TakeRequests(C10dConnection& connection, absl::string_view bytes);
  absl::Status TakeWhole(C10dConnection& connection, absl::string_view* bytes, size_t most);
  absl::Status Execute(C10dConnection& connection, C10dRequest request);
  void SendNotices();
  void AwaitRequests(C10dConnection& connection);
  void WakeReady();
  void Schedule(C10dConnection& connection);
  void TakeTurn(C10dConnection& connection);
  void JudgeRelease(C10dConnection& connection, const C10dRequest& request);
  absl::Status CheckUnread() const;
  absl::StatusOr<bool> List(C10dConnection& connection);
  void CountArriving(C10dConnection& connection);
  void SetArriving(C10dConnection& connection, size_t bytes);
  void LimitArriving(C10dConnection& connection);
  void AwaitSilence(C10dConnection& connection, Instant until);
  void EndSilences();
  void Refuse(C10dConnection& connection, const absl::Status& why);
  void Remove(Id id);

  const C10dServerOptions& options_;
  const Clock& clock_;
  const Warn warn_;
  C10dCommands commands_;
  HeapTrim heap_trim_;
  size_t unread_ = 0;
  // The bytes that all connections hold of incomplete requests, and these connections: first the
  // one whose last bytes came longest ago.
  size_t arriving_ = 0;
  uint64_t last_arrival_ = 0;
  std::set<std::pair<uint64_t, Id>> arrivals_;
  std::string newer_torch_;  // The first client of a torch of 2.2 or newer, and of an older one.
  std::string older_torch_;
  Id last_id_ = 0;
  absl::flat_hash_map<Id, std::unique_ptr<C10dConnection>> connections_;
  std::set<Id> notified_;  // Clients whose replies hold notices that were not sent yet.
  std::vector<Id> turns_;
  std::set<std::pair<Instant, Id>> silences_;
};

}  // namespace hlaunch
