// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The first bytes of a connection to the port that gRPC and c10d share. Any bytes, in any pieces,
// go to one of them or are refused with a reason. Where a name is demanded, only a client that
// names the server gets to gRPC.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/port/first_words.h"
#include "rendezvous/net/port/judge_connection.h"

namespace hlaunch {
namespace {

using Kind = FirstWords::Kind;
using To = ConnectionVerdict::To;

constexpr char kServerName[] = "0123.hlaunch";
// As long as a name derived from a token, as a greeting demands.
constexpr char kLongName[] = "0123456789abcdef0123456789abcdef.hlaunch";

FirstWords Read(absl::string_view bytes) {
  const FirstWords words = ReadFirstWords(bytes);
  HLAUNCH_CHECK((words.kind == Kind::kNone) == bytes.empty());
  if (words.kind == Kind::kMore) {
    HLAUNCH_CHECK(words.needed > bytes.size() && words.needed <= kMaxFirstWords);
  }
  if (words.kind == Kind::kTls) HLAUNCH_CHECK(words.needed <= bytes.size());
  if (words.kind == Kind::kGreeting) HLAUNCH_CHECK(words.needed <= bytes.size());
  HLAUNCH_CHECK(words.server_name.empty() || words.kind == Kind::kTls ||
                words.kind == Kind::kGreeting);
  return words;
}

void CheckVerdicts(const FirstWords& words) {
  const PortRule rules[] = {{"", false, false},          {"", false, true},
                            {kServerName, false, false}, {kServerName, false, true},
                            {kLongName, true, false},    {kLongName, true, true},
                            {kLongName, false, true},    {kAnyServerName, false, true}};
  for (const PortRule& rule : rules) {
    const ConnectionVerdict verdict = JudgeConnection(words, rule);
    HLAUNCH_CHECK((verdict.to == To::kNobody) == !verdict.reason.empty());
    HLAUNCH_CHECK(verdict.to == To::kNobody || verdict.answer.empty());
    HLAUNCH_CHECK(verdict.to != To::kC10d || rule.takes_c10d);
    HLAUNCH_CHECK(std::all_of(verdict.reason.begin(), verdict.reason.end(), absl::ascii_isprint));
    const bool named = words.server_name == rule.server_name;
    if (verdict.to == To::kGreeted) {
      HLAUNCH_CHECK(rule.in_clear && named && words.kind == Kind::kGreeting);
    }
    if (verdict.to != To::kGrpc) continue;
    if (rule.server_name.empty()) {
      HLAUNCH_CHECK(words.kind == Kind::kHttp2);
    } else {
      HLAUNCH_CHECK(words.kind == Kind::kTls && !rule.in_clear &&
                    (named || rule.server_name == kAnyServerName));
    }
  }
}

// The front looks again once `needed` bytes have come. The bytes that follow must not change its
// verdict.
void CheckPieces(absl::string_view bytes, const FirstWords& whole) {
  size_t size = 1;
  FirstWords part = Read(bytes.substr(0, size));
  while (part.kind == Kind::kMore && part.needed <= bytes.size()) {
    HLAUNCH_CHECK(part.needed > size);
    size = part.needed;
    part = Read(bytes.substr(0, size));
  }
  // The front waits for more, and looks at the whole once its patience has ended.
  if (part.kind == Kind::kMore) return;
  HLAUNCH_CHECK(part.kind == whole.kind && part.server_name == whole.server_name);
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data),
                                std::min(size, hlaunch::kMaxFirstWords));
  const hlaunch::FirstWords words = hlaunch::Read(bytes);
  hlaunch::CheckVerdicts(words);
  if (!bytes.empty()) hlaunch::CheckPieces(bytes, words);
  return 0;
}
