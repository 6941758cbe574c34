// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/output/log_file.h"
#include "agent/output/log_spec.h"
#include "agent/worker/line_rule.h"
#include "launcher/words/endpoint.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Readers of what options and configuration files hold. All are pure. Their only error is
// InvalidArgument, with a message that says what is accepted and does not repeat `text`.

// 30, 1.5, 30s, 5m or 2h, from `min_seconds` on.
absl::StatusOr<Duration> ParseTimeout(absl::string_view text, double min_seconds);

// torchrun's choice of streams: "3" for all local ranks, or "0:1,12:3" with none for the others.
absl::StatusOr<StreamChoice> ParseStreamChoice(absl::string_view text);

// "0,2"; empty is none.
absl::StatusOr<std::set<int>> ParseLocalRanks(absl::string_view text);

// Words between commas; two commas are one that belongs to a word. Empty words are left out,
// which torchrun takes for a filter that every line matches.
std::vector<std::string> ParseFilters(absl::string_view text);

// SIZE[:KEEP]: 500K, 100M:5, 1G; K, M and G are 1024, its square and its cube.
absl::StatusOr<Rotation> ParseRotation(absl::string_view text);

// 65536, 64K, 16M or 1G, from `min` to `max` bytes.
absl::StatusOr<size_t> ParseSize(absl::string_view text, int64_t min, int64_t max);

// "SIGTERM,SIGINT", each once and in this order; SIG may be left out.
absl::StatusOr<std::vector<int>> ParseSignals(absl::string_view text);

// Words between commas, each one of `known`.
absl::StatusOr<std::set<std::string>> ParseSet(absl::string_view text,
                                               const std::vector<std::string>& known);

// [fail:|warn:|metric:]PATTERN, without the word a warning.
absl::StatusOr<LineRule> ParseLineRule(absl::string_view text);

// S:PATTERN, such as 300:step or 5m:^epoch.
absl::StatusOr<SilenceRule> ParseSilenceRule(absl::string_view text);

// PORT, on loopback, or ADDRESS:PORT with a literal; port 0 takes a free one.
absl::StatusOr<Endpoint> ParseMetricsPlace(absl::string_view text);

}  // namespace hlaunch
