// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Anybody's `text` as text of an HTML page, also within an attribute that has quotes: nothing of it
// is markup. Control characters become U+FFFD, but ends of lines and tabs stay. Pure.
std::string HtmlText(absl::string_view text);

// `text` as one part of a path in a URL, with all but letters, digits and "-._~" as %2F; and what
// that was. Pure; of anybody's bytes. The second is empty where something follows a % that is no
// hexadecimal digit.
std::string ToUrlPart(absl::string_view text);
std::string FromUrlPart(absl::string_view text);

}  // namespace hlaunch
