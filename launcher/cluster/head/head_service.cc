// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/head_service.h"

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "asio/post.hpp"
#include "launcher/cluster/head/head_files.h"
#include "launcher/cluster/head/random_secret.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "rendezvous/cluster/head/answer_user.h"
#include "rendezvous/cluster/head/may_ask.h"

namespace hlaunch {
namespace {

constexpr Duration kRenewPause = std::chrono::minutes(1);  // After it has failed.

HeadTime Now() { return {MonotonicClock().Now(), WallMillis()}; }

std::time_t WallSeconds() { return static_cast<std::time_t>(WallMillis() / 1000); }

HeadTable::Options TableOptions(const OwnLimits& limits) {
  HeadTable::Options options;
  options.limits = limits;
  options.make_token = RandomSecret;
  return options;
}

// Keeps only what TakeAnswer needs of an order, without all that a job is started with.
HeadOrder WithoutRequest(const HeadOrder& order) {
  const auto* const start = std::get_if<PartOrder>(&order.what);
  if (start == nullptr) return order;
  PartOrder what;
  what.job = start->job;
  return {order.host, std::move(what)};
}

std::string Line(const HeadJob& job) {
  std::vector<std::string> hosts;
  for (const HeadPart& part : job.parts) hosts.push_back(part.host);
  std::string line =
      absl::StrCat("job ", job.number, " of ", job.user, ": ", ClusterJobStateName(job.state));
  if (job.state == ClusterJobState::kStarting)
    absl::StrAppend(&line, " on ", absl::StrJoin(hosts, ", "));
  if (!job.why.empty()) absl::StrAppend(&line, ", ", job.why);
  return line;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HeadService>> HeadService::Start(asio::io_context& loop,
                                                                UniqueFd listener,
                                                                TrustFolder folder,
                                                                Options options) {
  HLAUNCH_ASSIGN_OR_RETURN(HeadRecord record, ReadHeadRecord(folder));
  std::unique_ptr<HeadService> service(
      new HeadService(loop, std::move(folder), std::move(record), std::move(options)));
  HLAUNCH_RETURN_IF_ERROR(service->Begin(std::move(listener)));
  return service;
}

HeadService::HeadService(asio::io_context& loop, TrustFolder folder, HeadRecord record,
                         Options options)
    : loop_(loop),
      folder_(std::move(folder)),
      options_(std::move(options)),
      table_(TableOptions(options_.limits), std::move(record), Now()),
      relay_([this](uint64_t peer, const Envelope& envelope) { server_->Send(peer, envelope); }),
      second_(loop) {
  for (const auto& [number, job] : table_.jobs().all()) told_[number] = job.state;
}

absl::Status HeadService::Begin(UniqueFd listener) {
  HLAUNCH_ASSIGN_OR_RETURN(TrustOffice office,
                           TrustOffice::Open(folder_, options_.join_at, WallSeconds()));
  office_ = std::make_unique<TrustOffice>(std::move(office));
  HLAUNCH_ASSIGN_OR_RETURN(
      server_, ClusterServer::Start(loop_, std::move(listener), office_->identity(), Events()));
  Later(&HeadService::Tick);
  return absl::OkStatus();
}

ClusterServer::Events HeadService::Events() {
  ClusterServer::Events events;
  events.admits = [this](const CertifiedHost& shown) {
    return office_->Admits(shown, WallSeconds());
  };
  events.is_own = [this](const CertifiedHost& shown) { return shown.host == office_->own_host(); };
  events.came = [this](uint64_t id, const std::string& host) { Came(id, host); };
  events.said = [this](uint64_t id, const Envelope& envelope) { Said(id, envelope); };
  events.left = [this](uint64_t id) { Left(id); };
  events.stranger = [this](uint64_t id, const Envelope& question, const std::string& address) {
    TakeStranger(id, question, address);
  };
  return events;
}

uint64_t HeadService::PeerOf(const std::string& host) const {
  const auto found = by_host_.find(host);
  return found == by_host_.end() ? 0 : found->second;
}

// Only the newest connection of a host counts.
void HeadService::Came(uint64_t id, const std::string& host) {
  if (const uint64_t before = PeerOf(host); before != 0) Left(before);
  const absl::Status came = table_.Came(host, Now());
  if (!came.ok()) {
    LogWarning(absl::StrCat("host ", host, " is not let in: ", came.message()));
    return server_->Cut(id);
  }
  peers_[id] = host;
  by_host_[host] = id;
  LogInfo(absl::StrCat("host ", host, " is there"));
  Soon();
}

void HeadService::Left(uint64_t id) {
  const auto found = peers_.extract(id);
  if (found.empty()) return;
  const std::string& host = found.mapped();
  if (PeerOf(host) == id) by_host_.erase(host);
  table_.Left(host, Now());
  LogInfo(absl::StrCat("host ", host, " is away"));
  polls_.Forget(id);
  std::erase_if(replies_, [id](const auto& reply) { return reply.first == id; });
  relay_.Left(id);
  Soon();
}

void HeadService::Said(uint64_t id, const Envelope& envelope) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end() || failed_) return;
  const std::string host = peer->second;
  if (envelope.is_answer()) {
    relay_.TakeAnswer(id, envelope);
  } else if (!envelope.tell.empty()) {
    TakeNews(host, id, envelope);
  } else {
    TakeQuestion(host, id, envelope);
  }
  Soon();
}

// A daemon that sends invalid news is disconnected. It connects again and tells everything anew.
void HeadService::TakeNews(const std::string& host, uint64_t id, const Envelope& news) {
  absl::Status read;
  if (news.tell == "host") {
    absl::StatusOr<HostFacts> facts = ReadHostFacts(news.body);
    read = facts.status();
    if (facts.ok()) table_.TakeFacts(host, *std::move(facts));
  } else if (news.tell == "part") {
    const absl::StatusOr<PartTold> told = ReadPartTold(news.body);
    read = told.status();
    if (told.ok()) table_.TakePart(host, *told, Now());
  } else if (news.tell == "parts") {
    table_.TakeAllTold(host, Now());
  }
  if (read.ok()) return;
  LogWarning(absl::StrCat("host ", host, " is cut off: ", read.message()));
  server_->Cut(id);
}

void HeadService::TakeQuestion(const std::string& host, uint64_t id, const Envelope& question) {
  if (question.ask == "renew" && !question.user) {
    return Reply(id, question, office_->Renew(host, question.body, WallSeconds()));
  }
  if (!question.user) {
    return Reply(id, question, absl::PermissionDeniedError("nobody is said to ask that"));
  }
  ClusterUser user = *question.user;
  user.on_head = host == office_->own_host();
  AnswerOf(id, question, user);
}

void HeadService::AnswerOf(uint64_t id, const Envelope& question, const ClusterUser& user) {
  if (question.ask == "token") return Reply(id, question, Token(user));
  if (question.ask == "throw_out") return Reply(id, question, ThrowOut(user, question));
  if (question.ask == "log") return RelayLog(id, question, user);
  if (question.ask == "job") return Poll(id, question, user);
  Answer answer = AnswerUser(table_, user, question.ask, question.body, Now());
  if (question.ask == "nodes" && answer.ok()) (*answer)["head"] = options_.join_at;
  Reply(id, question, answer);
}

HeadService::Answer HeadService::Token(const ClusterUser& user) {
  HLAUNCH_RETURN_IF_ERROR(MayAsk("token", user, nullptr));
  return office_->Token(WallSeconds());
}

HeadService::Answer HeadService::ThrowOut(const ClusterUser& user, const Envelope& question) {
  HLAUNCH_RETURN_IF_ERROR(MayAsk("throw_out", user, nullptr));
  HLAUNCH_ASSIGN_OR_RETURN(const DrainQuestion read, ReadDrainQuestion(question.body));
  if (read.host == office_->own_host()) {
    return absl::FailedPreconditionError(
        absl::StrCat(read.host, " is the head's own host, which cannot be thrown out"));
  }
  // The registrar forgets a host some time after its certificate has expired, but the table does
  // not.
  const absl::Status joined = office_->ThrowOut(read.host, WallSeconds());
  if (!joined.ok() && !absl::IsNotFound(joined)) return joined;
  const Answer known = AnswerUser(table_, user, "throw_out", question.body, Now());
  if (const uint64_t peer = PeerOf(read.host); peer != 0) server_->Cut(peer);
  if (!known.ok() && !absl::IsNotFound(known.status())) return known;
  if (!known.ok() && !joined.ok()) return joined;  // A joined host may never have connected.
  return nlohmann::json::object();
}

// Answers at once, unless the user has seen the current version.
void HeadService::Poll(uint64_t id, const Envelope& question, const ClusterUser& user) {
  const absl::StatusOr<JobQuestion> read = ReadJobQuestion(question.body);
  const bool waits = read.ok() && read->wait_s > 0 && !polls_.full() && IsSeen(table_, user, *read);
  if (!waits) {
    return Reply(id, question, AnswerUser(table_, user, "job", question.body, Now()));
  }
  // Only the fields that are needed.
  Envelope kept = Question(question.id, question.ask, ToJson(*read));
  kept.user = user;
  polls_.Add(read->job,
             {id, std::move(kept), read->seen, Now().now + std::chrono::seconds(read->wait_s)});
}

void HeadService::RelayLog(uint64_t id, const Envelope& question, const ClusterUser& user) {
  const absl::StatusOr<LogQuestion> read = ReadLogQuestion(question.body);
  if (!read.ok()) return Reply(id, question, read.status());
  const absl::StatusOr<std::string> host = HostOfLog(table_, user, *read);
  if (!host.ok()) return Reply(id, question, host.status());
  relay_.Ask(PeerOf(*host), *host, "log", ToJson(*read), true, Now().now,
             [this, id, asked = Question(question.id, question.ask, {})](const Answer& answer) {
               Reply(id, asked, answer);
               Soon();
             });
}

void HeadService::Reply(uint64_t id, const Envelope& question, const Answer& answer) {
  replies_.emplace_back(
      id, answer.ok() ? AnswerTo(question, *answer) : ErrorTo(question, answer.status()));
}

void HeadService::TakeStranger(uint64_t id, const Envelope& question, const std::string& address) {
  Soon();
  if (question.ask != "join") {
    return Reply(id, question, absl::PermissionDeniedError("only hosts of this cluster may ask"));
  }
  const auto connected = [this](const std::string& host) { return PeerOf(host) != 0; };
  Reply(id, question, office_->Join(question.body, address, connected, WallSeconds()));
}

void HeadService::Later(void (HeadService::*what)()) {
  asio::post(loop_, [this, what, alive = std::weak_ptr<const bool>(alive_)] {
    if (!alive.expired()) (this->*what)();
  });
}

void HeadService::Soon() {
  if (!std::exchange(soon_, true)) Later(&HeadService::Flush);
}

void HeadService::Flush() {
  soon_ = false;
  if (failed_) return;
  if (table_.PlaceSome(Now())) Soon();
  const HeadChanges changes = table_.TakeChanges();
  absl::Status written = office_->KeepChanges();
  written.Update(WriteChanges(folder_, changes, table_));
  if (!written.ok()) {
    failed_ = true;
    return options_.failed(written);
  }
  SayWhatChanged(changes);
  times_.Add(table_.TakeWaits());
  for (const HeadOrder& order : table_.TakeOrders()) SendOrder(order);
  for (const auto& [id, reply] : std::exchange(replies_, {})) server_->Send(id, reply);
  AnswerPolls();
}

void HeadService::SendOrder(const HeadOrder& order) {
  const uint64_t peer = PeerOf(order.host);
  if (peer == 0) return;  // The table makes the order again when the host comes.
  relay_.Ask(peer, order.host, VerbOf(order), BodyOf(order), false, Now().now,
             [this, peer, order = WithoutRequest(order)](const Answer& answer) {
               if (!answer.ok() && !absl::IsUnavailable(answer.status())) {
                 LogWarning(absl::StrCat("order ", VerbOf(order), " to ", order.host, ": ",
                                         answer.status().message()));
               }
               if (absl::IsDeadlineExceeded(answer.status())) server_->Cut(peer);
               table_.TakeAnswer(order, answer.status(), Now());
               Soon();
             });
}

void HeadService::AnswerPolls() {
  const auto version = [this](uint64_t number) {
    const HeadJob* job = table_.jobs().Find(number);
    return job == nullptr ? 0 : job->version;
  };
  for (const JobPolls::Poll& poll : polls_.TakeDue(Now().now, version)) {
    const Answer answer = AnswerUser(table_, *poll.question.user, "job", poll.question.body, Now());
    server_->Send(poll.peer, answer.ok() ? AnswerTo(poll.question, *answer)
                                         : ErrorTo(poll.question, answer.status()));
  }
}

// The log is the history of each job's states.
void HeadService::SayWhatChanged(const HeadChanges& changes) {
  for (const uint64_t number : changes.jobs) {
    const HeadJob* job = table_.jobs().Find(number);
    if (job == nullptr) continue;
    const auto [told, is_new] = told_.try_emplace(number, job->state);
    if (!is_new && told->second == job->state) continue;
    told->second = job->state;
    LogInfo(Line(*job));
  }
  for (const uint64_t number : changes.forgotten) told_.erase(number);
}

std::string HeadService::Metrics() const {
  const CertificateEnds ends = {office_->own_expires(), office_->first_host_expires()};
  return HeadMetrics(table_, times_, ends, WallMillis());
}

void HeadService::Tick() {
  table_.Tick(Now());
  relay_.Tick(Now().now);
  RenewOwn();
  Flush();
  second_.expires_after(std::chrono::seconds(1));
  second_.async_wait([this, alive = std::weak_ptr<const bool>(alive_)](const asio::error_code&) {
    if (!alive.expired()) Tick();
  });
}

void HeadService::RenewOwn() {
  const bool due = renew_again_ ? Now().now >= *renew_again_ : office_->OwnIsOld(WallSeconds());
  if (!due) return;
  absl::Status renewed = office_->RenewOwn(WallSeconds());
  if (renewed.ok()) renewed = server_->Renew(office_->identity());
  renew_again_.reset();
  if (renewed.ok()) return;
  renew_again_ = Now().now + kRenewPause;
  LogWarning(absl::StrCat("the head's new certificate: ", renewed.message()));
}

}  // namespace hlaunch
