// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/workers/process/process.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/cli/hosts/explain_start.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/hosts/start_message.h"
#include "launcher/remote/ssh/start_pace.h"
#include "launcher/remote/ssh/starter.h"

namespace hlaunch {

// How far a host's start has come.
enum class HostState {
  kWaiting,     // The start has not begun.
  kConnecting,  // The starter runs.
  kStarted,     // The agent has said its first line and is trying to reach us.
  kHere,        // The agent has reached us.
  kFailed,      // The agent never reached us, or was stopped before that.
  kEnded,       // The agent had reached us, and its starter has exited.
};

// What one start needs. A value.
struct HostPlan {
  TargetHost host;
  bool own = false;     // The host is the one that this process runs on.
  std::string program;  // The path of hlaunch on that host.
  StartMessage message;
  std::string jump = {};  // See JumpHostOf.
};

// One host from its start to its end: the starter's process, its output and what is sent to it.
//
// Belongs to the loop's thread, which spawned it. The handlers in that loop that wait for its
// descriptors share ownership of it.
class HostStart : public std::enable_shared_from_this<HostStart> {
 public:
  struct Events {
    // The state has changed.
    std::function<void(HostStart&)> changed;
    // A whole line of a host that is here, or what was not shown yet of one. Without a newline, the
    // line waits for its end, and what comes next continues it; see ShowAgain.
    std::function<void(HostStart&, int fd, std::string bytes)> output;
    // Returns true while `output` takes no more; Resume tells when it does again.
    std::function<bool()> output_full;
    // Everything that was queued has been written.
    std::function<void(HostStart&)> sent;
  };

  // The starts of all hosts share `patience`, which outlives them.
  HostStart(asio::io_context& loop, const Starter& starter, StartPatience& patience, HostPlan plan,
            Events events);

  // Starts the host. Requires: kWaiting.
  void Start();
  // Sends a frame to the agent; does nothing if the agent cannot receive any more.
  void Send(FrameKind kind, absl::string_view bytes);
  // The number of bytes that wait to be sent.
  size_t waiting() const { return outgoing_.size(); }  // The program is not counted.
  // Stops the host: a host that is here gets the signal, a start that is on its way is killed.
  void Stop(int signal);
  // Kills the starter's process at once.
  void Kill();
  // Something else has ended the line of `fd` that waits for its end: it is shown once more when it
  // is whole.
  void ShowAgain(int fd);
  // Reads output again, after `output_full` was true.
  void Resume();

  HostState state() const { return state_; }
  Instant begun() const { return begun_; }  // When its starter was last run.
  bool over() const { return state_ == HostState::kFailed || state_ == HostState::kEnded; }
  const HostPlan& plan() const { return plan_; }
  const StartVerdict& verdict() const { return verdict_; }  // Set in kFailed.
  const std::string& machine() const { return machine_; }   // See OwnMachine; from kStarted.
  const std::string& reached() const { return reached_; }   // Set from kHere on.
  const std::optional<int>& exit_code() const { return exit_code_; }  // As the agent reported it.
  const std::string& last_words() const { return last_words_; }       // The starter's, in kEnded.
  bool stopped() const { return stopped_; }

 private:
  struct Stream {
    explicit Stream(asio::io_context& loop) : pipe(loop) {}
    asio::posix::stream_descriptor pipe;
    std::string line;  // The bytes of an unfinished line.
    size_t shown = 0;  // How many of them were shown.
    int fd = 1;        // The descriptor that its output goes to.
    bool open = false;
    bool held = false;  // Not read until Resume.
    std::vector<char> buffer;
  };

  void Spawn();
  void Read(Stream& stream);
  void TakeBytes(Stream& stream, absl::string_view bytes);
  void TakeLine(Stream& stream, std::string line);
  void Show(Stream& stream, absl::string_view line);
  void ShowUnfinished();
  void TakeAgentLine(const AgentLine& found);
  void Write();
  // NextBytes returns what is written next; Written takes off `size` bytes that were written.
  absl::string_view NextBytes() const;
  void Written(size_t size);
  void AwaitExit();
  void Exited();
  void FinishWhenRead();
  void Finish();
  void FailOrTryAgain();
  void AwaitAnswer();
  void TimeIsUp();
  void Enter(HostState state);

  asio::io_context& loop_;
  const Starter& starter_;
  StartPatience& patience_;
  HostPlan plan_;
  Events events_;
  HostState state_ = HostState::kWaiting;
  std::optional<Process> process_;
  asio::posix::stream_descriptor pidfd_;
  asio::posix::stream_descriptor input_;
  Stream out_, err_;
  asio::steady_timer timer_, unfinished_timer_;
  std::string outgoing_;
  bool writing_ = false;
  bool stopped_ = false;
  bool exited_ = false;
  int dropped_ = 0;  // The number of starts that were dropped before they began.
  bool tried_path_ = false;
  std::string first_program_;  // If so, the path that was tried first.
  bool pushes_ = false;        // The program is sent first.
  size_t pushed_ = 0;          // The bytes of it that have been written.
  Instant begun_, entered_;    // When the starter was run, and when the host entered its state.
  FailedStart failed_;         // The facts for the verdict if the start fails.
  std::deque<std::string> last_lines_;
  StartVerdict verdict_;
  std::string machine_, reached_, last_words_;
  std::string repeated_end_;  // Shown once it is clear that the agent has not reported its end.
  std::optional<int> exit_code_;
};

}  // namespace hlaunch
