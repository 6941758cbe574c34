// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/node_exchange.h"

#include <deque>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "agent/mpi/serve/node_meeting.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "proto/base/thread.h"

namespace hlaunch {

struct NodeExchange::State {
  State(asio::io_context& the_loop, ExchangePlace the_place, Events the_events)
      : loop(&the_loop), events(std::move(the_events)), place(std::move(the_place)) {}

  static void Run(const std::shared_ptr<State>& state) {
    NodeMeeting meeting(
        {state->place.store_host, state->place.store_port, state->place.node_rank},
        {[state] { return state->MayWait(); },
         [state](std::string line) {
           state->Post(state, [line = std::move(line)](const Events& to) { to.on_waiting(line); });
         }});
    for (int number = 0;; ++number) {
      const std::optional<std::string> own = state->Next();
      if (!own) return;
      absl::StatusOr<NodeMessages> all = state->Swap(meeting, number, *own);
      const bool failed = !all.ok();
      state->Post(state, [all = std::move(all)](const Events& to) { to.on_messages(all); });
      if (failed) return;
      if (number > 0 && state->place.node_rank == 0) meeting.Forget(NameOf(number - 1));
    }
  }

  static std::string NameOf(int number) { return absl::StrCat("mpi/", number); }

  absl::StatusOr<NodeMessages> Swap(NodeMeeting& meeting, int number, const std::string& own) {
    std::vector<int> nodes(static_cast<size_t>(place.num_nodes));
    std::iota(nodes.begin(), nodes.end(), 0);
    HLAUNCH_ASSIGN_OR_RETURN(
        const std::string whole,
        meeting.Meet(NameOf(number), nodes, own,
                     number == 0 ? "MPI_Init: none of its ranks has come to it"
                                 : "MPI_Init or MPI_Finalize: not all of its ranks have come"));
    return DecodeMessages(whole, place.num_nodes);
  }

  absl::Status MayWait() {
    MutexLock lock(&mu);
    return ended ? absl::CancelledError("the round is over") : absl::OkStatus();
  }

  std::optional<std::string> Next() {
    MutexLock lock(&mu);
    while (waiting.empty() && !ended) changed.Wait(&mu);
    if (waiting.empty()) return std::nullopt;  // Pending messages are still sent: others may wait.
    std::string own = std::move(waiting.front());
    waiting.pop_front();
    return own;
  }

  void Post(const std::shared_ptr<State>& self, std::function<void(const Events&)> tell) {
    MutexLock lock(&mu);
    if (ended) return;  // The loop may be gone.
    asio::post(*loop, [self, tell = std::move(tell)] {
      if (self->events.on_messages) tell(self->events);
    });
  }

  Mutex mu;
  CondVar changed;
  asio::io_context* const loop;
  Events events;  // Only the loop uses it; emptied by the destructor.
  std::deque<std::string> waiting ABSL_GUARDED_BY(mu);
  bool ended ABSL_GUARDED_BY(mu) = false;
  const ExchangePlace place;
};

NodeExchange::NodeExchange(asio::io_context& loop, ExchangePlace place, Events events)
    : state_(std::make_shared<State>(loop, std::move(place), std::move(events))) {}

NodeExchange::~NodeExchange() {
  state_->events = {};
  MutexLock lock(&state_->mu);
  state_->ended = true;
  state_->changed.SignalAll();
}

void NodeExchange::Swap(const NodeMessage& own) {
  {
    MutexLock lock(&state_->mu);
    state_->waiting.push_back(EncodeMessage(own));
    state_->changed.SignalAll();
  }
  if (std::exchange(begun_, true)) return;
  const absl::Status started =
      StartUnawaited("hl-mpi-exchange", [state = state_] { State::Run(state); });
  if (started.ok()) return;
  const absl::Status none =
      absl::ResourceExhaustedError(absl::StrCat("no thread: ", started.message()));
  state_->Post(state_, [none](const Events& to) { to.on_messages(none); });
}

}  // namespace hlaunch
