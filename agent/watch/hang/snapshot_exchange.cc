// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/snapshot_exchange.h"

#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "rendezvous/store/c10d/c10d_client.h"

namespace hlaunch {
namespace {

constexpr Duration kLimit = std::chrono::seconds(5);  // For the store to answer.

std::string KeyOf(int node_rank) { return absl::StrCat("hlaunch/hang/", node_rank); }
constexpr char kNothing[] = "-";  // A node has not said anything yet.
constexpr char kVerdictKey[] = "hlaunch/hang/verdict";

// The thread's part.
class Speaker {
 public:
  explicit Speaker(const Assignment& assignment)
      : host_(assignment.master_addr),
        port_(assignment.master_port),
        node_rank_(assignment.node_rank),
        nodes_(assignment.num_nodes) {}

  absl::StatusOr<SnapshotExchange::Told> Swap(const std::string& own, const std::string& verdict) {
    absl::StatusOr<SnapshotExchange::Told> told = TrySwap(own, verdict);
    if (!told.ok()) {
      store_.reset();
      said_.clear();
    }
    return told;
  }

 private:
  absl::StatusOr<SnapshotExchange::Told> TrySwap(const std::string& own,
                                                 const std::string& verdict) {
    if (store_ == nullptr) {
      C10dClientOptions options;
      options.request_timeout = kLimit;
      HLAUNCH_ASSIGN_OR_RETURN(
          store_, C10dClient::Connect(host_, port_, MonotonicClock().Now() + kLimit, options));
    }
    HLAUNCH_RETURN_IF_ERROR(Say(KeyOf(node_rank_), own));
    if (node_rank_ != 0) return Read({kVerdictKey});
    HLAUNCH_RETURN_IF_ERROR(Say(kVerdictKey, verdict));
    std::vector<std::string> keys;
    for (int node = 0; node < nodes_; ++node) keys.push_back(KeyOf(node));
    // All words can be read at once only if all are there.
    for (; prepared_ < nodes_; ++prepared_) {
      const std::string& key = keys[static_cast<size_t>(prepared_)];
      HLAUNCH_RETURN_IF_ERROR(store_->CompareAndSet(key, "", kNothing).status());
    }
    return Read(keys);
  }

  // Sends `text` unless it was sent already.
  absl::Status Say(const std::string& key, const std::string& text) {
    const auto said = said_.find(key);
    if (said != said_.end() ? said->second == text : text.empty()) return absl::OkStatus();
    HLAUNCH_RETURN_IF_ERROR(store_->Set(key, text));
    said_[key] = text;
    return absl::OkStatus();
  }

  // Returns empty texts unless all keys are there.
  absl::StatusOr<SnapshotExchange::Told> Read(const std::vector<std::string>& keys) {
    HLAUNCH_ASSIGN_OR_RETURN(const bool all, store_->Check(keys));
    if (!all) return SnapshotExchange::Told(keys.size());
    return store_->MultiGet(keys, MonotonicClock().Now() + kLimit);
  }

  const std::string host_;
  const uint16_t port_;
  const int node_rank_;
  const int nodes_;
  int prepared_ = 0;  // Nodes whose keys exist.
  std::unique_ptr<C10dClient> store_;
  std::map<std::string, std::string> said_;
};

}  // namespace

struct SnapshotExchange::State {
  State(asio::io_context& the_loop, const Assignment& assignment)
      : speaker(assignment), loop(&the_loop) {}

  struct Job {
    std::string own, verdict;
  };

  static void Run(const std::shared_ptr<State>& state) {
    while (const std::optional<Job> job = state->Next()) {
      state->Post(state, state->speaker.Swap(job->own, job->verdict));
    }
  }

  std::optional<Job> Next() {
    MutexLock lock(&mu);
    while (!job && !ended) changed.Wait(&mu);
    return ended ? std::nullopt : std::exchange(job, std::nullopt);
  }

  void Post(const std::shared_ptr<State>& self, absl::StatusOr<Told> told) {
    MutexLock lock(&mu);
    if (ended) return;  // The loop may be gone.
    asio::post(*loop, [self, told = std::move(told)]() mutable {
      const auto tell = std::exchange(self->done, nullptr);
      if (tell) tell(std::move(told));
    });
  }

  Speaker speaker;                                 // Only the thread uses it.
  std::function<void(absl::StatusOr<Told>)> done;  // Only the loop uses it; empty if no call runs.
  bool begun = false;                              // Only the loop uses it.
  Mutex mu;
  CondVar changed;
  asio::io_context* const loop;
  std::optional<Job> job ABSL_GUARDED_BY(mu);
  bool ended ABSL_GUARDED_BY(mu) = false;
};

SnapshotExchange::SnapshotExchange(asio::io_context& loop, const Assignment& assignment)
    : state_(std::make_shared<State>(loop, assignment)) {}

SnapshotExchange::~SnapshotExchange() {
  state_->done = nullptr;
  MutexLock lock(&state_->mu);
  state_->ended = true;
  state_->changed.SignalAll();
}

void SnapshotExchange::Swap(std::string own, std::function<void(absl::StatusOr<Told>)> done) {
  state_->done = std::move(done);
  {
    MutexLock lock(&state_->mu);
    state_->job = State::Job{std::move(own), verdict_};
    state_->changed.SignalAll();
  }
  if (state_->begun) return;
  try {
    std::thread([state = state_] { State::Run(state); }).detach();
    state_->begun = true;
  } catch (const std::system_error& error) {
    state_->Post(state_, absl::ResourceExhaustedError(absl::StrCat("no thread: ", error.what())));
  }
}

bool SnapshotExchange::busy() const { return state_->done != nullptr; }

void SnapshotExchange::SetVerdict(std::string verdict) { verdict_ = std::move(verdict); }

}  // namespace hlaunch
