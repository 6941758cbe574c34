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
#include "agent/process/process.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/hosts/explain_start.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/start_message.h"
#include "launcher/remote/starter.h"

namespace hlaunch {

// How far a host's start has come.
enum class HostState {
  kWaiting,     // Its turn has not come.
  kConnecting,  // The starter runs.
  kStarted,     // The agent has spoken and looks for the way to us.
  kHere,        // It has reached us.
  kFailed,      // It never got here.
  kEnded,       // It was here, and its starter has exited.
};

// What one start needs. A value.
struct HostPlan {
  TargetHost host;
  bool own = false;     // This very host.
  std::string program;  // hlaunch over there.
  StartMessage message;
  std::string jump = {};  // See JumpHostOf.
};

// One host from its start to its end: the starter's process, what it says, and what it is told.
//
// Belongs to the loop's thread, which spawned it; shared with the handlers that wait for its
// descriptors, in the loop.
class HostStart : public std::enable_shared_from_this<HostStart> {
 public:
  struct Events {
    // The state has changed.
    std::function<void(HostStart&)> changed;
    // A whole line, or the last without its end, of a host that is here. Only while output goes.
    std::function<void(int fd, std::string bytes)> output;
    // Whether `output` takes no more for now; Resume says when it does.
    std::function<bool()> output_full;
    // All that was sent is on its way.
    std::function<void(HostStart&)> sent;
  };

  HostStart(asio::io_context& loop, const Starter& starter, HostPlan plan, Events events);

  // Begins. Requires: kWaiting.
  void Start();
  // A frame for the agent; nothing if it cannot hear any more.
  void Send(FrameKind kind, absl::string_view bytes);
  // What waits to be sent.
  size_t waiting() const { return outgoing_.size(); }  // Without the program.
  // Ends it: a host that is here is asked, one that is on its way is dropped.
  void Stop(int signal);
  // Ends the starter's process at once.
  void Kill();
  // Output goes on.
  void Resume();

  HostState state() const { return state_; }
  bool over() const { return state_ == HostState::kFailed || state_ == HostState::kEnded; }
  const HostPlan& plan() const { return plan_; }
  const StartVerdict& verdict() const { return verdict_; }            // kFailed.
  const std::string& reached() const { return reached_; }             // kHere.
  const std::optional<int>& exit_code() const { return exit_code_; }  // As the agent said it.
  const std::string& last_words() const { return last_words_; }       // Of the starter, kEnded.
  bool stopped() const { return stopped_; }

 private:
  struct Stream {
    explicit Stream(asio::io_context& loop) : pipe(loop) {}
    asio::posix::stream_descriptor pipe;
    std::string line;  // What has come of one.
    int fd = 1;        // Where it goes.
    bool open = false;
    bool held = false;  // Not read until Resume.
    std::vector<char> buffer;
  };

  void Spawn();
  void Read(Stream& stream);
  void TakeBytes(Stream& stream, absl::string_view bytes);
  void TakeLine(Stream& stream, std::string line);
  void TakeAgentLine(const AgentLine& found);
  void Write();
  // What is written next, and that so many bytes of it were.
  absl::string_view NextBytes() const;
  void Written(size_t size);
  void AwaitExit();
  void Exited();
  void FinishWhenRead();
  void Finish();
  void FailOrTryAgain();
  void ArmTimer(int seconds);
  void TimeIsUp();
  void Enter(HostState state);

  asio::io_context& loop_;
  const Starter& starter_;
  HostPlan plan_;
  Events events_;
  HostState state_ = HostState::kWaiting;
  std::optional<Process> process_;
  asio::posix::stream_descriptor pidfd_;
  asio::posix::stream_descriptor input_;
  Stream out_, err_;
  asio::steady_timer timer_;
  std::string outgoing_;
  bool writing_ = false;
  bool stopped_ = false;
  bool exited_ = false;
  int dropped_ = 0;  // Starts that were dropped before they began.
  bool tried_path_ = false;
  std::string first_program_;  // If so, where it was sought at first.
  bool pushes_ = false;        // The program goes first.
  size_t pushed_ = 0;          // So much of it is on its way.
  int timer_s_ = 0;
  FailedStart failed_;  // What is known if it fails.
  std::deque<std::string> last_lines_;
  StartVerdict verdict_;
  std::string reached_, last_words_;
  std::string repeated_end_;  // Told once it is known that the agent has not said so.
  std::optional<int> exit_code_;
};

}  // namespace hlaunch
