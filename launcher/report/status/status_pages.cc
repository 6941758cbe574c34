// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/status_pages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "launcher/report/status/html_text.h"
#include "launcher/report/status/status_model.h"
#include "launcher/report/status/status_page.h"
#include "launcher/report/status/time_words.h"
#include "proto/base/address.h"
#include "proto/base/terminal_text.h"
#include "rendezvous/net/trust/page_password.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr Duration kPageLife = std::chrono::seconds(1);
constexpr size_t kMostKept = 64;
constexpr char kJobsPath[] = "/jobs/";
constexpr char kAskPassword[] = "WWW-Authenticate: Basic realm=\"hlaunch\", charset=\"UTF-8\"";
constexpr char kPlain[] = "text/plain; charset=utf-8";

// The name in "node0:9400" or "[::1]:9400", without port and brackets.
std::string NameIn(string_view host) {
  const size_t colon = host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
  string_view name = has_port ? host.substr(0, colon) : host;
  if (absl::ConsumePrefix(&name, "[")) absl::ConsumeSuffix(&name, "]");
  return absl::AsciiStrToLower(name);
}

bool IsOwnName(const std::string& name, const PageRules& rules) {
  if (name == "localhost" || IsAddressLiteral(name)) return true;
  return std::any_of(rules.names.begin(), rules.names.end(),
                     [&](const std::string& own) { return absl::EqualsIgnoreCase(own, name); });
}

// The password in the header Authorization; empty if it has no readable one.
std::string PasswordIn(string_view authorization) {
  const size_t blank = std::min(authorization.find(' '), authorization.size());
  const string_view scheme = authorization.substr(0, blank);
  const string_view rest = absl::StripAsciiWhitespace(authorization.substr(blank));
  if (absl::EqualsIgnoreCase(scheme, "bearer")) return std::string(rest);
  std::string pair;
  if (!absl::EqualsIgnoreCase(scheme, "basic") || !absl::Base64Unescape(rest, &pair)) return "";
  const size_t colon = pair.find(':');
  return colon == pair.npos ? "" : pair.substr(colon + 1);
}

HttpAnswer Say(int status, const std::string& text) {
  return {status, kPlain, absl::StrCat(text, "\n"), {"X-Content-Type-Options: nosniff"}};
}

HttpAnswer Page(std::string html) {
  return {200,
          "text/html; charset=utf-8",
          std::move(html),
          {absl::StrCat("Content-Security-Policy: ", PagePolicy(PageKind::kServed)),
           "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
           "X-Frame-Options: DENY", "Cross-Origin-Resource-Policy: same-origin"}};
}

ListedJob Listed(const JobStatus& job) {
  const StatusModel model = ModelOf(job);
  ListedJob listed = {absl::StrCat(kJobsPath, ToUrlPart(job.job_id)), model.job, model.state};
  for (const Fact& fact : model.facts) {
    if (fact.name == "Nodes") listed.nodes = fact.value;
    if (fact.name == "Restarts") listed.restarts = fact.value;
  }
  listed.sentence = model.sentence;
  listed.light = model.light;
  return listed;
}

}  // namespace

std::optional<HttpAnswer> RefuseVisitor(const HttpQuestion& request, const PageRules& rules) {
  if (!IsOwnName(NameIn(request.host), rules)) {
    return Say(421, "this host has no such name; use its address, or localhost");
  }
  if (!request.origin.empty() &&
      !absl::EqualsIgnoreCase(request.origin, absl::StrCat("http://", request.host))) {
    return Say(403, "pages of other sites are told nothing");
  }
  if (rules.password.empty() || SamePassword(PasswordIn(request.authorization), rules.password)) {
    return std::nullopt;
  }
  HttpAnswer answer =
      Say(401, "any user's name, and the password that hlaunch token --for-page prints");
  answer.headers.emplace_back(kAskPassword);
  return answer;
}

StatusPages::StatusPages(PageRules rules, Source source)
    : rules_(std::move(rules)), source_(std::move(source)) {}

HttpAnswer StatusPages::Answer(const HttpQuestion& request, Instant now, int64_t wall_ms) {
  if (std::optional<HttpAnswer> refusal = RefuseVisitor(request, rules_)) return *refusal;
  const auto found = kept_.find(request.path);
  if (found != kept_.end() && now - found->second.made < kPageLife) return found->second.answer;
  if (kept_.size() >= kMostKept) kept_.clear();
  HttpAnswer answer = Make(request.path, wall_ms);
  if (answer.status == 200) kept_[request.path] = {now, answer};
  return answer;
}

HttpAnswer StatusPages::Make(const std::string& path, int64_t wall_ms) const {
  const std::string stands_by = source_.stands_by ? source_.stands_by() : "";
  if (!stands_by.empty()) return Say(503, TerminalText(stands_by));
  if (path == "/" && !source_.jobs) return JobPage("");
  if (path == "/") {
    const std::vector<JobStatus> jobs = source_.jobs();
    std::vector<ListedJob> listed;
    for (const JobStatus& job : jobs) {
      if (listed.size() < static_cast<size_t>(kMaxJobsShown)) listed.push_back(Listed(job));
    }
    return Page(JobsPage(listed, static_cast<int>(jobs.size()), DateWords(wall_ms)));
  }
  if (source_.jobs && absl::StartsWith(path, kJobsPath)) {
    return JobPage(FromUrlPart(string_view(path).substr(sizeof kJobsPath - 1)));
  }
  return Say(404, source_.jobs ? "the jobs are at /, each at /jobs/ID" : "the job is at /");
}

HttpAnswer StatusPages::JobPage(const std::string& job_id) const {
  const bool only = !source_.jobs;
  if (!only && job_id.empty()) return Say(404, "there is no such job; the jobs are at /");
  const std::optional<JobStatus> status = source_.job(job_id);
  if (status) return Page(StatusPage(ModelOf(*status, source_.how_to_ask), PageKind::kServed));
  if (only) return Say(503, source_.elsewhere);
  return Say(404, "there is no such job; the jobs are at /");
}

}  // namespace hlaunch
