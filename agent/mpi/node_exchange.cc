// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/node_exchange.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "proto/contract/rank_list.h"
#include "rendezvous/c10d/c10d_client.h"

namespace hlaunch {
namespace {

constexpr Duration kReach = std::chrono::seconds(30);  // For the store to answer.
constexpr Duration kLook = std::chrono::seconds(2);    // Between two looks whether all is over.
constexpr Duration kFirstNotice = std::chrono::seconds(10);  // Then after twice as long each time.
constexpr size_t kPiece = 4 << 20;  // Of the whole: the store takes values of 8 MiB.

std::string KeyOf(int number, int node_rank) {
  return absl::StrCat("hlaunch/mpi/", number, "/node/", node_rank);
}
std::string WholeKey(int number) { return absl::StrCat("hlaunch/mpi/", number, "/all"); }
std::string PieceKey(int number, size_t piece) {
  return absl::StrCat("hlaunch/mpi/", number, "/all/", piece);
}

// The thread's side.
class Speaker {
 public:
  // `goes_on` is asked now and then; `notice` is told for whom this waits.
  Speaker(ExchangePlace place, std::function<bool()> goes_on,
          std::function<void(std::string)> notice)
      : place_(std::move(place)), goes_on_(std::move(goes_on)), notice_(std::move(notice)) {}

  // Errors: as Store; Cancelled - it does not go on.
  absl::StatusOr<NodeMessages> Swap(const std::string& own) {
    const int number = next_++;
    if (store_ == nullptr) {
      HLAUNCH_ASSIGN_OR_RETURN(store_, C10dClient::Connect(place_.store_host, place_.store_port,
                                                           MonotonicClock().Now() + kReach));
    }
    HLAUNCH_RETURN_IF_ERROR(Say(KeyOf(number, place_.node_rank), own));
    std::string whole;
    if (place_.node_rank == 0) {
      HLAUNCH_ASSIGN_OR_RETURN(whole, Gather(number));
      HLAUNCH_RETURN_IF_ERROR(SayWhole(number, whole));
    } else {
      HLAUNCH_ASSIGN_OR_RETURN(whole, ReadWhole(number));
    }
    return DecodeMessages(whole, place_.num_nodes);
  }

  // Removes what nobody will read any more: all nodes have said what belongs to the last Swap, so
  // they have read what was before it.
  void Forget() {
    const int number = next_ - 1;
    if (place_.node_rank != 0) return;
    for (int node = 0; node < place_.num_nodes; ++node) {
      store_->Delete(KeyOf(number, node)).status().IgnoreError();
    }
    if (number == 0) return;
    store_->Delete(WholeKey(number - 1)).status().IgnoreError();
    for (size_t piece = 0; piece < kMostPieces; ++piece) {
      const absl::StatusOr<bool> was_there = store_->Delete(PieceKey(number - 1, piece));
      if (!was_there.ok() || !*was_there) return;
    }
  }

 private:
  // To write the same once more harms nothing.
  absl::Status Say(const std::string& key, const std::string& text) {
    const Instant until = MonotonicClock().Now() + kReach;
    for (;;) {
      absl::Status said = store_->Set(key, text);
      if (!absl::IsUnavailable(said) || !goes_on_() || MonotonicClock().Now() >= until) return said;
    }
  }

  // What `keys` hold, once all are there.
  absl::StatusOr<std::vector<std::string>> Await(const std::vector<std::string>& keys) {
    const Instant began = MonotonicClock().Now();
    Duration notice = kFirstNotice;
    for (;;) {
      auto values = store_->MultiGet(keys, MonotonicClock().Now() + kLook);
      if (!absl::IsDeadlineExceeded(values.status())) return values;
      if (!goes_on_()) return absl::CancelledError("the round is over");
      if (keys.size() == 1 || MonotonicClock().Now() - began < notice) continue;
      Notice(keys, std::chrono::duration_cast<std::chrono::seconds>(notice).count());
      notice *= 2;
    }
  }

  void Notice(const std::vector<std::string>& keys, int64_t seconds) {
    std::vector<int> missing;
    for (size_t node = 0; node < keys.size(); ++node) {
      const absl::StatusOr<bool> there = store_->Check({keys[node]});
      if (there.ok() && !*there) missing.push_back(static_cast<int>(node));
    }
    if (missing.empty()) return;
    notice_(absl::StrCat("MPI has waited ", seconds, " s for node rank",
                         missing.size() == 1 ? " " : "s ", RankList(missing), " in ",
                         next_ == 1 ? "MPI_Init: none of its ranks has come to it"
                                    : "MPI_Init or MPI_Finalize: not all of its ranks have come"));
  }

  absl::StatusOr<std::string> Gather(int number) {
    std::vector<std::string> keys;
    for (int node = 0; node < place_.num_nodes; ++node) keys.push_back(KeyOf(number, node));
    HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> messages, Await(keys));
    return JoinMessages(messages);
  }

  absl::Status SayWhole(int number, const std::string& whole) {
    size_t pieces = 0;
    for (size_t at = 0; at < whole.size(); at += kPiece) {
      HLAUNCH_RETURN_IF_ERROR(Say(PieceKey(number, pieces++), whole.substr(at, kPiece)));
    }
    return Say(WholeKey(number), absl::StrCat(pieces));
  }

  absl::StatusOr<std::string> ReadWhole(int number) {
    HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> head, Await({WholeKey(number)}));
    size_t pieces = 0;
    if (!absl::SimpleAtoi(head[0], &pieces) || pieces > kMostPieces) {
      return absl::InvalidArgumentError("what node rank 0 says to MPI programs is damaged");
    }
    std::string whole;
    for (size_t piece = 0; piece < pieces; ++piece) {
      HLAUNCH_ASSIGN_OR_RETURN(
          const std::string part,
          store_->Get(PieceKey(number, piece), MonotonicClock().Now() + kReach));
      whole += part;
    }
    return whole;
  }

  static constexpr size_t kMostPieces = 1024;

  const ExchangePlace place_;
  const std::function<bool()> goes_on_;
  const std::function<void(std::string)> notice_;
  std::unique_ptr<C10dClient> store_;
  int next_ = 0;
};

}  // namespace

struct NodeExchange::State {
  State(asio::io_context& the_loop, ExchangePlace the_place, Events the_events)
      : loop(&the_loop), events(std::move(the_events)), place(std::move(the_place)) {}

  static void Run(const std::shared_ptr<State>& state) {
    Speaker speaker(
        state->place, [state] { return state->GoesOn(); },
        [state](std::string line) {
          state->Post(state, [line = std::move(line)](const Events& to) { to.on_waiting(line); });
        });
    while (const std::optional<std::string> own = state->Next()) {
      absl::StatusOr<NodeMessages> all = speaker.Swap(*own);
      const bool failed = !all.ok();
      state->Post(state, [all = std::move(all)](const Events& to) { to.on_messages(all); });
      if (failed) return;
      speaker.Forget();
    }
  }

  bool GoesOn() {
    MutexLock lock(&mu);
    return !ended;
  }

  std::optional<std::string> Next() {
    MutexLock lock(&mu);
    while (waiting.empty() && !ended) changed.Wait(&mu);
    if (ended) return std::nullopt;
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
  Events events;  // The loop's alone; emptied as this ends.
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
  try {
    std::thread([state = state_] { State::Run(state); }).detach();
  } catch (const std::system_error& error) {
    const absl::Status none =
        absl::ResourceExhaustedError(absl::StrCat("no thread: ", error.what()));
    state_->Post(state_, [none](const Events& to) { to.on_messages(none); });
  }
}

}  // namespace hlaunch
