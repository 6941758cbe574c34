// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/agent_options.h"
#include "agent/agent_signals.h"
#include "agent/node_news.h"
#include "agent/node_updates.h"
#include "agent/output/output_relay.h"
#include "agent/round_preparation.h"
#include "agent/round_store.h"
#include "agent/round_workers.h"
#include "agent/watch/notice/drain_watch.h"
#include "agent/watch/notice/stop_notice.h"
#include "agent/workers/worker/life_signs.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// What an agent is doing. Leaving kTakingPart always stops the workers of the round, if there are
// any. "all stopped" means that nothing of them is left, which may be the case at once.
//
//                told kStop                all stopped, says that it is ready
//   kTakingPart ------------> kClearing ---------------------------------------> kTakingPart
//
//   kTakingPart, kClearing --told kFinish--> kFinishing --all stopped, says kFinished--> the end
//   kTakingPart, kClearing --a signal------> kLeaving ----all stopped, says kLeft------> the end
//   kTakingPart, kClearing --client ended--> kCutOff -----all stopped------------------> the end
//   kTakingPart, kClearing, kFinishing --the keeper died--> kLeaving
//   kClearing --all stopped, but no port is to be had--> kLeaving
enum class AgentState {
  kTakingPart,  // Follows the rendezvous: waits, prepares a round, runs workers.
  kClearing,    // Stops the workers of a round that is over.
  kFinishing,   // The same, and the job is over. Obeys only a newer outcome.
  kLeaving,     // The same, and this node leaves the job. Obeys no directive.
  kCutOff,      // The same, and the rendezvous does not hear from this node any more.
};

// An agent that runs: what is told to it, by the rendezvous, by signals or by its workers, and what
// it does then.
//
// Belongs to the loop thread, but the client calls its Listener from a thread of its own.
class AgentRun final : public RendezvousClient::Listener {
 public:
  AgentRun(asio::io_context& loop, AgentOptions options, RendezvousClient& client,
           OutputRelay& relay);

  // As Agent::Run.
  AgentResult Run();

  // The client calls these from its own thread.
  void OnDirective(const Directive& directive) override;
  void OnQuestion(const NodeQuestion& question) override;
  void OnWord(const RoundWord& word) override;
  void OnContact(bool connected, const std::string& detail) override;
  void OnEnd(const absl::Status& status) override;

 private:
  bool IsEnding() const;
  void Obey(const Directive& directive);

  // A directive that waited here while this process was paused may belong to a round that is over.
  // It is obeyed only once the rendezvous has been heard again, unless a newer directive comes.
  void StartWhenHeard(const Directive& directive);
  void StartRound(const Assignment& assignment);

  // A round of which this node has no worker left would wait for it for ever. Whatever ended the
  // workers tells why; this is in case nothing did. `missed`: the last look found none.
  void LookForWorkers(bool missed);

  // The workers of the round are gone, and the rendezvous did not ask for that.
  void LoseWorkers(std::string why);

  // Workers may wait for a worker that exited with 0, so the rendezvous learns of such exits.
  void OnWorkerEvent(const NodeEvent& event);
  void StopRound(const Directive& directive);
  void Finish(const Outcome& outcome);

  // Tells the user that the workers are being stopped, if that takes a while.
  void TellStop(const std::string& reason);
  void BeCutOff(const absl::Status& status);
  void OnSignal(int signal, pid_t sender);

  // Called when the job ends because another node was stopped, and this node gets a signal as well.
  void BeStoppedToo(int signal);
  void LeaveFor(int signal);

  // Reports the drain; the rendezvous decides what follows.
  void OnDrain(std::string reason);
  void ArmTimeLimit();
  void OnTimeLimit();
  void OnKeeperDeath();

  // Kills the workers a moment before the keeper would, which would end this process too.
  void KillInTime();
  void Enter(AgentState state, const std::string& reason);

  // Stops the workers, if there are any. Then OnStopped continues as the state says.
  void StopWorkers(AgentState state, const std::string& reason, int signal, Duration grace);
  void OnStopped();
  void BeReady();
  void Leave();
  void End();

  asio::io_context& loop_;
  const AgentOptions options_;
  RendezvousClient& client_;
  OutputRelay& relay_;
  SignalListener signals_;
  SignalRules signal_rules_;
  NodeNews news_;
  NodeUpdates updates_;
  RoundStore store_{options_};
  RoundPreparation preparation_;
  RoundWorkers workers_;
  LifeSigns life_signs_;
  StopNotice stop_notice_;
  DrainWatch drain_watch_;
  std::optional<Directive> delayed_;  // A kRun whose round may be over.
  asio::steady_timer start_delay_;
  asio::steady_timer exits_delay_;  // Until exits with 0 are sent.
  asio::steady_timer workers_look_;
  asio::steady_timer time_limit_;

  AgentState state_ = AgentState::kTakingPart;
  std::string cut_off_;  // Why the workers of the round are killed, ": " in front; mostly empty.
  struct {
    std::string reason;
    int exit_code = 0;
  } departure_;  // Why this node leaves, once it does.
  AgentResult result_;
};

}  // namespace hlaunch
