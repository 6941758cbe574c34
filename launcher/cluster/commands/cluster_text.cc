// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/cluster_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "launcher/report/status/time_words.h"
#include "launcher/text/printable.h"
#include "launcher/text/text_table.h"
#include "proto/base/terminal_text.h"

namespace hlaunch {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kHostsInLine = 8;

std::string Short(absl::string_view text, size_t most) {
  return CutToColumns(PrintableLine(text), most, "…");
}

// Breaks `text` into lines that fit, each behind `indent`.
std::string Wrapped(absl::string_view text, absl::string_view indent) {
  std::string out, line;
  const std::string whole = PrintableLine(text);
  absl::string_view rest = whole;
  while (!rest.empty()) {
    const size_t end = rest.find(' ');
    const absl::string_view word = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    if (!line.empty() && indent.size() + ColumnsOf(line) + 1 + ColumnsOf(word) > kColumns) {
      absl::StrAppend(&out, indent, std::exchange(line, ""), "\n");
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return line.empty() ? out : absl::StrCat(out, indent, line, "\n");
}

std::string AgeOf(const JobView& job, int64_t now_ms) {
  if (job.submitted_ms == 0) return "-";
  const int64_t until = job.ended_ms > 0 ? job.ended_ms : now_ms;
  return SpanWords(std::max<int64_t>(until - job.submitted_ms, 0));
}

std::string GoodputOf(const JobView& job) {
  if (job.goodput < 0) return "-";
  return absl::StrFormat("%.0f %%", job.goodput * 100);
}

std::string NodesOf(const JobView& job) {
  const std::string wanted = job.min_nodes == job.max_nodes
                                 ? absl::StrCat(job.max_nodes)
                                 : absl::StrCat(job.min_nodes, ":", job.max_nodes);
  if (job.parts.empty() || static_cast<int>(job.parts.size()) == job.max_nodes) return wanted;
  return absl::StrCat(job.parts.size(), " of ", wanted);
}

std::string StateOf(const JobView& job) {
  std::string state = ClusterJobStateName(job.state);
  if (job.state == ClusterJobState::kEnded && job.exit_code.has_value()) {
    absl::StrAppend(&state, " ", *job.exit_code);
  }
  return state;
}

std::string HostList(const JobView& job) {
  std::vector<std::string> hosts;
  for (const PartView& part : job.parts) {
    if (hosts.size() == kHostsInLine) break;
    hosts.push_back(PrintableLine(part.host));
  }
  std::string list = absl::StrJoin(hosts, ", ");
  if (job.parts.size() > hosts.size()) {
    absl::StrAppend(&list, " and ", job.parts.size() - hosts.size(), " more");
  }
  return list;
}

// Makes a table and cuts its last column, the longest one, so that the lines fit. `below` has a
// text for below each row.
std::string FittingTable(std::vector<std::vector<std::string>> rows,
                         const std::vector<std::string>& below) {
  size_t before = 0;  // The width of the other columns.
  for (size_t column = 0; column + 1 < rows[0].size(); ++column) {
    size_t widest = 0;
    for (const auto& row : rows) widest = std::max(widest, ColumnsOf(row[column]));
    before += widest + 2;
  }
  const size_t left = before + 8 < kColumns ? kColumns - before : 8;
  for (auto& row : rows) row.back() = Short(row.back(), left);
  const std::string table = TextTable(std::move(rows));
  std::string out;
  size_t line = 0, begin = 0;
  for (size_t end = table.find('\n'); end != table.npos; end = table.find('\n', begin)) {
    absl::StrAppend(&out, table.substr(begin, end + 1 - begin));
    if (line > 0 && line <= below.size()) absl::StrAppend(&out, below[line - 1]);
    begin = end + 1;
    ++line;
  }
  return out;
}

std::string DevicesOf(const HostView& host) {
  if (host.devices == 0) return "-";
  return absl::StrCat(host.devices_free, "/", host.devices, " ", Short(host.device_kind, 8));
}

std::string JobsOf(const HostView& host) {
  if (host.jobs.empty()) return "-";
  return Short(absl::StrJoin(host.jobs, ","), 14);
}

// Says why a host takes no jobs, and how long ago it was last heard.
std::string BelowHost(const HostView& host, int64_t now_ms) {
  std::vector<std::string> said;
  if (host.seen_ms > 0) {
    said.push_back(absl::StrCat("last heard ",
                                SpanWords(std::max<int64_t>(now_ms - host.seen_ms, 0)), " ago"));
  }
  if (!host.why.empty()) said.push_back(host.why);
  return Wrapped(absl::StrJoin(said, "; "), "    ");
}

std::string PartsText(const JobView& job) {
  if (job.parts.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"NODE", "HOST", "DEVICES", "EXIT", "STATE"}};
  for (const PartView& part : job.parts) {
    rows.push_back({absl::StrCat(part.node_rank), Short(part.host, 28),
                    part.devices.empty() ? "-" : Short(absl::StrJoin(part.devices, ","), 16),
                    part.exit_code.has_value() ? absl::StrCat(*part.exit_code) : "-",
                    PrintableLine(part.state)});
  }
  return FittingTable(std::move(rows), {});
}

// `each` is the name of one entry.
std::string MissingText(const NotInList& missing, absl::string_view each) {
  std::string text;
  const auto are = [each](uint64_t count) {
    return absl::StrCat(count, " ", each, count == 1 ? " is" : "s are");
  };
  if (missing.left_out > 0) {
    absl::StrAppend(&text, "and ", are(missing.left_out), " not shown: too many for one answer\n");
  }
  if (missing.unreadable > 0) {
    absl::StrAppend(&text, "and ", missing.unreadable,
                    " cannot be read: the head may have another version of hlaunch\n");
  }
  return text;
}

nlohmann::ordered_json Ordered(const nlohmann::json& json) { return nlohmann::ordered_json(json); }

}  // namespace

std::string ClusterJobsText(const JobsAnswer& answer, int64_t now_ms) {
  const std::string missing = MissingText(answer.missing, "older job");
  if (answer.jobs.empty()) return missing.empty() ? "no jobs\n" : missing;
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "USER", "STATE", "NODES", "AGE", "RESTARTS", "GOODPUT", "NAME"}};
  std::vector<std::string> below;
  for (const JobView& job : answer.jobs) {
    rows.push_back({absl::StrCat(job.number), Short(job.user, 10), StateOf(job), NodesOf(job),
                    AgeOf(job, now_ms), absl::StrCat(job.restarts), GoodputOf(job),
                    PrintableLine(job.name)});
    below.push_back(job.state == ClusterJobState::kRunning ? "" : Wrapped(job.why, "    "));
  }
  return FittingTable(std::move(rows), below) + missing;
}

