// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/option_sources.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "launcher/text/printable.h"
#include "launcher/text/spelling.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"
#include "proto/base/user_files.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using nlohmann::json;

constexpr size_t kMaxConfigBytes = 1 << 20;
constexpr char kCommandKey[] = "command";
constexpr char kShutdownVariable[] = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";

// "--nproc-per-node" -> "PET_NPROC_PER_NODE".
std::string PetName(const OptionRow& row) {
  const string_view name = string_view(row.name).substr(2);
  return absl::StrCat("PET_", absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})));
}

std::string ConfigKey(const OptionRow& row) { return std::string(row.name).substr(2); }

// The option of a key in a configuration; null if there is none.
const OptionRow* OptionOfKey(const std::string& key) {
  // FindOption would take what follows as a value.
  return absl::StrContains(key, "=") ? nullptr : FindOption(absl::StrCat("--", key));
}

absl::Status Wrong(string_view file, string_view key, string_view why) {
  return InvalidArgumentError(
      absl::StrCat(file, key.empty() ? "" : ": ", PrintableLine(key), ": ", why));
}

absl::Status UnknownKey(string_view file, const std::string& key) {
  std::vector<std::string> known = {kCommandKey};
  for (const OptionRow& row : OptionTable()) {
    if (row.in_config()) known.push_back(ConfigKey(row));
  }
  const OptionRow* row = OptionOfKey(key);
  if (row != nullptr) return Wrong(file, key, "is for the command line only");
  const std::string near = NearestSpelling(absl::StrReplaceAll(key, {{"_", "-"}}), known);
  return Wrong(file, key,
               near.empty() ? "unknown key; keys are the options of hlaunch --help without dashes"
                            : absl::StrCat("unknown key; did you mean ", near, "?"));
}

// Returns text and numbers as a user would type them; unset for anything else.
std::optional<std::string> Typed(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

absl::StatusOr<std::string> ValueText(const OptionRow& row, const json& value, string_view file,
                                      const std::string& key) {
  if (value.is_boolean() && !row.takes_value()) {
    return std::string(value.get<bool>() ? "true" : "false");
  }
  if (row.is_flag()) return Wrong(file, key, "expected true or false");
  if (const auto text = Typed(value)) return *text;
  if (!value.is_array()) return Wrong(file, key, "expected text, a number or a list of them");
  std::vector<std::string> words;
  for (const json& element : value) {
    const auto text = Typed(element);
    if (!text) return Wrong(file, key, "expected text or numbers in the list");
    // If a word may contain a comma, such a comma is doubled.
    words.push_back(row.doubled_commas ? absl::StrReplaceAll(*text, {{",", ",,"}}) : *text);
  }
  return absl::StrJoin(words, ",");
}

absl::StatusOr<std::vector<std::string>> CommandWords(const json& value, string_view file) {
  std::vector<std::string> words;
  if (value.is_array()) {
    for (const json& element : value) {
      if (const auto word = Typed(element)) words.push_back(*word);
    }
  }
  if (words.empty() || words.size() != value.size() || words[0].empty()) {
    return Wrong(file, kCommandKey,
                 "expected a list, the script first: [\"train.py\", \"--lr\", \"0.1\"]");
  }
  return words;
}

// "line 3: ..." of nlohmann's "[json.exception...] parse error at line 3, column 5: ...".
std::string SyntaxError(const std::string& what) {
  const size_t line = what.find("line ");
  return PrintableLine(line == what.npos ? what : what.substr(line));
}

}  // namespace

absl::StatusOr<std::vector<FoundValue>> FindInEnvironment(const Environment& environment) {
  std::vector<FoundValue> found;
  for (const OptionRow& row : OptionTable()) {
    const bool is_preload = row.name == string_view("--preload");
    if (!row.has_pet && !is_preload) continue;
    std::string origin = is_preload ? kEnvPreload : PetName(row);
    std::string value = environment.Get(origin);
    if (value.empty() && row.name == string_view("--shutdown-timeout")) {
      origin = kShutdownVariable;
      value = environment.Get(origin);
    }
    if (value.empty()) continue;
    if (row.is_flag()) {
      int number = 0;
      if (!absl::SimpleAtoi(value, &number)) {
        return InvalidArgumentError(
            absl::StrCat(origin, " '", PrintableLine(value), "': expected 0 or 1"));
      }
      value = number != 0 ? "true" : "false";
    }
    found.push_back({&row, value, OptionSource::kEnvironment, origin});
  }
  return found;
}

absl::StatusOr<Config> ParseConfig(string_view text, string_view file) {
  std::set<std::string> keys;  // The keys so far, with dashes.
  std::string twice;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event != json::parse_event_t::key || depth != 1) return true;
    const std::string key = absl::StrReplaceAll(parsed.get<std::string>(), {{"_", "-"}});
    if (!keys.insert(key).second) twice = key;
    return true;
  };
  json config;
  try {
    config = json::parse(text.begin(), text.end(), watch, true, /*ignore_comments=*/true);
  } catch (const json::exception& error) {
    return Wrong(file, "", SyntaxError(error.what()));
  }
  if (!config.is_object())
    return Wrong(file, "", "expected one JSON object, such as {\"nnodes\": 2}");
  if (!twice.empty()) return Wrong(file, twice, "is there twice; leave one of them out");
  Config found;
  for (const auto& [key, value] : config.items()) {
    if (key == kCommandKey) {
      HLAUNCH_ASSIGN_OR_RETURN(found.command, CommandWords(value, file));
      continue;
    }
    const OptionRow* row = OptionOfKey(key);
    if (row == nullptr || !row->in_config()) return UnknownKey(file, key);
    // For an option that may be repeated, a list has one element for each value.
    std::vector<const json*> parts = {&value};
    if (row->repeats && value.is_array()) {
      parts.clear();
      for (const json& part : value) parts.push_back(&part);
    }
    for (const json* part : parts) {
      HLAUNCH_ASSIGN_OR_RETURN(std::string typed, ValueText(*row, *part, file, key));
      found.values.push_back(
          {row, std::move(typed), OptionSource::kConfigFile, absl::StrCat(file, ": ", key)});
    }
  }
  return found;
}

absl::StatusOr<Config> ReadConfig(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxConfigBytes);
  if (text.ok()) return ParseConfig(*text, path);
  if (absl::IsResourceExhausted(text.status())) {
    return Wrong(path, "", "is larger than a mebibyte");
  }
  return InvalidArgumentError(
      absl::StrCat("cannot read the configuration ", path, ": ", text.status().message()));
}

}  // namespace hlaunch
