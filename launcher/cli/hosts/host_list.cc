// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/hosts/host_list.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/environment/scheduler/hostlist.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "proto/base/user_files.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr int kMaxSlots = 100'000;
// Behind a colon, a larger number is more likely a port than a number of workers.
constexpr int kMostBehindColon = 1024;
constexpr size_t kMaxFile = 4 << 20;

absl::Status Wrong(string_view word, string_view why) {
  return InvalidArgumentError(absl::StrCat("'", PrintableLine(word), "': ", why));
}

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

// A word that a starter gets must not look like an option.
bool IsName(string_view name, string_view more) {
  return !name.empty() && name[0] != '-' && name.size() <= 255 &&
         std::all_of(name.begin(), name.end(), [more](char c) {
           return IsNameCharacter(c) || more.find(c) != string_view::npos;
         });
}

// Divides at commas and blanks that are not in brackets.
std::vector<string_view> SplitList(string_view text) {
  std::vector<string_view> items;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i == text.size() ? ',' : text[i];
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (i < text.size() && (depth > 0 || (c != ',' && !absl::ascii_isspace(c)))) continue;
    if (i > begin) items.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return items;
}

struct Item {
  string_view user;
  string_view names;
  std::optional<int> slots;
  bool literal = false;  // An IPv6 address; its brackets hold no list.
};

absl::StatusOr<Item> ParseItem(string_view word) {
  Item item;
  string_view rest = word;
  if (const size_t at = rest.find('@'); at != string_view::npos) {
    item.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    if (!IsName(item.user, "\\+")) return Wrong(word, "expected USER@HOST");
  }
  const size_t close = rest.rfind(']');
  const bool bracketed = !rest.empty() && rest[0] == '[' && close != string_view::npos &&
                         absl::StrContains(rest.substr(0, close), ":");
  if (bracketed) {
    item.literal = true;
    item.names = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (rest.empty()) return item;
    if (!absl::ConsumePrefix(&rest, ":")) return Wrong(word, "expected [ADDRESS]:N");
  } else {
    const size_t colon = rest.find(':');
    if (colon == string_view::npos || rest.find(':', colon + 1) != string_view::npos) {
      item.literal = colon != string_view::npos;
      item.names = rest;
      return item;
    }
    item.names = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
  }
  int slots = 0;
  if (!ParseInt(rest, 1, kMaxSlots, &slots)) {
    return Wrong(word,
                 absl::StrCat("expected behind the colon how many workers, 1 to ", kMaxSlots));
  }
  if (slots > kMostBehindColon) {
    return Wrong(word, absl::StrCat(slots, " workers on one host? If it is ssh's port, write Port ",
                                    slots, " in ~/.ssh/config, or HLAUNCH_SSH_ARGS=-p", slots,
                                    "; so many workers, --nproc-per-node or slots= of a hostfile"));
  }
  item.slots = slots;
  return item;
}

absl::Status AddItem(string_view word, std::optional<int> slots, std::vector<TargetHost>& hosts) {
  HLAUNCH_ASSIGN_OR_RETURN(const Item item, ParseItem(word));
  if (!slots.has_value()) slots = item.slots;
  if (item.literal) {
    if (!IsName(item.names, ":%")) return Wrong(word, "expected a host's name or address");
    hosts.push_back({std::string(item.user), std::string(item.names), slots});
    return absl::OkStatus();
  }
  const auto names = ExpandHostlist(item.names, kMaxHosts);
  if (!names.ok()) return names.status();
  if (names->empty()) return Wrong(word, "expected a host's name or address");
  for (const std::string& name : *names) {
    if (!IsName(name, "")) return Wrong(word, "expected a host's name or address");
    if (hosts.size() >= kMaxHosts) return Wrong(word, absl::StrCat("more than ", kMaxHosts));
    hosts.push_back({std::string(item.user), name, slots});
  }
  return absl::OkStatus();
}

