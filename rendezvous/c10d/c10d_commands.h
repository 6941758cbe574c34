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
#include "rendezvous/c10d/c10d_protocol.h"
#include "rendezvous/listening/send_buffer.h"
#include "rendezvous/store/key_space.h"

namespace hlaunch {

// Executes the requests of a master store's clients on its keys, and says what each client is to be
// sent. Does no I/O. Belongs to one thread.
class C10dCommands {
 public:
  using ClientId = KeySpace::WaiterId;

  // Bytes that a client receives unasked, because it watches a key (kTorch1).
  struct Notice {
    ClientId client = 0;
    std::string bytes;
  };

  struct Outcome {
    // The client now waits: its reply is one kC10dStopWaiting, once it is in TakeReady().
    bool waits = false;
    std::vector<Notice> notices;
  };

  explicit C10dCommands(const StoreLimits& limits) : keys_(limits) {}

  const StoreLimits& limits() const { return keys_.limits(); }
  // What all keys and values take, as the limit of the total counts them.
  size_t bytes() const { return keys_.bytes(); }

  // Executes `request` of `client` and appends its reply to `reply`.
  //
  // Errors: the client's connection must be closed.
  //   ResourceExhausted - the store or the reply would be over a limit.
  //   FailedPrecondition - as KeySpace::Add.
  absl::StatusOr<Outcome> Execute(ClientId client, C10dRequest request, std::string* reply);

  // A reply that lists all keys of one moment, made in portions, between which others are served.
  struct Listing {
    explicit Listing(size_t* sum) : reply(sum) {}
    SendBuffer reply;  // Counted in the sum, and not sent before it is whole.
    bool begun = false;
    uint64_t shape = 0;  // Of the keys when it began.
    KeySpace::Iterator next;
    size_t bytes = 0;  // Of the keys in it.
    int begins = 0;
  };
  // So many keys are worth portions.
  bool ListsLong() const;
  // Goes on with `listing`, which is done if it returns true. Where keys came or went it begins
  // anew, and after some times makes the rest of it at once.
  //
  // Errors:
  //   ResourceExhausted - as Execute.
  absl::StatusOr<bool> GoOn(Listing& listing) const;

  // `client` waits no longer.
  void CancelWait(ClientId client) { keys_.CancelWait(client); }

  // `client` has gone: it neither waits nor watches any longer. This may make others ready.
  void Forget(ClientId client);

  // Clients that wait no longer since the last call, because what they wait for has come.
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
  std::map<std::string, std::set<ClientId>> watchers_;  // Of each key that is watched.
};

}  // namespace hlaunch
