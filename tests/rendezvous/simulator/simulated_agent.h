// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "agent/workers/worker/fence.h"
#include "rendezvous/round/values/lease.h"
#include "tests/rendezvous/simulator/event.h"

namespace hlaunch {

class SimulatedAgent;

// The surroundings of an agent. One thread.
class AgentSurroundings {
 public:
  virtual ~AgentSurroundings() = default;
  virtual Instant Now() const = 0;
  virtual int Below(int n) = 0;  // A random number in 0 … n - 1.
  // Calls agent.Handle with an event of `kind` after `delay`.
  virtual void Later(const SimulatedAgent& agent, EventKind kind, Duration delay,
                     uint32_t token) = 0;
  virtual void Send(SimulatedAgent& agent, std::shared_ptr<SimulatedMessage> message) = 0;
  virtual void Closed(SimulatedAgent& agent, uint32_t stream) = 0;  // The agent closed it.
  virtual bool MasterAnswers(const Assignment& assignment) = 0;
  // How long the workers of a round run, and whether one fails then.
  virtual std::pair<Duration, bool> WorkersFate(const SimulatedAgent& agent, Round round) = 0;
  virtual void Started(SimulatedAgent& agent, const Assignment& assignment) = 0;
  virtual void Succeeded(SimulatedAgent& agent) = 0;
  virtual void Failed(SimulatedAgent& agent) = 0;
  virtual void Gone(SimulatedAgent& agent) = 0;  // No worker lives.
  virtual void Exited(SimulatedAgent& agent) = 0;
  // When the agent gave the last sign of life as a voter that the rendezvous took.
  virtual Instant TakenElsewhere(const SimulatedAgent& agent) = 0;
};

// What of a node stands still.
enum class StandsStill {
  kAgent,           // The agent alone; its workers and its keeper run.
  kKeeper,          // The keeper alone.
  kAgentAndKeeper,  // The workers run, and nobody watches them.
  kNode,            // All of it.
};

// An agent process with its workers, its client and its keeper. It does what agent.cc,
// life_signs.cc, keeper.cc and grpc_rendezvous_client.cc do, without I/O. One thread.
class SimulatedAgent {
 public:
  // The time for its workers to end once the rendezvous has given it up.
  static constexpr Duration kLostGrace = std::chrono::seconds(2);

  SimulatedAgent(int index, int slot, NodeInfo info, bool local, AgentSurroundings& around)
      : index_(index), slot_(slot), local_(local), info_(std::move(info)), around_(around) {}

  void Start();
  void Handle(const Event& event);
  void Leave();  // A signal asks the agent to leave.
  // The process is gone; with `workers_too` its workers are gone as well.
  void Kill(bool workers_too);
  void SweptByKeeper();
  // `what` does not run until `until`.
  void Pause(Instant until, StandsStill what);
  // Its workers are gone, and nothing notices.
  void ForgetWorkers();
  // The keeper looks at its agent because of the event `token`. True: it ends the agent, with its
  // workers.
  bool KeeperLooks(uint32_t token);
  void EndWorkers(Duration within, bool fail);
  void SetUnfit() { unfit_ = true; }
  void SetFit() { unfit_ = false; }
  // Every `one_in`-th round measures this node as bad; 1: every round does.
  void SetBad(int one_in) { bad_one_in_ = one_in; }
  // From `round` on the agent says that its host goes down.
  void SetGoneFrom(Round round) { gone_from_ = round; }
  bool drained() const { return !says_.drain_reason.empty(); }
  // The agent was told to finish because it is no longer needed, while the job goes on.
  bool dismissed() const {
    return drained() && outcome_ && outcome_->exit_code == 0 && !outcome_->reason.empty();
  }
  void SetSlowStop(Duration stop) { slow_stop_ = stop; }
  // The rendezvous may be at so many places.
  void SetPlaces(int places) { places_ = places; }
  // Its next stream leads to the rendezvous; the present one does not.
  void TurnToLeader();