// Merges the entries of a host that is listed twice.
std::vector<TargetHost> Merge(const std::vector<TargetHost>& hosts) {
  std::vector<TargetHost> merged;
  absl::flat_hash_map<std::string, size_t> places;
  for (const TargetHost& host : hosts) {
    const auto [place, is_new] = places.try_emplace(host.Login(), merged.size());
    if (is_new) {
      merged.push_back(host);
      continue;
    }
    std::optional<int>& slots = merged[place->second].slots;
    slots = std::min(kMaxSlots, slots.value_or(1) + host.slots.value_or(1));
  }
  return merged;
}

// The words of a hostfile's line without its comment. Open MPI allows blanks around '='.
std::vector<std::string> WordsOfLine(string_view line) {
  std::vector<std::string> words;
  for (const string_view piece :
       absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
    const bool continues =
        !words.empty() && (absl::EndsWith(words.back(), "=") || absl::StartsWith(piece, "="));
    if (continues) {
      absl::StrAppend(&words.back(), piece);
    } else {
      words.emplace_back(piece);
    }
  }
  return words;
}

bool IsOneOf(string_view name, std::initializer_list<string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// One line of a hostfile without its comment, with the names that Open MPI has for a number.
absl::Status ParseLine(string_view line, std::vector<TargetHost>& hosts) {
  const std::vector<std::string> words = WordsOfLine(line);
  std::optional<int> slots, most;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<string_view, string_view> pair =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    int number = 0;
    const bool counts = IsOneOf(pair.first, {"slots", "count", "cpu"});
    if (!counts && !IsOneOf(pair.first, {"max_slots", "max-slots", "slots-max", "slots_max"})) {
      return Wrong(words[i], "expected slots=N or max_slots=N");
    }
    if (!ParseInt(pair.second, 1, kMaxSlots, &number)) {
      return Wrong(words[i], absl::StrCat("expected a number from 1 to ", kMaxSlots));
    }
    (counts ? slots : most) = number;
  }
  if (!slots.has_value()) slots = most;
  for (const string_view item : SplitList(words.front())) {
    HLAUNCH_RETURN_IF_ERROR(AddItem(item, slots, hosts));
  }
  return absl::OkStatus();
}

bool Lists(const std::vector<TargetHost>& list, const TargetHost& host) {
  return std::any_of(list.begin(), list.end(), [&host](const TargetHost& each) {
    return each.name == host.name && (each.user.empty() || each.user == host.user);
  });
}

// Keeps the hosts that `text` names, or, unless `keep`, all others.
absl::Status Select(string_view option, const std::string& text, bool keep,
                    std::vector<TargetHost>& hosts) {
  if (text.empty()) return absl::OkStatus();
  const auto named = ParseHosts(text);
  if (!named.ok()) return InvalidArgumentError(absl::StrCat(option, " ", named.status().message()));
  for (const TargetHost& each : *named) {
    if (each.slots.has_value()) {
      return InvalidArgumentError(absl::StrCat(option, " ", each.Login(), ":", *each.slots,
                                               ": expected names; how many workers a host has says "
                                               "the list of hosts"));
    }
    const bool known = std::any_of(hosts.begin(), hosts.end(),
                                   [&each](const TargetHost& host) { return Lists({each}, host); });
    if (!known) {
      return InvalidArgumentError(
          absl::StrCat(option, " names ", each.Login(), ", which is not in the list of hosts"));
    }
  }
  hosts.erase(std::remove_if(hosts.begin(), hosts.end(),
                             [&](const TargetHost& host) { return Lists(*named, host) != keep; }),
              hosts.end());
  return absl::OkStatus();
}

}  // namespace

std::string TargetHost::Login() const {
  return user.empty() ? name : absl::StrCat(user, "@", name);
}

absl::StatusOr<std::vector<TargetHost>> ParseHosts(string_view text) {
  std::vector<TargetHost> hosts;
  for (const string_view word : SplitList(text)) {
    HLAUNCH_RETURN_IF_ERROR(AddItem(word, std::nullopt, hosts));
  }
  if (hosts.empty()) return InvalidArgumentError("expected hosts, as in a,b:4,c[01-16]");
  return Merge(hosts);
}

