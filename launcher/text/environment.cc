// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {

Environment Environment::OfThisProcess() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return Environment(std::move(entries));
}

std::string Environment::Get(absl::string_view name) const {
  for (const std::string& entry : entries_) {
    const bool has_length = entry.size() > name.size() && entry[name.size()] == '=';
    if (has_length && absl::StartsWith(entry, name)) return entry.substr(name.size() + 1);
  }
  return "";
}

bool Environment::HasAny(absl::string_view start) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [start](const std::string& entry) { return absl::StartsWith(entry, start); });
}

std::vector<std::string> Environment::Without(absl::string_view name) const {
  const std::string start = absl::StrCat(name, "=");
  std::vector<std::string> rest;
  for (const std::string& entry : entries_) {
    if (!absl::StartsWith(entry, start)) rest.push_back(entry);
  }
  return rest;
}

void WipeFromEnvironment(const char* name) {
  if (char* const value = std::getenv(name)) ::explicit_bzero(value, std::strlen(value));
  ::unsetenv(name);
}

}  // namespace hlaunch
