// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/call/call.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

struct TypeFacts {
  const char* name;
  size_t size;
};
constexpr TypeFacts kTypes[kDataTypes] = {
    {"byte", 1}, {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8},
    {"int8", 1}, {"uint8", 1},   {"int32", 4},    {"int64", 8},   {"bool", 1}};
constexpr const char* kOps[kReduceOps] = {"no op", "SUM",  "AVG", "PRODUCT", "MIN",
                                          "MAX",   "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
constexpr const char* kVerbs[] = {"send",           "barrier",    "broadcast", "all_reduce",
                                  "reduce",         "all_gather", "gather",    "scatter",
                                  "reduce_scatter", "all_to_all"};

// The value may come from another process, so it may be out of range.
template <size_t n>
absl::string_view Lookup(const char* const (&names)[n], uint8_t value) {
  return value < n ? names[value] : "unknown";
}

bool HasRoot(Verb verb) {
  return verb == Verb::kBroadcast || verb == Verb::kReduce || verb == Verb::kGather ||
         verb == Verb::kScatter;
}

}  // namespace

size_t ElementSize(DataType type) { return kTypes[static_cast<uint8_t>(type) % kDataTypes].size; }

absl::string_view Name(DataType type) {
  const auto value = static_cast<uint8_t>(type);
  return value < kDataTypes ? kTypes[value].name : "unknown";
}

absl::string_view Name(ReduceOp op) { return Lookup(kOps, static_cast<uint8_t>(op)); }

absl::string_view Name(Verb verb) { return Lookup(kVerbs, static_cast<uint8_t>(verb)); }

std::string Text(const Call& call) {
  std::vector<std::string> arguments;
  if (call.count > 0) arguments.push_back(absl::StrCat(call.count, " x ", Name(call.type)));
  if (call.op != ReduceOp::kNone) arguments.emplace_back(Name(call.op));
  if (HasRoot(call.verb)) arguments.push_back(absl::StrCat("root ", call.root));
  return absl::StrCat(Name(call.verb), "(", absl::StrJoin(arguments, ", "), ")");
}

}  // namespace hlaunch