std::string ClusterJobsJson(const JobsAnswer& answer) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const JobView& job : answer.jobs) all.push_back(Ordered(ToJson(job)));
  return JsonText({{"jobs", std::move(all)},
                   {"left_out", answer.missing.left_out},
                   {"unreadable", answer.missing.unreadable}});
}

std::string ClusterJobText(const JobView& job, int64_t now_ms) {
  std::string text =
      absl::StrCat("job ", job.number, " of ", PrintableLine(job.user), ", ",
                   PrintableLine(job.name), ": ", StateOf(job), "\n", Wrapped(job.why, "  "));
  const auto fact = [&text](absl::string_view name, const std::string& value) {
    absl::StrAppend(&text, "  ", name, std::string(12 - name.size(), ' '), value, "\n");
  };
  const std::string on =
      job.device_kind.empty() ? "" : absl::StrCat(", each on one ", Short(job.device_kind, 8));
  fact("nodes", absl::StrCat(NodesOf(job), ", ", job.workers, " workers each", on));
  fact("submitted", absl::StrCat(DateWords(job.submitted_ms), " (", AgeOf(job, now_ms),
                                 job.ended_ms > 0 ? " until its end)" : " ago)"));
  if (job.started_ms > 0) fact("started", DateWords(job.started_ms));
  if (job.ended_ms > 0) fact("ended", DateWords(job.ended_ms));
  if (job.round > 0) {
    fact("round",
         absl::StrCat(job.round, ", ", job.restarts, " restarts, goodput ", GoodputOf(job)));
  }
  if (!job.words.empty()) {
    fact("command", Short(absl::StrJoin(job.words, " "), kColumns - 14));
  }
  return absl::StrCat(text, PartsText(job));
}

std::string ClusterJobJson(const JobView& job) { return JsonText(Ordered(ToJson(job))); }

std::string HostsText(const HostsAnswer& answer, int64_t now_ms) {
  const std::string missing = MissingText(answer.missing, "host");
  if (answer.hosts.empty()) return missing.empty() ? "no hosts\n" : missing;
  std::vector<std::vector<std::string>> rows = {
      {"HOST", "STATE", "DEVICES", "SLOTS", "JOBS", "VERSION", "LABELS"}};
  std::vector<std::string> below;
  for (const HostView& host : answer.hosts) {
    rows.push_back({Short(host.name, 24), Short(host.state, 8), DevicesOf(host),
                    absl::StrCat(host.slots_free, "/", host.slots), JobsOf(host),
                    Short(host.version, 12),
                    host.labels.empty() ? "-" : absl::StrJoin(host.labels, ",")});
    below.push_back(BelowHost(host, now_ms));
  }
  return FittingTable(std::move(rows), below) + missing;
}

std::string HostsJson(const HostsAnswer& answer) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const HostView& host : answer.hosts) all.push_back(Ordered(ToJson(host)));
  return JsonText({{"head", answer.head},
                   {"hosts", std::move(all)},
                   {"left_out", answer.missing.left_out},
                   {"unreadable", answer.missing.unreadable}});
}

std::string WaitingText(const JobView& job) {
  if (job.why.empty()) return "";
  return absl::StrCat("job ", job.number, " waits: ", PrintableLine(job.why));
}

std::string StartingText(const JobView& job) {
  if (job.parts.empty()) return "";
  return absl::StrCat("job ", job.number, " starts on ", HostList(job));
}

std::string RunningText(const JobView& job) {
  return absl::StrCat("job ", job.number, " runs on ", HostList(job));
}

}  // namespace hlaunch
