// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The most bytes that are looked at before the protocol is known. gRPC's hello has some 350.
inline constexpr size_t kMaxFirstWords = 4096;

// What the first bytes of a connection say about the peer that sent them.
struct FirstWords {
  enum class Kind {
    kNone,      // Nothing has come.
    kMore,      // It may be TLS or a greeting; `needed` bytes in all must be looked at.
    kTls,       // A whole ClientHello (RFC 8446, 4.1.2).
    kGreeting,  // A whole hello of `needed` bytes: see token_greeting.h.
    kHttp2,     // The preface of HTTP/2 in clear (RFC 9113, 3.4), at least its first byte.
    kOther,     // None of these: c10d, whose first byte is a query type below 0x16, or nonsense.
  };

  Kind kind = Kind::kNone;
  size_t needed = 1;
  // The name that a ClientHello (RFC 6066, 3) or a greeting asks for; empty if there is none.
  std::string server_name;
  bool encrypts = false;  // TLS follows a greeting.
};

// `bytes` are all bytes that have come, or the first kMaxFirstWords of them. Pure.
FirstWords ReadFirstWords(absl::string_view bytes);

}  // namespace hlaunch
