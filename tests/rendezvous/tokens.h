// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "rendezvous/net/trust/trust.h"

// The tokens of tests.

namespace hlaunch {

inline constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
inline constexpr char kOtherToken[] = "fedcba9876543210fedcba9876543210";

// One that holds a token and does not encrypt.
inline Trust Holder(const std::string& token = kToken) {
  return Trust::OfTokenInClear(token).value();
}

}  // namespace hlaunch
