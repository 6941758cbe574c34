// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/output/log_directory.h"
#include "agent/watch/hang/hang_watch.h"
#include "agent/watch/observe/node_event.h"
#include "agent/watch/query/rank_answers.h"
#include "agent/watch/stall/kernel_wait.h"
#include "agent/watch/stall/log_watch.h"
#include "agent/watch/stall/stall_watch.h"
#include "agent/watch/stall/watchdog.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// All that observes the workers of a round on this node: heartbeats, lines of output, waits in the
// kernel, hangs, the watchdog's timers, and what people ask about them. A watch that the user does
// not want is not there.
//
// Belongs to the loop thread. Nothing is called from within its methods but from the loop.
class WorkerWatches {
 public:
  struct Events {
    // A worker stands still or has written what the user's rules forbid.
    std::function<void(const StalledWorker&, StallAction)> on_stall;
    // A process that had a timer of the watchdog was sent a signal: a worker or its descendant.
    std::function<void(pid_t child, std::string reason)> on_overdue;
    std::function<void(int64_t step)> on_step;
    std::function<void()> on_boundary;  // Rank 0, which runs here, is at a good moment to stop.
    std::function<void(Rank rank, const std::string& name, double value)> on_value;
    // What was found of ranks that hold up the others, and of time lost; on node rank 0.
    std::function<void(const NodeEvent&)> on_found;
    // What the other nodes of the round are to be told, see RoundWord.
    std::function<void(std::string text)> on_word;
  };

  // `loop` outlives this object.
  WorkerWatches(asio::io_context& loop, const Assignment& assignment, Events events)
      : loop_(loop), assignment_(assignment), events_(std::move(events)) {}

  // Begins all watches, before the first worker starts. Adds to `facts` what workers must know.
  //
  // Errors:
  //   ResourceExhausted - a watch that the user wants gets no socket or pipe.
  absl::Status Open(const WorkerSpec& spec, const JobLogs& logs, const RoundLogs& round_logs,
                    NodeFacts& facts);

  // Adds what one worker must know. Requires: Open.
  void Tell(const WorkerSpec& spec, int local_rank, NodeFacts& facts) const;

  // Takes the bytes of one stream of a worker; empty if nobody reads them. It may outlive this
  // object. Call this once for each stream.
  std::function<void(absl::string_view)> Reader(int local_rank);

  // Process `pid` is that worker, until Ended is called.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank, bool succeeded);

  // Logs which rank holds up the job at this moment, if that is known and was not reported before.
  void LogStandstill() const;

  // As RankAnswers; from within this call once Stop was called.
  void Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done);

  // Another node of a round has said `word`; it does not matter if it is another round.
  void Hear(const RoundWord& word);

  // Child processes that are not workers.
  std::vector<pid_t> tools() const;

  // The workers are being stopped: nothing is called any more, but for timers of the watchdog.
  void Stop();
  // No worker is left.
  void End() { watchdog_.reset(); }

 private:
  absl::Status OpenWatchdog(const WorkerSpec& spec, NodeFacts& facts);
  absl::Status OpenStalls(const WorkerSpec& spec, const JobLogs& logs, const RoundLogs& round_logs);
  void OpenLines(const WorkerSpec& spec);
  void TellSlow(const SlowNews& news);
  bool HearsBoundaries(const WorkerSpec& spec) const {
    return spec.hears_boundaries && assignment_.first_rank == 0;
  }

  asio::io_context& loop_;
  const Assignment assignment_;
  const Events events_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<StallWatch> stalls_;
  std::unique_ptr<LogWatch> lines_;
  std::unique_ptr<KernelWaitWatch> kernel_waits_;
  std::unique_ptr<HangWatch> hangs_;
  std::optional<RankAnswers> answers_;  // Until Stop.
  TimeLost told_;                       // The last one.
};

}  // namespace hlaunch
