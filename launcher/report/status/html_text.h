// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Escapes any `text` for an HTML page, also for an attribute in quotes: none of it is markup.
// Control characters become U+FFFD, except line ends and tabs. Pure.
std::string HtmlText(absl::string_view text);

// ToUrlPart encodes `text` as one part of a path in a URL: all bytes but letters, digits and "-._~"
// become as in %2F. FromUrlPart decodes it; it returns an empty text if a % is not followed by two
// hexadecimal digits. Pure; any bytes are allowed.
std::string ToUrlPart(absl::string_view text);
std::string FromUrlPart(absl::string_view text);

}  // namespace hlaunch