absl::StatusOr<std::vector<TargetHost>> ParseHostfile(string_view text, string_view file) {
  std::vector<TargetHost> hosts;
  int number = 0;
  for (const string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const string_view line = absl::StripAsciiWhitespace(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const absl::Status status = ParseLine(line, hosts);
    if (!status.ok()) {
      return InvalidArgumentError(
          absl::StrCat(PrintableLine(file), ":", number, ": ", status.message()));
    }
  }
  if (hosts.empty()) {
    return InvalidArgumentError(absl::StrCat(PrintableLine(file), " names no host"));
  }
  return Merge(hosts);
}

absl::StatusOr<std::vector<TargetHost>> FindHosts(const HostWish& wish, const ReadTextFn& read) {
  std::vector<TargetHost> hosts;
  if (!wish.hostfile.empty() && !wish.hosts.empty()) {
    return InvalidArgumentError(
        "--hosts and --hostfile: leave one of them out; --include takes some hosts of a file");
  }
  if (!wish.hostfile.empty()) {
    const absl::StatusOr<std::string> text = read(wish.hostfile);
    if (!text.ok()) {
      return InvalidArgumentError(absl::StrCat("--hostfile ", text.status().message()));
    }
    HLAUNCH_ASSIGN_OR_RETURN(hosts, ParseHostfile(*text, wish.hostfile));
  } else {
    auto parsed = ParseHosts(wish.hosts);
    if (!parsed.ok()) {
      return InvalidArgumentError(absl::StrCat("--hosts ", parsed.status().message()));
    }
    hosts = *std::move(parsed);
  }
  int number = 0;
  for (TargetHost& host : hosts) host.number = number++;
  HLAUNCH_RETURN_IF_ERROR(Select("--include", wish.include, true, hosts));
  HLAUNCH_RETURN_IF_ERROR(Select("--exclude", wish.exclude, false, hosts));
  if (hosts.empty()) return InvalidArgumentError("--exclude leaves no host");
  return hosts;
}

absl::Status DivideRanks(int ranks, std::vector<TargetHost>& hosts) {
  HostWish wish;
  wish.ranks = ranks;
  return DivideRanks(wish, hosts);
}

absl::Status DivideRanks(const HostWish& wish, std::vector<TargetHost>& hosts) {
  const int ranks = wish.ranks;
  for (TargetHost& host : hosts) {
    if (wish.ranks_of_each > 0) host.slots = wish.ranks_of_each;
    if (!wish.ranks_of_object.empty()) host.slots.reset();
  }
  const bool counted = std::any_of(hosts.begin(), hosts.end(),
                                   [](const TargetHost& host) { return host.slots.has_value(); });
  const int count = static_cast<int>(hosts.size());
  int left = ranks, index = 0;
  for (TargetHost& host : hosts) {
    const int even = ranks / count + (index++ < ranks % count ? 1 : 0);
    host.slots = std::min(left, counted ? host.slots.value_or(1) : even);
    left -= *host.slots;
  }
  if (left > 0) {
    return InvalidArgumentError(absl::StrCat(
        wish.ranks_word, " ", ranks, ": the hosts have room for ", ranks - left,
        ranks - left == 1 ? " worker" : " workers",
        wish.ranks_of_each > 0
            ? absl::StrCat(", ", count, count == 1 ? " host" : " hosts", " with --nproc-per-node ",
                           wish.ranks_of_each,
                           " (-N) each; name more hosts, or leave one of the two numbers out")
            : "; write more behind a host's colon (HOST:N), or leave all numbers out for as many "
              "on each"));
  }
  hosts.erase(std::remove_if(hosts.begin(), hosts.end(),
                             [](const TargetHost& host) { return host.slots == 0; }),
              hosts.end());
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxFile);
  if (text.ok()) return text;
  return InvalidArgumentError(
      absl::IsResourceExhausted(text.status())
          ? absl::StrCat(PrintableLine(path), " is larger than 4 MiB")
          : absl::StrCat(PrintableLine(path), ": ", text.status().message()));
}

}  // namespace hlaunch
