// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/accusation.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxRanks = 16;
constexpr size_t kMaxDidBytes = 200;

// The words that follow the rank's name, in messages of hlaunch's collectives and of c10d.
constexpr absl::string_view kDeeds[] = {
    "left the group before ", "went away",       "has not come to group ",
    "did not come within ",   "failed to pass ",
};

// Takes "3" off the front of `text`.
bool ConsumeNumber(absl::string_view* text, Rank* rank) {
  size_t end = 0;
  while (end < text->size() && absl::ascii_isdigit((*text)[end])) ++end;
  if (!absl::SimpleAtoi(text->substr(0, end), rank)) return false;
  text->remove_prefix(end);
  return true;
}

// Takes "rank 3 on node1" or "ranks 2, 3" off the front of `text`.
bool ConsumeName(absl::string_view* text, Accusation* accusation) {
  text->remove_prefix(1);  // The "r" or "R".
  if (!absl::ConsumePrefix(text, "ank")) return false;
  absl::ConsumePrefix(text, "s");
  if (!absl::ConsumePrefix(text, " ")) return false;
  do {
    Rank rank = 0;
    if (accusation->ranks.size() == kMaxRanks || !ConsumeNumber(text, &rank)) return false;
    accusation->ranks.push_back(rank);
  } while (absl::ConsumePrefix(text, ", "));
  if (absl::ConsumePrefix(text, " on ")) {
    const size_t end = std::min(text->find(' '), text->size());
    accusation->host = std::string(absl::StripSuffix(text->substr(0, end), ":"));
    text->remove_prefix(end);
  }
  return absl::ConsumePrefix(text, " ");
}

std::string Line(absl::string_view text) {
  std::string line(text.substr(0, std::min(text.find('\n'), kMaxDidBytes)));
  std::replace_if(line.begin(), line.end(), absl::ascii_iscntrl, '?');
  return line;
}

// "rank 0 waited in vain for rank 1 on node1 in barrier #2": `text` begins after "for ".
std::optional<Accusation> AwaitedIn(absl::string_view text) {
  Accusation accusation;
  if (text.empty() || !ConsumeName(&text, &accusation)) return std::nullopt;
  if (!absl::ConsumePrefix(&text, "in ")) return std::nullopt;
  accusation.did = absl::StrCat("did not come to ", Line(text));
  return accusation;
}

// "hlaunch.Cancelled: rank 2 on node1: no more data": `text` begins after "Cancelled: ".
std::optional<Accusation> CancellerIn(absl::string_view text) {
  Accusation accusation;
  if (text.empty() || !ConsumeName(&text, &accusation)) return std::nullopt;
  accusation.did = absl::StrCat("cancelled the group: ", Line(text));
  return accusation;
}

// `text` begins with the name of a rank that did one of kDeeds.
std::optional<Accusation> DeedIn(absl::string_view text) {
  Accusation accusation;
  if (!ConsumeName(&text, &accusation)) return std::nullopt;
  const bool known = std::any_of(std::begin(kDeeds), std::end(kDeeds), [&](absl::string_view deed) {
    return absl::StartsWith(text, deed);
  });
  if (!known) return std::nullopt;
  accusation.did = Line(text);
  return accusation;
}

}  // namespace

std::optional<Accusation> AccusationIn(absl::string_view words) {
  constexpr absl::string_view kAwaited = "waited in vain for ";
  if (const size_t at = words.find(kAwaited); at != words.npos) {
    return AwaitedIn(words.substr(at + kAwaited.size()));
  }
  constexpr absl::string_view kCancelled = "Cancelled: ";
  if (const size_t at = words.find(kCancelled); at != words.npos) {
    return CancellerIn(words.substr(at + kCancelled.size()));
  }
  for (size_t at = words.find_first_of("rR"); at != words.npos;
       at = words.find_first_of("rR", at + 1)) {
    if (at > 0 && absl::ascii_isalnum(words[at - 1])) continue;  // It is inside another word.
    if (std::optional<Accusation> accusation = DeedIn(words.substr(at))) return accusation;
  }
  return std::nullopt;
}

bool Accuses(const Accusation& accusation, const WorkerFailure& failure) {
  return (accusation.host.empty() || accusation.host == failure.host) &&
         std::find(accusation.ranks.begin(), accusation.ranks.end(), failure.rank) !=
             accusation.ranks.end();
}

}  // namespace hlaunch
