// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"

// Reads JSON that other programs wrote: a value that is missing or of another kind is empty. Pure.

namespace hlaunch {

using Json = nlohmann::json;

// Discarded if the text is not JSON.
Json ParseJson(absl::string_view text);

// A member of `object`; null if there is none.
const Json& At(const Json& object, const char* name);

// The text, shortened, with only characters that may be shown on a terminal.
std::string WordOf(const Json& json);

int64_t NumberOf(const Json& json);

}  // namespace hlaunch
