// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/stack_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxFrames = 64;
constexpr size_t kMaxFrameBytes = 200;

// Files and functions that a worker is in while it waits for other workers.
constexpr absl::string_view kWaits[] = {
    "torch/distributed/distributed_c10d.py",
    "torch/distributed/c10d_logger.py",
    "torch/distributed/rendezvous.py",
    "torch/distributed/rpc/",
    "torch/futures/__init__.py",
    "hlaunch/process_group.py",
    "hlaunch/distributed.py",
    "hlaunch/library.py",
    "horovod/torch/mpi_ops.py",
    "mpi4py/",
    "gloo::",
    "c10d::",
    " nccl",
    " hccl",
    " hlcomm_",
    " MPI_",
    " PMPI_",
    " MPIR_",
    " MPIDI_",
    " ompi_",
    " opal_progress",
};

struct Frame {
  std::string line;    // For people.
  std::string python;  // As in a traceback; empty if the frame is not Python's.
};

struct Thread {
  bool is_main = false;
  std::vector<Frame> frames;
};

std::string Cleaned(absl::string_view line) {
  std::string clean(line.substr(0, kMaxFrameBytes));
  std::replace_if(clean.begin(), clean.end(), absl::ascii_iscntrl, '?');
  return clean;
}

Frame PythonFrame(absl::string_view file, absl::string_view line, absl::string_view function) {
  Frame frame;
  frame.line = Cleaned(absl::StrCat(function, " (", file, ":", line, ")"));
  frame.python = Cleaned(absl::StrCat("  File \"", file, "\", line ", line, ", in ", function));
  return frame;
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// py-spy's format: "    work (train.py:12)", without the line number if the frame is a library's.
bool ParsePySpy(absl::string_view line, Frame* frame) {
  if (!absl::ConsumePrefix(&line, "    ") || !absl::ConsumeSuffix(&line, ")")) return false;
  const size_t open = line.rfind(" (");
  if (open == line.npos) return false;
  const absl::string_view function = line.substr(0, open), place = line.substr(open + 2);
  const size_t colon = place.rfind(':');
  if (colon != place.npos && IsNumber(place.substr(colon + 1))) {
    *frame = PythonFrame(place.substr(0, colon), place.substr(colon + 1), function);
  } else {
    frame->line = Cleaned(absl::StrCat(function, " (", place, ")"));
  }
  return true;
}

// faulthandler's format: `  File "/home/me/train.py", line 12 in work`.
bool ParseFaulthandler(absl::string_view line, Frame* frame) {
  if (!absl::ConsumePrefix(&line, "  File \"")) return false;
  const size_t quote = line.rfind("\", line ");
  if (quote == line.npos) return false;
  const absl::string_view file = line.substr(0, quote);
  const absl::string_view rest = line.substr(quote + 8);
  const size_t in = rest.find(" in ");
  if (in == rest.npos || !IsNumber(rest.substr(0, in))) return false;
  *frame = PythonFrame(file, rest.substr(0, in), rest.substr(in + 4));
  return true;
}

// gdb's format: "#3  0x00007f1b in clock_nanosleep () from /lib/libc.so.6".
bool ParseGdb(absl::string_view line, Frame* frame) {
  if (!absl::StartsWith(line, "#")) return false;
  const size_t space = line.find(' ');
  if (space == line.npos || !IsNumber(line.substr(1, space - 1))) return false;
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line.substr(space));
  if (absl::StartsWith(rest, "0x")) {
    const size_t in = rest.find(" in ");
    if (in != rest.npos) rest.remove_prefix(in + 4);
  }
  frame->line = Cleaned(rest);
  return true;
}

bool ParseThread(absl::string_view line, Thread* thread) {
  const bool current = absl::ConsumePrefix(&line, "Current ");
  if (!absl::StartsWith(line, current ? "thread " : "Thread ")) return false;
  thread->is_main =
      current || absl::StrContains(line, "\"MainThread\"") || absl::StartsWith(line, "Thread 1 (");
  return true;
}

bool ParseFrame(absl::string_view line, Frame* frame) {
  return ParseFaulthandler(line, frame) || ParsePySpy(line, frame) || ParseGdb(line, frame);
}

bool IsNameless(const std::string& frame) {
  return absl::StartsWith(frame, "0x") || absl::StartsWith(frame, "?? ");
}

// Returns the thread that says that it is the main thread, else the last one: faulthandler and gdb
// print the main thread last.
Thread MainThread(absl::string_view text) {
  Thread best, thread;
  bool begun = false;  // Lines before the first thread are the tool's own.
  const auto keep = [&] {
    if (!thread.frames.empty() && (thread.is_main || !best.is_main)) best = thread;
  };
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripSuffix(line, "\r");
    Thread next;
    Frame frame;
    if (ParseThread(line, &next)) {
      keep();
      thread = next;
      begun = true;
    } else if (begun && thread.frames.size() < kMaxFrames && ParseFrame(line, &frame) &&
               !IsNameless(frame.line)) {
      thread.frames.push_back(std::move(frame));
    }
  }
  keep();
  return best;
}

// A space before a word marks the start of a function's name.
bool SaysThatItWaits(const std::string& line) {
  const std::string spaced = absl::StrCat(" ", line);
  return std::any_of(std::begin(kWaits), std::end(kWaits),
                     [&](absl::string_view word) { return absl::StrContains(spaced, word); });
}

}  // namespace

StackSummary SummarizeStacks(absl::string_view text) {
  StackSummary summary;
  std::vector<std::string> python;
  for (const Frame& frame : MainThread(text).frames) {
    summary.frames.push_back(frame.line);
    if (!frame.python.empty()) python.push_back(frame.python);
    if (summary.waits_in.empty() && SaysThatItWaits(frame.line)) summary.waits_in = frame.line;
  }
  std::reverse(python.begin(), python.end());
  summary.traceback = absl::StrJoin(python, "\n");
  return summary;
}

}  // namespace hlaunch
