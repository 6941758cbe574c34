// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/output/output_sink.h"
#include "agent/workers/input/stdin_reader.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/cli/hosts/end_of_job.h"
#include "launcher/remote/ssh/host_start.h"
#include "launcher/remote/ssh/start_pace.h"
#include "launcher/remote/ssh/starter.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// What the conductor of a detached job asks the rendezvous and reports to it. A value.
struct DetachedHooks {
  // True if the nodes meet at the rendezvous: they need no connection from then on. A lone node
  // does not meet others, and ends with its connection.
  bool meets = true;
  std::function<bool()> formed;      // Returns true once the first round has begun.
  std::function<void()> started;     // Called once, then with every reachable host here.
  std::function<bool()> over;        // Returns true once the job has ended.
  std::function<void(int)> end_job;  // Ends it with this signal, also where a connection broke.
};

// What to start. A value.
struct ConductPlan {
  std::vector<HostPlan> hosts;  // By node rank.
  Starter starter;
  int min_hosts = 1;  // The job cannot run with fewer hosts.
  Duration grace = std::chrono::seconds(30);
  // Called after a host has failed or ended, with the number of those; may be null.
  std::function<void(int)> ended = nullptr;
  Duration patience = std::chrono::seconds(600);  // See StartPatience.
  bool quiet = false;                             // Shows no status line.
  std::optional<DetachedHooks> detached = {};
};

// The launcher's end, at the terminal, of a job on other hosts. It starts the agents, shows their
// progress, prints their output, forwards stdin and signals to them, and ends all of them if a
// required host is missing.
//
// Belongs to the main thread; Run is called once. The conductor does not own the rendezvous that
// the agents connect to.
class Conductor {
 public:
  // At most this many start through the same jump host: its sshd drops connections beyond that
  // (MaxStartups is 10).
  static constexpr size_t kInFlightOfJump = 8;

  // `signals` comes from AgentSignals. `keeper_fd` becomes readable when the keeper is dead.
  Conductor(ConductPlan plan, UniqueFd signals, int keeper_fd);
  ~Conductor();

  // Turns while Run does.
  asio::io_context& loop() { return loop_; }

  // Runs from the first start until no starter is left.
  //
  // Errors: ResourceExhausted.
  absl::StatusOr<JobEnd> Run();

 private:
  void StartMore();
  bool MayStart(const HostStart& host) const;
  void Changed(HostStart& host);
  void HostFailed(HostStart& host);
  void RefuseOneMachineTwice();
  void HostEnded(HostStart& host);
  void StopStarts();
  void TellEnded();
  bool GoesOn(const HostStart& host) const;
  void ConnectionBroke(HostStart& host);
  bool Over() const;
  void AwaitFormed();
  void AwaitOver();
  void Output(HostStart& from, int fd, std::string bytes);
  void AwaitSignals();
  void TakeSignals();
  void AwaitKeeper();
  void ReadStdin();
  void Stop(int signal);
  void KillLater(Duration wait);
  void KillAll();
  void ArmStatus();
  void ShowStatus();
  void EraseStatus();
  std::string StatusText() const;
  size_t Count(HostState state) const;
  JobEnd End() const;

  // A line that waits for its end was the last thing shown.
  struct Unfinished {
    HostStart* host = nullptr;
    int fd = 1;
  };

  const ConductPlan plan_;
  StartPatience patience_;
  asio::io_context loop_{1};
  UniqueFd signals_fd_;
  asio::posix::stream_descriptor signals_, keeper_;
  asio::steady_timer status_timer_, kill_timer_, job_timer_, room_timer_;
  std::unique_ptr<OutputSink> sink_;
  std::unique_ptr<StdinReader> stdin_;
  std::vector<std::shared_ptr<HostStart>> hosts_;
  std::set<const HostStart*> left_;  // Of these, those whose agents ended while the job went on.
  bool start_failed_ = false;
  bool stopping_ = false;
  bool starting_over_ = false;  // No start is pending any more.
  bool detached_ = false;       // The job has started, and connections may break.
  bool cut_ = false;            // A connection broke after that.
  bool gave_up_ = false;        // What was left was killed.
  bool awaits_room_ = false;
  bool told_twice_ = false;  // That two hosts are one machine.
  bool terminal_ = false;    // Stderr is a terminal, where the status line can be rewritten.
  bool status_shown_ = false;
  int stop_signal_ = 0;
  int signals_taken_ = 0;
  std::string last_status_;
  const bool one_place_;                  // Our stdout and stderr lead to the same.
  std::map<int, Unfinished> unfinished_;  // By our descriptor.
};

}  // namespace hlaunch
