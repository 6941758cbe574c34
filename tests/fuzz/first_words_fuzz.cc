// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The first bytes of a connection to the port that gRPC and c10d share: whatever comes is given to
// one of them or refused with a reason, in whatever pieces it comes, and only who names the server
// is given to gRPC where a name is demanded.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "proto/base/status_macros.h"
#include "rendezvous/listening/first_words.h"
#include "rendezvous/listening/judge_connection.h"

namespace hlaunch {
namespace {

using Kind = FirstWords::Kind;
using To = ConnectionVerdict::To;

constexpr char kServerName[] = "0123.hlaunch";

FirstWords Read(absl::string_view bytes) {
  const FirstWords words = ReadFirstWords(bytes);
  HLAUNCH_CHECK((words.kind == Kind::kNone) == bytes.empty());
  if (words.kind == Kind::kMore) {
    HLAUNCH_CHECK(words.needed > bytes.size() && words.needed <= kMaxFirstWords);
  }
  if (words.kind == Kind::kTls) HLAUNCH_CHECK(words.needed <= bytes.size());
  HLAUNCH_CHECK(words.server_name.empty() || words.kind == Kind::kTls);
  return words;
}

void CheckVerdicts(const FirstWords& words) {
  for (const std::string& name : {std::string(), std::string(kServerName)}) {
    for (const bool takes_c10d : {false, true}) {
      const ConnectionVerdict verdict = JudgeConnection(words, name, takes_c10d);
      HLAUNCH_CHECK((verdict.to == To::kNobody) == !verdict.reason.empty());
      HLAUNCH_CHECK(verdict.to == To::kNobody || verdict.answer.empty());
      HLAUNCH_CHECK(verdict.to != To::kC10d || takes_c10d);
      HLAUNCH_CHECK(std::all_of(verdict.reason.begin(), verdict.reason.end(), absl::ascii_isprint));
      if (verdict.to != To::kGrpc) continue;
      HLAUNCH_CHECK(name.empty() ? words.kind == Kind::kHttp2
                                 : words.kind == Kind::kTls && words.server_name == name);
    }
  }
}

// The front looks again once `needed` bytes have come; what was decided must not change with the
// bytes that follow.
void CheckPieces(absl::string_view bytes, const FirstWords& whole) {
  size_t size = 1;
  FirstWords part = Read(bytes.substr(0, size));
  while (part.kind == Kind::kMore && part.needed <= bytes.size()) {
    HLAUNCH_CHECK(part.needed > size);
    size = part.needed;
    part = Read(bytes.substr(0, size));
  }
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
