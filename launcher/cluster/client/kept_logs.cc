// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/kept_logs.h"

#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/client/follow_job_of_cluster.h"
#include "launcher/cluster/client/node_lines.h"
#include "launcher/remote/detached/line_printer.h"
#include "launcher/text/printable.h"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

// The log of one node up to now. Belongs to one thread.
class KeptLog {
 public:
  KeptLog(LocalClient& client, uint64_t job, int node_rank, int tail) : client_(client) {
    question_.job = job;
    question_.node_rank = node_rank;
    question_.tail = tail;
  }

  // Returns the next line, or nothing at the end of the log. `trouble` tells if the log could not
  // be read.
  std::optional<LogLine> Next() {
    while (lines_.empty() && !over_) Ask();
    if (lines_.empty()) return std::nullopt;
    LogLine line = std::move(lines_.front());
    lines_.pop_front();
    if (line.time.empty()) line.time = time_;  // It belongs right after the line before it.
    time_ = line.time;
    return line;
  }
  const absl::Status& trouble() const { return trouble_; }

 private:
  void Ask() {
    const absl::StatusOr<LogAnswer> answer = AskLog(client_, question_);
    trouble_ = answer.status();
    // If the position did not change, the same text would come again.
    over_ = !answer.ok() || answer->ended || answer->text.empty() ||
            answer->position == question_.position;
    if (answer.ok()) {
      Keep(lines_of_node_.Take(answer->text));
      question_.position = answer->position;
      question_.tail = -1;
    }
    if (over_) Keep(lines_of_node_.Rest());
  }
  void Keep(std::vector<LogLine> lines) {
    for (LogLine& line : lines) lines_.push_back(std::move(line));
  }

  LocalClient& client_;
  LogQuestion question_;
  NodeLines lines_of_node_;
  std::deque<LogLine> lines_;
  std::string time_;
  bool over_ = false;
  absl::Status trouble_;
};

// Merges the lines of several logs by their times. Belongs to one thread.
class MergedLogs {
 public:
  explicit MergedLogs(std::vector<KeptLog> logs) : logs_(std::move(logs)) {
    for (size_t i = 0; i < logs_.size(); ++i) Pull(i);
  }

  std::optional<LogLine> Next() {
    if (first_.empty()) return std::nullopt;
    Front front = first_.top();
    first_.pop();
    Pull(front.log);
    return std::move(front.line);
  }
  const std::vector<KeptLog>& logs() const { return logs_; }

 private:
  struct Front {
    LogLine line;
    size_t log = 0;
    bool operator>(const Front& other) const {
      return std::tie(line.time, log) > std::tie(other.line.time, other.log);
    }
  };

  void Pull(size_t log) {
    if (std::optional<LogLine> line = logs_[log].Next()) first_.push({*std::move(line), log});
  }

  std::vector<KeptLog> logs_;
  std::priority_queue<Front, std::vector<Front>, std::greater<>> first_;
};

void ShowLines(MergedLogs& merged, const DetachedOptions& options, LinePrinter& printer) {
  std::deque<LogLine> last;
  while (std::optional<LogLine> line = merged.Next()) {
    if (!options.tail.has_value()) {
      printer.Show(*line);
      continue;
    }
    last.push_back(*std::move(line));
    if (last.size() > *options.tail) last.pop_front();
  }
  for (const LogLine& line : last) printer.Show(line);
  std::fflush(stdout);
}

}  // namespace

absl::StatusOr<size_t> ShowKeptLogs(LocalClient& client, const JobView& job,
                                    const DetachedOptions& options, const std::string& since) {
  constexpr size_t kMostTail = 1'000'000;
  const int tail =
      options.tail.has_value() && *options.tail < kMostTail ? static_cast<int>(*options.tail) : -1;
  std::vector<KeptLog> logs;
  std::vector<const PartView*> parts;
  for (const PartView& part : job.parts) {
    if (!IsNode(part, options.node)) continue;
    logs.emplace_back(client, job.number, part.node_rank, tail);
    parts.push_back(&part);
  }
  MergedLogs merged(std::move(logs));
  LinePrinter printer(options, since, /*both_streams=*/false);
  ShowLines(merged, options, printer);
  absl::Status first;
  size_t failed = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const absl::Status& trouble = merged.logs()[i].trouble();
    if (trouble.ok()) continue;
    LogWarning(absl::StrCat("the log of node ", parts[i]->node_rank, " on ",
                            PrintableLine(parts[i]->host),
                            " cannot be read: ", PrintableLine(trouble.message())));
    first.Update(trouble);
    ++failed;
  }
  if (failed == parts.size() && !first.ok()) return first;
  return failed;
}

}  // namespace hlaunch
