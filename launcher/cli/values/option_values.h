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
#include "agent/workers/worker/line_rule.h"
#include "launcher/text/endpoint.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Parsers for the values in options and configuration files. All are pure. Their only error is
// InvalidArgument, with a message that says what is accepted and does not repeat `text`.

// A time such as 30, 1.5, 30s, 5m, 2h or 1d, see ReadSeconds, of at least `min_seconds`.
absl::StatusOr<Duration> ParseTimeout(absl::string_view text, double min_seconds);

// torchrun's choice of streams: "3" for all local ranks, or "0:1,12:3", which gives no stream to
// the local ranks that it does not name.
absl::StatusOr<StreamChoice> ParseStreamChoice(absl::string_view text);

// Local ranks such as "0,2". Empty text means no rank.
absl::StatusOr<std::set<int>> ParseLocalRanks(absl::string_view text);

// Words separated by commas. Two commas are one comma inside a word. Drops empty words; torchrun
// takes an empty word as a filter that every line matches.
std::vector<std::string> ParseFilters(absl::string_view text);

// SIZE[:KEEP], such as 500K, 100M:5 or 1G. K, M and G stand for 2^10, 2^20 and 2^30.
absl::StatusOr<Rotation> ParseRotation(absl::string_view text);

// A size such as 65536, 64K, 16M or 1G, from `min` to `max` bytes.
absl::StatusOr<size_t> ParseSize(absl::string_view text, int64_t min, int64_t max);

// Signals such as "SIGTERM,SIGINT": returns each of them once, in the given order. SIG may be left
// out.
absl::StatusOr<std::vector<int>> ParseSignals(absl::string_view text);

// Words separated by commas, each of which is in `known`.
absl::StatusOr<std::set<std::string>> ParseSet(absl::string_view text,
                                               const std::vector<std::string>& known);

// [fail:|warn:|metric:]PATTERN. Without the first word the rule is a warning.
absl::StatusOr<LineRule> ParseLineRule(absl::string_view text);

// S:PATTERN, such as 300:step or 5m:^epoch.
absl::StatusOr<SilenceRule> ParseSilenceRule(absl::string_view text);

// PORT, which means loopback, or ADDRESS:PORT with an IP literal. Port 0 takes a free port.
absl::StatusOr<Endpoint> ParseMetricsPlace(absl::string_view text);

}  // namespace hlaunch
