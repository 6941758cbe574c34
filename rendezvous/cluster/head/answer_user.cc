// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/answer_user.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/wall_time.h"
#include "proto/cluster/json_fields.h"
#include "rendezvous/cluster/head/job_words.h"
#include "rendezvous/cluster/head/may_ask.h"

namespace hlaunch {
namespace {

using Json = nlohmann::json;

// Bytes of a list in an answer: the answer must fit into one frame.
constexpr size_t kMaxList = 3 << 20;

absl::Status NoJob(uint64_t number) {
  return absl::NotFoundError(absl::StrCat("there is no job ", number));
}

// Collects the first entries of a list, as many as fit into an answer.
struct AnswerList {
  Json list = Json::array();
  size_t size = 0, left_out = 0;

  // `make` is not called once the list is full.
  template <typename Make>
  void Add(const Make& make) {
    if (size <= kMaxList) {
      Json entry = make();
      size += TextOf(entry).size();
      if (size <= kMaxList) return list.push_back(std::move(entry));
    }
    ++left_out;
  }
};

// One question of one user.
class UserQuestion {
 public:
  UserQuestion(HeadTable& table, const ClusterUser& user, absl::string_view verb, HeadTime t)
      : table_(table), user_(user), verb_(verb), t_(t) {}

  absl::StatusOr<Json> Submit(const Json& body) {
    HLAUNCH_RETURN_IF_ERROR(MayAsk(verb_, user_, nullptr));
    HLAUNCH_ASSIGN_OR_RETURN(JobRequest request, ReadJobRequest(body));
    if (request.script.empty()) return absl::InvalidArgumentError("submit: it names no program");
    if (request.min_nodes > request.max_nodes) {
      return absl::InvalidArgumentError("submit: min_nodes is above max_nodes");
    }
    HLAUNCH_RETURN_IF_ERROR(table_.MaySubmit(user_, request));  // Cheaper than the next check.
    HLAUNCH_RETURN_IF_ERROR(table_.CouldEver(request));
    HLAUNCH_ASSIGN_OR_RETURN(const uint64_t job, table_.Submit(user_, std::move(request), t_));
    return Json{{"job", job}};
  }

  // Returns the newest jobs, as many as fit into an answer, ordered by number.
  absl::StatusOr<Json> Jobs(const Json& body) {
    HLAUNCH_RETURN_IF_ERROR(MayAsk(verb_, user_, nullptr));
    HLAUNCH_ASSIGN_OR_RETURN(const JobsQuestion question, ReadJobsQuestion(body));
    AnswerList newest;
    const auto& jobs = table_.jobs().all();
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
      if (Wanted(job->second, question)) newest.Add([&] { return View(job->second); });
    }
    std::reverse(newest.list.begin(), newest.list.end());
    return Json{{"jobs", std::move(newest.list)}, {"left_out", newest.left_out}};
  }

  absl::StatusOr<Json> Job(const Json& body) {
    HLAUNCH_ASSIGN_OR_RETURN(const JobQuestion question, ReadJobQuestion(body));
    HLAUNCH_ASSIGN_OR_RETURN(const HeadJob* job, Find(question.job));
    return View(*job);
  }

  absl::StatusOr<Json> Nodes(const Json&) {
    HLAUNCH_RETURN_IF_ERROR(MayAsk(verb_, user_, nullptr));
    AnswerList hosts;
    for (const HostView& view : table_.hosts().Views()) {
      hosts.Add([&] { return ToJson(view); });
    }
    return Json{{"hosts", std::move(hosts.list)}, {"left_out", hosts.left_out}};
  }

  absl::StatusOr<Json> Stop(const Json& body) {
    HLAUNCH_ASSIGN_OR_RETURN(const StopQuestion question, ReadStopQuestion(body));
    HLAUNCH_ASSIGN_OR_RETURN(const HeadJob* job, Find(question.job));
    const int signal = verb_ == "kill" ? SIGKILL : SIGTERM;
    HLAUNCH_RETURN_IF_ERROR(table_.Stop(job->number, user_.name, signal, question.grace_s, t_));
    return Json::object();
  }

  absl::StatusOr<Json> Meeting(const Json& body) {
    HLAUNCH_ASSIGN_OR_RETURN(const StopQuestion question, ReadStopQuestion(body));
    HLAUNCH_ASSIGN_OR_RETURN(const HeadJob* job, Find(question.job));
    if (job->meeting.empty()) {
      const char* why = job->state == ClusterJobState::kEnded ? " has ended"
                        : job->placed() && !job->meets()      ? " has one node, which meets nobody"
                                                              : " has no rendezvous yet";
      return absl::FailedPreconditionError(absl::StrCat("job ", job->number, why));
    }
    return ToJson(MeetingAnswer{job->meeting, job->token});
  }

