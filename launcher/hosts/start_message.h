// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What the terminal's end tells an agent that it starts, and how that answers. All is pure.
//
// The words that a remote shell sees are fixed; everything else is in one message on the agent's
// stdin: kStartMagic, four bytes of length, and so many bytes of fields. A field is four bytes of
// length and `name=value`; fields of unknown names are for later versions and are skipped. Lengths
// have the most significant byte first. After the message small frames follow: a letter, four
// bytes of length, and so many bytes.

namespace hlaunch {

inline constexpr absl::string_view kStartMagic = "HLS1";
inline constexpr size_t kMaxStartBytes = 8 << 20;
inline constexpr size_t kMaxStartFields = 100'000;
inline constexpr size_t kFrameHead = 5;  // Of a frame; of the message eight.
inline constexpr size_t kMaxFrame = 64 << 10;

// What an agent needs to begin. A value.
struct StartMessage {
  std::string version;                   // WireVersion() of the sender.
  std::string nonce;                     // Printable; every line of the answer repeats it.
  std::vector<std::string> candidates;   // HOST:PORT of the rendezvous, most promising first.
  std::vector<std::string> options;      // The words before the script,
  std::vector<std::string> script;       // and those from it on.
  std::vector<std::string> environment;  // NAME=value each, over what is there already.
  std::vector<std::string> limits;       // "NUMBER:SOFT" of setrlimit.
  std::string token;                     // Secret; empty: none.
  std::string directory;                 // Working directory; empty: where it is.
  int umask = -1;                        // -1: its own.
  int grace_s = 30;                      // Between SIGTERM and SIGKILL.
  bool takes_stdin = false;              // Bytes of stdin follow in frames.
};

// Field by field, with the head.
std::string EncodeStart(const StartMessage& message);

// How many bytes of fields the head announces. `head` has eight bytes.
//
// Errors:
//   InvalidArgument - it is no such head, or announces more than kMaxStartBytes.
absl::StatusOr<size_t> StartBytes(absl::string_view head);

// The fields behind the head.
//
// Errors:
//   InvalidArgument - they are cut off, too many, or one has a value that none can have.
absl::StatusOr<StartMessage> DecodeStart(absl::string_view fields);

// What follows the message.
enum class FrameKind : char {
  kInput = 'i',   // Bytes for the job's stdin; none: its end.
  kSignal = 's',  // One byte: a signal for the job.
  kKill = 'k',    // End it at once.
  kDetach = 'd',  // From now on the end of stdin is not the job's.
};
struct Frame {
  FrameKind kind = FrameKind::kKill;
  std::string bytes;
};
std::string EncodeFrame(FrameKind kind, absl::string_view bytes);

// Takes the frames that are whole out of `buffer`.
//
// Errors:
//   InvalidArgument - what is there is no frame.
absl::StatusOr<std::vector<Frame>> TakeFrames(std::string& buffer);

// A line of the answer: `hlaunch-agent/1 NONCE WORD REST`.
inline constexpr absl::string_view kAgentMagic = "hlaunch-agent/1";
struct AgentLine {
  std::string before;  // What stood in the line before it; shells and programs may leave it.
  std::string word;    // kWordStarted …
  std::string rest;
};
inline constexpr absl::string_view kWordStarted = "started";  // VERSION PID
inline constexpr absl::string_view kWordHere = "here";        // HOST:PORT that could be reached
inline constexpr absl::string_view kWordError = "error";      // KIND and a line for the person
inline constexpr absl::string_view kWordEnd = "end";          // The exit code

std::string MakeAgentLine(absl::string_view nonce, absl::string_view word, absl::string_view rest);

// Whether `line` holds such a line with this nonce; what of it.
bool ReadAgentLine(absl::string_view line, absl::string_view nonce, AgentLine* found);

// "0.1.0+16e9676f0c12": what both ends must share.
std::string WireVersion();

}  // namespace hlaunch
