// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/placement.h"

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/cli/mpirun/take_words.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

struct BoundTo {
  const char* object;  // mpirun's object,
  const char* bind;    // and the value of --bind for it.
};
// Caches below the third belong to a core.
constexpr BoundTo kBoundTo[] = {
    {"none", "none"},      {"core", "core"},    {"numa", "numa"}, {"socket", "socket"},
    {"package", "socket"}, {"l3cache", "l3"},   {"l3", "l3"},     {"l2cache", "core"},
    {"l2", "core"},        {"l1cache", "core"}, {"l1", "core"},   {"board", "none"},
    {"machine", "none"},   {"node", "none"},
};

constexpr const char* kObjects[] = {"slot",    "core",    "numa",    "socket",   "package",
                                    "l3cache", "l2cache", "l1cache", "hwthread", "board"};

bool IsObject(string_view word) {
  return std::any_of(std::begin(kObjects), std::end(kObjects),
                     [word](const char* object) { return word == object; });
}

bool IsNumber(string_view text) {
  int number = 0;
  return ParseInt(text, 1, INT_MAX, &number);
}

std::string Quoted(string_view text) { return absl::StrCat("'", PrintableLine(text), "'"); }

// Takes a modifier, which follows a colon in a binding or a mapping.
absl::Status TakeModifier(string_view modifier, MpirunLine& line) {
  const std::string word = absl::AsciiStrToLower(modifier);
  if (absl::StartsWith(word, "pe=")) {
    line.cores = word.substr(3);
    if (IsNumber(line.cores)) return absl::OkStatus();
    return InvalidArgumentError(absl::StrCat(Quoted(modifier), ": expected PE=N, cores of a rank"));
  }
  if (word == "report") {
    return TakeReportBindings({}, line);
  }
  if (word == "oversubscribe" || word == "nooversubscribe") {
    line.oversubscribes = word == "oversubscribe";
    return absl::OkStatus();
  }
  // These change nothing.
  for (const char* known : {"overload", "overload-allowed", "no-overload", "if-supported",
                            "corecpus", "hwtcpus", "inherit"}) {
    if (word == known) return absl::OkStatus();
  }
  return InvalidArgumentError(absl::StrCat(
      Quoted(modifier), ": hlaunch has nothing of the kind; leave it out (PE=N and REPORT work)"));
}

absl::Status TakeModifiers(string_view text, MpirunLine& line) {
  for (const string_view modifier : absl::StrSplit(text, absl::ByAnyChar(":,"), absl::SkipEmpty()))
    HLAUNCH_RETURN_IF_ERROR(TakeModifier(modifier, line));
  return absl::OkStatus();
}

// The name of `object` in --nproc-per-node and --bind; empty if ranks cannot be counted by it.
string_view CountedObject(string_view object) {
  constexpr std::pair<string_view, string_view> kCounted[] = {{"socket", "socket"},
                                                              {"package", "socket"},
                                                              {"numa", "numa"},
                                                              {"core", "core"},
                                                              {"l3cache", "l3"}};
  for (const auto& [theirs, ours] : kCounted) {
    if (object == theirs) return ours;
  }
  return "";
}

// Takes ppr:N:OBJECT, which asks for N ranks per object.
absl::Status TakeRanksPer(string_view text, MpirunLine& line) {
  const std::vector<string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 2));
  if (parts.size() < 2 || !IsNumber(parts[0])) {
    return InvalidArgumentError("expected ppr:N:OBJECT, such as ppr:4:node or ppr:1:numa");
  }
  const string_view object = CountedObject(parts[1]);
  if (parts[1] != "node" && object.empty()) {
    return InvalidArgumentError(absl::StrCat("ppr:N:", PrintableLine(parts[1]),
                                             ": expected node, socket, numa, l3cache or core"));
  }
  line.per_node = absl::StrCat(parts[0], object.empty() ? "" : ":", object);
  line.per_object = std::string(object);
  line.goes_round = false;
  return parts.size() == 3 ? TakeModifiers(parts[2], line) : absl::OkStatus();
}

}  // namespace

absl::Status TakeBindTo(absl::Span<const std::string> values, MpirunLine& line) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(absl::AsciiStrToLower(values[0]), absl::MaxSplits(':', 1));
  const bool counted = IsNumber(parts.second);  // As in Hydra's core:2.
  for (const BoundTo& each : kBoundTo) {
    if (parts.first != each.object) continue;
    line.bind = each.bind;
    if (!counted) return TakeModifiers(parts.second, line);
    if (line.bind == "core") line.cores = parts.second;
    if (line.bind == "core" || parts.second == "1") return absl::OkStatus();
    return InvalidArgumentError(
        absl::StrCat(Quoted(values[0]), ": only cores are counted; write core:N"));
  }
  if (parts.first == "hwthread") {
    return InvalidArgumentError("hwthread: a core is never split; write core");
  }
  return InvalidArgumentError(
      absl::StrCat(Quoted(values[0]), ": expected none, core, l3cache, numa or socket"));
}

absl::Status TakeMapBy(absl::Span<const std::string> values, MpirunLine& line) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(values[0], absl::MaxSplits(':', 1));
  const std::string object = absl::AsciiStrToLower(parts.first);
  line.says_map = true;
  if (object == "ppr") return TakeRanksPer(parts.second, line);
  if (object.empty() || IsObject(object)) return TakeModifiers(parts.second, line);
  if (object == "node") {
    line.by_node = "--map-by node";
    line.maps_by_node = true;
    return TakeModifiers(parts.second, line);
  }
  return InvalidArgumentError(absl::StrCat(
      Quoted(values[0]), ": expected slot, core, l3cache, numa, socket or ppr:N:node"));
}

absl::Status TakeRankBy(absl::Span<const std::string> values, MpirunLine& line) {
  const std::string object = absl::AsciiStrToLower(values[0]);
  if (object == "node" && line.by_node.empty()) line.by_node = "--rank-by node";
  if (object == "node" || object == "fill" || IsObject(object)) return absl::OkStatus();
  return InvalidArgumentError(absl::StrCat(
      Quoted(values[0]), ": ranks are numbered host by host; write slot, or leave it out"));
}

}  // namespace hlaunch
