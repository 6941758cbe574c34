// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/compare_places.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxCodeBytes = 60;
constexpr size_t kRanksNamed = 4;
constexpr absl::string_view kForeign[] = {"/site-packages/", "/dist-packages/", "/lib/python3",
                                          "<frozen ", "/python/hlaunch/"};

// Returns "t.py:37" for "  File "/home/me/t.py", line 37, in train"; empty if that is no frame of
// the user's code.
std::string OwnPlace(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "  File \"")) return "";
  const size_t quote = line.find('"');
  if (quote == line.npos || !IsOwnCode(line.substr(0, quote))) return "";
  absl::string_view rest = line.substr(quote);
  if (!absl::ConsumePrefix(&rest, "\", line ")) return "";
  const absl::string_view file = line.substr(0, quote);
  const size_t slash = file.rfind('/');
  return absl::StrCat(slash == file.npos ? file : file.substr(slash + 1), ":",
                      rest.substr(0, rest.find(',')));
}

// Returns the last place in the user's own code, with the line of code: "t.py:37 `dist.recv(x)`".
std::string PlaceOf(absl::string_view traceback) {
  std::string place, code;
  const std::vector<absl::string_view> lines = absl::StrSplit(traceback, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string own = OwnPlace(lines[i]);
    if (own.empty()) continue;
    place = std::move(own);
    code.clear();
    if (i + 1 < lines.size() && absl::StartsWith(lines[i + 1], "    ")) {
      code = std::string(absl::StripAsciiWhitespace(lines[i + 1]).substr(0, kMaxCodeBytes));
    }
  }
  std::replace_if(code.begin(), code.end(), absl::ascii_iscntrl, '?');
  return code.empty() ? place : absl::StrCat(place, " `", code, "`");
}

using Group = std::vector<size_t>;  // Failures at the same place.

// "rank 3", "ranks 0, 2 and 5 more".
std::string RanksOf(const std::vector<WorkerFailure>& failures, const Group& group) {
  std::vector<Rank> ranks;
  for (const size_t i : group) ranks.push_back(failures[i].rank);
  std::sort(ranks.begin(), ranks.end());
  std::string names = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kRanksNamed); ++i) {
    absl::StrAppend(&names, i == 0 ? "" : ", ", ranks[i]);
  }
  if (ranks.size() > kRanksNamed) {
    absl::StrAppend(&names, " and ", ranks.size() - kRanksNamed, " more");
  }
  return names;
}

bool IsSmaller(const std::pair<const std::string, Group>& a,
               const std::pair<const std::string, Group>& b) {
  return a.second.size() < b.second.size();
}

}  // namespace

bool IsOwnCode(absl::string_view frame) {
  return std::none_of(std::begin(kForeign), std::end(kForeign),
                      [&](absl::string_view word) { return absl::StrContains(frame, word); });
}

std::optional<DifferentPlaces> ComparePlaces(const std::vector<WorkerFailure>& failures) {
  std::map<std::string, Group> groups;
  for (size_t i = 0; i < failures.size(); ++i) {
    const std::string place = PlaceOf(failures[i].traceback);
    if (place.empty()) return std::nullopt;
    groups[place].push_back(i);
  }
  if (groups.size() < 2) return std::nullopt;
  const auto fewest = std::min_element(groups.begin(), groups.end(), IsSmaller);
  Group others = fewest->second;
  const size_t index = others.front();
  others.erase(others.begin());
  std::string did = absl::StrCat("waited in ", fewest->first);
  if (!others.empty()) absl::StrAppend(&did, " with ", RanksOf(failures, others));
  for (auto it = groups.begin(); it != groups.end(); ++it) {
    if (it != fewest) absl::StrAppend(&did, ", ", RanksOf(failures, it->second), " in ", it->first);
  }
  return DifferentPlaces{
      index, absl::StrCat(did, ": all ranks waited in vain, they called different collectives")};
}

}  // namespace hlaunch
