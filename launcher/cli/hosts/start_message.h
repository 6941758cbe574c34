// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What the launcher at the terminal sends to an agent that it starts, and how the agent answers.
// All is pure.
//
// The words that a remote shell sees are fixed. Everything else is in one message on the agent's
// stdin: kStartMagic, four bytes of length, and as many bytes of fields. A field is four bytes of
// length and `name=value`; fields of unknown names are for later versions and are skipped. Lengths
// have the most significant byte first. After the message, small frames follow: a letter, four
// bytes of length, and as many bytes.

namespace hlaunch {

inline constexpr absl::string_view kStartMagic = "HLS1";
inline constexpr size_t kMaxStartBytes = 8 << 20;
inline constexpr size_t kMaxStartFields = 100'000;
inline constexpr size_t kFrameHead = 5;  // Of a frame; that of the message has eight bytes.
inline constexpr size_t kMaxFrame = 64 << 10;

// What an agent needs to begin. A value.
struct StartMessage {
  std::string version;                   // WireVersion() of the sender.
  std::string nonce;                     // Printable; every line of the answer repeats it.
  std::vector<std::string> candidates;   // HOST:PORT of the rendezvous, most promising first.
  std::vector<std::string> options;      // The words before the script,
  std::vector<std::string> script;       // and those from it on.
  std::vector<std::string> environment;  // NAME=value each, overriding what is set there.
  std::vector<std::string> limits;       // "NUMBER:SOFT" of setrlimit.
  std::string token;                     // Secret; empty: none.
  std::string directory;                 // Working directory; empty: unchanged.
  int umask = -1;                        // -1: unchanged.
  int grace_s = 30;                      // Between SIGTERM and SIGKILL.
  bool takes_stdin = false;              // Bytes of stdin follow in frames.
};

// The message with its head.
std::string EncodeStart(const StartMessage& message);

// Returns how many bytes of fields `head` announces. `head` has eight bytes.
//
// Errors:
//   InvalidArgument - it is no head of a start message, or announces more than kMaxStartBytes.
absl::StatusOr<size_t> StartBytes(absl::string_view head);

// Reads the fields that follow the head.
//
// Errors:
//   InvalidArgument - they are cut off or too many, one has a bad value, or the nonce or script is
//       missing.
absl::StatusOr<StartMessage> DecodeStart(absl::string_view fields);

// The frames that follow the message.
enum class FrameKind : char {
  kInput = 'i',   // Bytes for the job's stdin; no bytes: its end.
  kSignal = 's',  // One byte: a signal for the job.
  kKill = 'k',    // End the job at once.
  kDetach = 'd',  // From now on the end of stdin does not end the job.
};
struct Frame {
  FrameKind kind = FrameKind::kKill;
  std::string bytes;
};
std::string EncodeFrame(FrameKind kind, absl::string_view bytes);

// Removes the whole frames from `buffer` and returns them.
//
// Errors:
//   InvalidArgument - the bytes are no frame.
absl::StatusOr<std::vector<Frame>> TakeFrames(std::string& buffer);

// A line of the answer: `hlaunch-agent/1 NONCE WORD REST`.
inline constexpr absl::string_view kAgentMagic = "hlaunch-agent/1";
struct AgentLine {
  std::string before;  // The text before it in the line, which shells and programs may leave.
  std::string word;    // kWordStarted, …
  std::string rest;
};
inline constexpr absl::string_view kWordStarted = "started";  // VERSION PID MACHINE
inline constexpr absl::string_view kWordHere = "here";        // HOST:PORT that could be reached
inline constexpr absl::string_view kWordError = "error";      // KIND and a line for the person
inline constexpr absl::string_view kWordEnd = "end";          // The exit code

std::string MakeAgentLine(absl::string_view nonce, absl::string_view word, absl::string_view rest);

// Whether `line` holds an agent's line with this nonce; if so, fills in `found`.
bool ReadAgentLine(absl::string_view line, absl::string_view nonce, AgentLine* found);

// As in "0.1.0+16e9676f0c12". Both ends must have the same version.
std::string WireVersion();

}  // namespace hlaunch
