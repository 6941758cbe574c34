// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/net/socket/send_buffer.h"
#include "rendezvous/store/c10d/c10d_protocol.h"
#include "rendezvous/store/keys/key_space.h"

namespace hlaunch {

// Executes the requests of a master store's clients on its keys, and returns what to send to each
// client. Does no I/O. Belongs to one thread.
class C10dCommands {
 public:
  using ClientId = KeySpace::WaiterId;

  // Bytes that a client receives unasked, because it watches a key (kTorch1).
  struct Notice {
    ClientId client = 0;
    std::string bytes;
  };

  struct Outcome {
    // True if the client now waits. Its reply is one kC10dStopWaiting, once TakeReady() names it.
    bool waits = false;
    std::vector<Notice> notices;
  };

  explicit C10dCommands(const StoreLimits& limits) : keys_(limits) {}

  const StoreLimits& limits() const { return keys_.limits(); }
  // The bytes of all keys and values, as the limit of the total counts them.
  size_t bytes() const { return keys_.bytes(); }

  // Executes `request` of `client` and appends its reply to `reply`.
  //
  // Errors: the client's connection must be closed.
  //   ResourceExhausted - the store or the reply would be over a limit.
  //   FailedPrecondition - as KeySpace::Add.
  absl::StatusOr<Outcome> Execute(ClientId client, C10dRequest request, std::string* reply);

  // A reply that lists all keys of one moment. It is made in portions; others are served in
  // between.
  struct Listing {
    explicit Listing(size_t* sum) : reply(sum) {}
    SendBuffer reply;  // Counted in the sum, and not sent before it is whole.
    bool begun = false;
    uint64_t shape = 0;  // The shape of the keys when it began.
    KeySpace::Iterator next;
    size_t bytes = 0;  // The bytes of the keys in the reply.
    int begins = 0;
  };
  // True if there are so many keys that a list of them is made in portions.
  bool ListsLong() const;
  // Continues `listing`; returns true if it is complete. If a key was created or deleted meanwhile,
  // it begins anew; after several such restarts it makes the rest at once.
  //
  // Errors:
  //   ResourceExhausted - as Execute.
  absl::StatusOr<bool> GoOn(Listing& listing) const;

  // Ends the wait of `client`.
  void CancelWait(ClientId client) { keys_.CancelWait(client); }

  // Forgets `client`, which has gone: it no longer waits or watches. This may make others ready.
  void Forget(ClientId client);

  // Returns the clients whose wait has ended since the last call, because what they waited for has
  // come.
  std::vector<ClientId> TakeReady() { return keys_.TakeReady(); }

 private:
  // A watched key that a request is about to change.
  struct Change {
    std::string key;
    bool existed = false;
    std::string old;
  };

  absl::StatusOr<bool> Run(ClientId client, C10dRequest request, std::string* reply);
  absl::Status Write(C10dRequest request, std::string* reply);
  absl::Status PutValues(const std::vector<std::string>& wanted, std::string* reply) const;
  absl::Status PutKeys(std::string* reply) const;
  absl::Status CheckReply(size_t bytes) const;
  std::vector<Change> WatchedChanges(const C10dRequest& request) const;
  void AddNotices(const Change& change, std::vector<Notice>* notices) const;

  KeySpace keys_;
  std::map<std::string, std::set<ClientId>> watchers_;  // The watchers of each watched key.
};

}  // namespace hlaunch
