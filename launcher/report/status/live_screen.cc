// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/live_screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/output/console.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr int kEveryMs = 1000;
constexpr Duration kBlockEvery = std::chrono::seconds(60);
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";  // The alternate screen, without a cursor.
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr ScreenSize kUsual = {80, 24, false};

// Returns whether all of it was written.
bool WriteAll(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) done += static_cast<size_t>(count);
  }
  return true;
}

bool WriteLines(const std::vector<std::string>& lines) {
  return WriteAll(absl::StrCat(absl::StrJoin(lines, "\n"), "\n"));
}

// Blocks the signals that end or redraw a screen. Returns a descriptor for them.
UniqueFd TakeSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP}) {
    ::sigaddset(&signals, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

ScreenSize SizeOfTerminal(bool colour) {
  ScreenSize size = kUsual;
  winsize window = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 1) {
    size.columns = window.ws_col;
    size.lines = window.ws_row;
  }
  size.colour = colour;
  return size;
}

// The terminal's alternate screen, with keys read one by one. The destructor restores the terminal.
class OtherScreen {
 public:
  OtherScreen() { Enter(); }
  ~OtherScreen() { Leave(); }
  OtherScreen(const OtherScreen&) = delete;
  OtherScreen& operator=(const OtherScreen&) = delete;

  void Draw(const std::vector<std::string>& lines) {
    WriteAll(absl::StrCat("\x1b[H", absl::StrJoin(lines, "\x1b[K\r\n"), "\x1b[K\x1b[J"));
  }

  // Stops this process until SIGCONT lets it continue.
  void Suspend() {
    Leave();
    ::raise(SIGSTOP);
    Enter();
  }

 private:
  void Enter() {
    termios now = {};
    if (::tcgetattr(STDIN_FILENO, &now) == 0) {
      before_ = now;
      now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      now.c_cc[VMIN] = 0;
      now.c_cc[VTIME] = 0;
      ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    WriteAll(kEnter);
  }

  void Leave() {
    WriteAll(kLeave);
    if (before_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*before_);
  }

  std::optional<termios> before_;  // Unset: no keys are read.
};

enum class Event { kNothing, kRedraw, kSuspend, kEnd };

// Waits up to a second for a key or a signal.
Event AwaitEvent(int signals, bool keys) {
  pollfd fds[] = {{signals, POLLIN, 0}, {keys ? STDIN_FILENO : -1, POLLIN, 0}};
  if (::poll(fds, 2, kEveryMs) <= 0) return Event::kNothing;
  signalfd_siginfo signal = {};
  if (::read(signals, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
    if (signal.ssi_signo == SIGWINCH) return Event::kRedraw;
    return signal.ssi_signo == SIGTSTP ? Event::kSuspend : Event::kEnd;
  }
  char key = 0;
  if (keys && ::read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q' || key == '\x04')) {
    return Event::kEnd;
  }
  return Event::kRedraw;
}

// Returns the last frame.
LiveFrame WatchTerminal(const std::function<LiveFrame()>& look, LiveFrame frame, int signals,
                        bool colour) {
  const bool keys = ::isatty(STDIN_FILENO) == 1;
  OtherScreen screen;
  while (!frame.last) {
    screen.Draw(frame.draw(SizeOfTerminal(colour)));
    switch (AwaitEvent(signals, keys)) {
      case Event::kEnd:
        return frame;
      case Event::kSuspend:
        screen.Suspend();
        break;
      case Event::kRedraw:
        break;
      case Event::kNothing:
        frame = look();
        break;
    }
  }
  return frame;
}

void WatchLog(const std::function<LiveFrame()>& look, LiveFrame frame, int signals) {
  std::string about;
  std::optional<Instant> told;
  for (;; frame = look()) {
    const Instant now = MonotonicClock().Now();
    if (!told || frame.about != about || frame.last || now - *told >= kBlockEvery) {
      std::vector<std::string> lines = frame.draw({kUsual.columns, 0, false});
      if (told) lines.insert(lines.begin(), "");
      if (!lines.empty() && !WriteLines(lines)) return;
      about = frame.about;
      told = now;
    }
    if (frame.last || AwaitEvent(signals, false) == Event::kEnd) return;
  }
}

}  // namespace

void WatchLive(const std::function<LiveFrame()>& look) {
  const UniqueFd signals = TakeSignals();
  const ConsoleStyle style = ConsoleStyleOf(STDOUT_FILENO);
  LiveFrame last = look();
  if (!style.terminal || last.last) return WatchLog(look, std::move(last), signals.get());
  last = WatchTerminal(look, std::move(last), signals.get(), style.colour);
  ScreenSize size = SizeOfTerminal(style.colour);
  size.lines = 0;
  WriteLines(last.draw(size));
}

}  // namespace hlaunch