  int index() const { return index_; }
  int slot() const { return slot_; }
  bool local() const { return local_; }
  bool alive() const { return alive_; }
  bool leaving() const { return leaving_; }
  uint32_t stream() const { return stream_; }
  Round workers() const { return workers_; }
  Instant paused_until() const { return paused_until_; }
  Instant frozen_until() const { return frozen_until_; }
  // Until when it may ask after the last pause that began while its time was not up.
  Instant asks_until() const { return asks_until_; }
  const NodeInfo& info() const { return info_; }
  const NodeUpdate& says() const { return says_; }
  const std::optional<Outcome>& outcome() const { return outcome_; }
  const std::optional<absl::Status>& end() const { return end_; }
  // True if its workers may still live after the rendezvous has given it up: the whole node was
  // frozen for too long, so the workers did not run meanwhile.
  bool excused() const { return excused_; }
  std::string Name() const;

 private:
  enum class Then { kNothing, kReady, kFinished, kLeft, kQuit };

  // The client.
  Allowance AllowanceNow();
  Instant GiveUpAt();
  Instant LastTaken();
  Instant SilentAt() const;
  void Arm();
  void ClientTimer();
  void Connect();
  void Drop();
  void Retry();
  void Transmit(SimulatedMessage::Kind kind);
  void Tell();
  void Say();
  void Hear(const SimulatedMessage& message);
  void Ended(const absl::Status& status);
  void Wake();

  // The agent.
  void Obey();
  void Prepare(const Assignment& assignment);
  void Checked(uint32_t token);
  void Run(const Assignment& assignment);
  void NameMoment(const Directive& directive);
  void ShowLife();
  void ShowLifeAfter(Duration delay);
  void ShowKeeper(Instant until);
  void LookForWorkers();
  void LoseWorkers();
  void Stop(const Directive& directive);
  void Finish(const Outcome& outcome);
  void WorkersExit(uint32_t token);
  void StopWorkers(Duration at_most, Then then);
  void WorkersGone(uint32_t token);
  void OnStopped();
  void LastWord(NodePhase phase);
  void Exit();

  const int index_;
  const int slot_;
  const bool local_;
  const NodeInfo info_;
  AgentSurroundings& around_;
  bool alive_ = false;
  bool unfit_ = false;
  int bad_one_in_ = 0;
  std::optional<Round> gone_from_;
  bool excused_ = false;
  Duration slow_stop_{};
  int places_ = 1;
  Instant paused_until_, frozen_until_, pause_begun_, asks_until_;

  // The agent.
  NodeUpdate says_;
  Round preparing_ = 0;
  Assignment checking_;
  uint32_t check_ = 0;
  bool group_ = false;  // Workers were started and not yet reaped.
  Round workers_ = 0;   // The round of the living workers; 0 if none live.
  Assignment assignment_;
  bool fails_ = false;
  uint32_t workers_token_ = 0, gone_token_ = 0;
  uint32_t signs_token_ = 0, look_token_ = 0;
  Instant look_at_;  // When ShowLife is due.
  bool due_ = false, forgave_ = false, missed_ = false;
  std::optional<Instant> gone_at_;
  Then then_ = Then::kNothing;
  bool leaving_ = false;
  std::optional<Outcome> outcome_;
  std::optional<absl::Status> end_;
  std::deque<Directive> inbox_;  // Posted by the client and not obeyed yet.
  std::optional<absl::Status> posted_end_;

  // The keeper.
  Fence fence_;
  std::deque<Instant> unread_;  // Signs of life.
  Instant keeper_paused_until_;
  uint32_t fence_token_ = 0;

  // The client.
  Lease lease_;
  bool over_ = false;
  bool contacted_ = false;
  Instant begun_, last_heard_, forgiven_until_, stream_forgiven_until_;
  Instant taken_;  // As LastTaken, as a voter.
  Instant read_;   // `sent` of the last message that came on the stream.
  Duration backoff_{};
  std::optional<Instant> closing_;
  uint64_t version_ = 1;
  bool saying_ = false;
  std::optional<Instant> armed_;
  uint32_t armed_token_ = 0;
  uint32_t last_stream_ = 0;
  uint32_t stream_ = 0;  // 0: no stream.
  uint64_t written_ = 0, answered_ = 0;
  std::deque<Instant> unanswered_;  // When the messages after `answered_` were sent.
  uint64_t sent_ = 0;               // The version that was sent last.
  Instant heard_, said_;
};

}  // namespace hlaunch