  absl::StatusOr<Json> Drain(const Json& body) {
    HLAUNCH_RETURN_IF_ERROR(MayAsk(verb_, user_, nullptr));
    HLAUNCH_ASSIGN_OR_RETURN(const DrainQuestion question, ReadDrainQuestion(body));
    const bool undrain = verb_ == "undrain";
    if (!undrain && question.reason.empty()) {
      return absl::InvalidArgumentError("drain: it gives no reason");
    }
    HLAUNCH_RETURN_IF_ERROR(
        table_.Drain(question.host, undrain ? "" : question.reason, question.evict_s, t_));
    return Json::object();
  }

  absl::StatusOr<Json> ThrowOut(const Json& body) {
    HLAUNCH_RETURN_IF_ERROR(MayAsk(verb_, user_, nullptr));
    HLAUNCH_ASSIGN_OR_RETURN(const DrainQuestion question, ReadDrainQuestion(body));
    HLAUNCH_RETURN_IF_ERROR(table_.ThrowOut(question.host, user_.name, t_));
    return Json::object();
  }

 private:
  // Returns the job if the user may ask this about it.
  absl::StatusOr<const HeadJob*> Find(uint64_t number) {
    const HeadJob* job = table_.jobs().Find(number);
    HLAUNCH_RETURN_IF_ERROR(MayAsk(verb_, user_, job));
    if (job == nullptr) return NoJob(number);
    return job;
  }

  bool Wanted(const HeadJob& job, const JobsQuestion& question) const {
    if (!question.ended && job.state == ClusterJobState::kEnded) return false;
    return question.all || IsOwn(job, user_);
  }

  Json View(const HeadJob& job) const {
    return ToJson(ViewOf(job, table_.jobs(), table_.hosts(), MaySeeWords(job, user_)));
  }

  HeadTable& table_;
  const ClusterUser& user_;
  const absl::string_view verb_;
  const HeadTime t_;
};

using Answerer = absl::StatusOr<Json> (UserQuestion::*)(const Json&);

Answerer AnswererOf(absl::string_view verb) {
  static const auto* const answerers = new std::map<absl::string_view, Answerer>{
      {"submit", &UserQuestion::Submit},   {"jobs", &UserQuestion::Jobs},
      {"job", &UserQuestion::Job},         {"nodes", &UserQuestion::Nodes},
      {"stop", &UserQuestion::Stop},       {"kill", &UserQuestion::Stop},
      {"meeting", &UserQuestion::Meeting}, {"drain", &UserQuestion::Drain},
      {"undrain", &UserQuestion::Drain},   {"throw_out", &UserQuestion::ThrowOut},
  };
  const auto found = answerers->find(verb);
  return found == answerers->end() ? nullptr : found->second;
}

}  // namespace

absl::StatusOr<Json> AnswerUser(HeadTable& table, const ClusterUser& user, absl::string_view verb,
                                const Json& body, HeadTime t) {
  const Answerer answerer = AnswererOf(verb);
  if (answerer == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no question \"", verb, "\""));
  }
  return (UserQuestion(table, user, verb, t).*answerer)(body);
}

bool IsSeen(const HeadTable& table, const ClusterUser& user, const JobQuestion& question) {
  const HeadJob* job = table.jobs().Find(question.job);
  return job != nullptr && job->version == question.seen && MayAsk("job", user, job).ok();
}

absl::StatusOr<std::string> HostOfLog(const HeadTable& table, const ClusterUser& user,
                                      const LogQuestion& question) {
  const HeadJob* job = table.jobs().Find(question.job);
  HLAUNCH_RETURN_IF_ERROR(MayAsk("log", user, job));
  if (job == nullptr) return NoJob(question.job);
  if (job->parts.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job->number, " has not started: ", job->why));
  }
  if (question.node_rank < 0 || question.node_rank >= static_cast<int>(job->parts.size())) {
    return absl::NotFoundError(absl::StrCat("job ", job->number, " has no node ",
                                            question.node_rank, " but ", job->parts.size()));
  }
  const HeadPart& part = job->parts[question.node_rank];
  const HeadHost* host = table.hosts().Find(part.host);
  if (host == nullptr) {
    return absl::NotFoundError(absl::StrCat(part.host, ", which had the log, is no host any more"));
  }
  if (!host->connected) {
    return absl::UnavailableError(
        absl::StrCat(part.host, ", which has the log, is away since ", WallTime(host->seen_ms)));
  }
  return part.host;
}

}  // namespace hlaunch
