// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// By the master store of a round its nodes tell each other what their ranks do: each writes a key
// of its own, node rank 0 reads them all and writes what it makes of them, and the others read
// that. A thread of its own speaks with the store, and only after the first call: a job in which
// nothing stands still does not connect.
//
// Belongs to the loop thread. Destruction gives up without a word, at once.
class PictureExchange {
 public:
  PictureExchange(asio::io_context& loop, const Assignment& assignment);
  ~PictureExchange();

  // What was read: at node rank 0 what each node has said last, in their order, empty where a node
  // has said nothing; at the others node rank 0's verdict alone, empty if there is none.
  using Told = std::vector<std::string>;

  // Says `own`. `done` is called once from the loop, unless this ends before.
  // Requires: no call is under way.
  //
  // Errors: as Store.
  void Swap(std::string own, std::function<void(absl::StatusOr<Told>)> done);
  bool busy() const;

  // For the others to read, with the next Swap. Requires: this is node rank 0.
  void SetVerdict(std::string verdict);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with the thread.
  std::string verdict_;
};

}  // namespace hlaunch
