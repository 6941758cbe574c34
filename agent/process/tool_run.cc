// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/process/tool_run.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/process/line_process.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"

namespace hlaunch {

struct ToolRun::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, std::function<void(ToolOutput)> tell_whom)
      : timer(loop), done(std::move(tell_whom)) {}

  void Start(asio::io_context& loop, const std::vector<std::string>& argv, Duration limit) {
    timer.expires_after(limit);
    timer.async_wait([self = shared_from_this(), limit](const asio::error_code& error) {
      if (error) return;
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit);
      self->Finish(
          absl::StrCat("it did not end within ", static_cast<double>(ms.count()) / 1000, " s"));
    });
    process.emplace(loop, argv,
                    LineProcess::Events{[this](absl::string_view line) { Take(line); },
                                        [this](const LineProcessEnd& end) {
                                          output.missing = end.missing;
                                          output.exit_code = end.exit_code;
                                          Finish(end.success ? "" : end.why);
                                        }},
                    LineProcess::Stderr::kLines);
  }

  void Take(absl::string_view line) {
    const size_t room = kMaxBytes - output.text.size();
    absl::StrAppend(&output.text, line.substr(0, room));
    if (line.size() >= room) return Finish("it said too much");
    output.text += '\n';
  }

  void Finish(std::string problem) {
    Stop();
    output.problem = std::move(problem);
    if (auto tell = std::exchange(done, nullptr)) tell(std::move(output));
  }

  void Stop() {
    timer.cancel();
    process.reset();  // Kills the program if it still runs.
  }

  asio::steady_timer timer;
  std::function<void(ToolOutput)> done;
  std::optional<LineProcess> process;
  ToolOutput output;
};

ToolRun::ToolRun(asio::io_context& loop, const std::vector<std::string>& argv, Duration limit,
                 std::function<void(ToolOutput)> done)
    : state_(std::make_shared<State>(loop, std::move(done))) {
  state_->Start(loop, argv, limit);
}

ToolRun::~ToolRun() {
  state_->done = nullptr;
  state_->Stop();
}

pid_t ToolRun::pid() const { return state_->process ? state_->process->pid() : 0; }

}  // namespace hlaunch
