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
#include "rendezvous/c10d/c10d_commands.h"
#include "rendezvous/c10d/c10d_connection.h"
#include "rendezvous/c10d/c10d_server_options.h"

namespace hlaunch {

// All clients of a master store and their requests: executes what they send, in order for each of
// them, wakes those who wait, and closes those who send nonsense, leave too much unread, or stand
// still with half a request while there is no room for others' (the limit of the store's total
// counts what is still arriving). Knows no socket. Belongs to one thread. Every method that takes a
// connection may close it, and others.
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

  // `options` and `clock` outlive it. `warn` is told of each client that was refused.
  C10dConnections(const C10dServerOptions& options, const Clock& clock, Warn warn);

  Id NextId() { return ++last_id_; }
  void Add(std::unique_ptr<C10dConnection> connection);
  C10dConnection* Find(Id id) const;  // Null if it is closed.

  // Bytes have come from the client.
  void Take(C10dConnection& connection, absl::string_view bytes);
  // Some of its replies have been sent after they could not: goes on with it.
  void Continue(C10dConnection& connection);
  // The client is gone. Wakes those whom that makes ready.
  void Close(Id id);

  // Goes on with connections that had more to do than a turn allows, and with those whose client
  // was silent for long enough. To be called once a turn.
  void TakeTurns();
  // When TakeTurns has something to do: Instant() at once, Instant::max() never.
  Instant next_turn() const;

  // Closes all without a word, and forgets all keys.
  void Clear();

  // The bytes of replies that all connections hold.
  size_t* unread() { return &unread_; }

 private:
  void TakeRequests(C10dConnection& connection, absl::string_view bytes);
  absl::Status TakeWhole(C10dConnection& connection, absl::string_view* bytes);
  absl::Status Execute(C10dConnection& connection, C10dRequest request);
  void SendNotices();
  void AwaitRequests(C10dConnection& connection);
  void WakeReady();
  void Schedule(C10dConnection& connection);
  void TakeTurn(C10dConnection& connection);
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
  size_t unread_ = 0;
  // What all connections hold of requests that have not come whole, and who does: the one whose
  // last bytes came longest ago is first.
  size_t arriving_ = 0;
  uint64_t last_arrival_ = 0;
  std::set<std::pair<uint64_t, Id>> arrivals_;
  Id last_id_ = 0;
  absl::flat_hash_map<Id, std::unique_ptr<C10dConnection>> connections_;
  std::set<Id> notified_;  // Notices were put into their replies and not sent yet.
  std::vector<Id> turns_;
  std::set<std::pair<Instant, Id>> silences_;
};

}  // namespace hlaunch
