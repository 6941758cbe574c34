// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/node_daemon.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "launcher/node/service_manager.h"
#include "launcher/text/printable.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/json_fields.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {
namespace {

constexpr Duration kHostLookTime = std::chrono::seconds(10);

// The questions of users that go to the head.
constexpr const char* kRelayed[] = {"submit", "jobs",    "job",   "nodes",   "stop",  "kill",
                                    "log",    "meeting", "drain", "undrain", "token", "throw_out"};

bool IsRelayed(const std::string& verb) {
  for (const char* relayed : kRelayed) {
    if (verb == relayed) return true;
  }
  return false;
}

Parts::Settings SettingsOf(const DaemonOptions& options, const DaemonConfig& config) {
  Parts::Settings settings;
  settings.host = HostName();
  settings.folder = options.parts;
  settings.program = options.program;
  settings.rule = config.rule;
  settings.limits = config.limits;
  settings.private_tmp = config.private_tmp;
  settings.most = static_cast<size_t>(config.max_parts);
  return settings;
}

// Reads the order's body and carries it out.
template <typename Order>
absl::Status CarryOut(absl::StatusOr<Order> order, Parts& parts,
                      absl::Status (Parts::*obey)(const Order&)) {
  HLAUNCH_RETURN_IF_ERROR(order.status());
  return (parts.*obey)(*order);
}

absl::Status Leave(const nlohmann::json& body, Parts& parts) {
  uint64_t job = 0;
  std::string reason;
  JsonFields fields(body, "an order to leave");
  fields.Number("job", &job);
  fields.Text("reason", &reason);
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  return parts.Leave(job, PrintableLine(reason));
}

}  // namespace

NodeDaemon::NodeDaemon(asio::io_context& loop, const DaemonOptions& options,
                       const DaemonConfig& config, ServiceManager& manager)
    : loop_(loop),
      config_(config),
      places_{options.program, options.parts, options.sysroot},
      manager_(manager),
      look_(loop),
      parts_(loop, SettingsOf(options, config),
             [this](const PartTold& told) {
               head_.Send(NewsOf("part", ToJson(told)));
               logs_.Look(told.job);
               ShowStatus();
             }),
      logs_(loop, parts_),
      users_(loop, config.admin_group),
      head_(loop, options.folder,
            {[this] { TellAll(); }, [this](const Envelope& order) { Obey(order); },
             [this](const std::string& address) { parts_.SetReachableAt(address); },
             [this] {
               parts_.SetHost(head_.host());
               ShowStatus();
             }}) {}

absl::Status NodeDaemon::Begin(UniqueFd listener) {
  HLAUNCH_RETURN_IF_ERROR(parts_.Open());
  LookAtHostAgain();
  server_ = std::make_unique<LocalServer>(loop_, std::move(listener), users_,
                                          [this](const Envelope& question, LocalServer::Done done) {
                                            Answer(question, std::move(done));
                                          });
  shown_ = StatusText();
  manager_.Ready(shown_);
  ready_ = true;
  return absl::OkStatus();
}

void NodeDaemon::Answer(const Envelope& question, LocalServer::Done done) {
  if (question.ask == "here") return done(Here());
  if (IsRelayed(question.ask)) {
    return head_.Ask(question.ask, question.body, question.user, std::move(done));
  }
  done(absl::UnimplementedError(
      absl::StrCat("this hlaunchd, ", facts_.version, ", knows no question ", question.ask)));
}

nlohmann::json NodeDaemon::Here() const {
  const std::string unfit = facts_.trouble;
  return {{"version", facts_.version},
          {"host", head_.host()},
          {"head", head_.head()},
          {"connected", head_.connected()},
          {"trouble", head_.connected() ? unfit : head_.trouble()}};
}

void NodeDaemon::Obey(const Envelope& order) {
  if (order.ask == "log") {
    const absl::StatusOr<LogQuestion> question = ReadLogQuestion(order.body);
    if (!question.ok()) return head_.Send(ErrorTo(order, question.status()));
    return logs_.Ask(*question, [this, order](const absl::StatusOr<LogAnswer>& answer) {
      head_.Send(answer.ok() ? AnswerTo(order, ToJson(*answer)) : ErrorTo(order, answer.status()));
    });
  }
  absl::Status obeyed = absl::UnimplementedError(absl::StrCat(
      "host ", head_.host(), ": hlaunchd ", facts_.version, " knows no order ", order.ask));
  if (order.ask == "start") obeyed = CarryOut(ReadPartOrder(order.body), parts_, &Parts::Start);
  if (order.ask == "signal") obeyed = CarryOut(ReadSignalOrder(order.body), parts_, &Parts::Signal);
  if (order.ask == "drain") obeyed = Leave(order.body, parts_);
  if (order.ask == "forget") obeyed = CarryOut(ReadForgetOrder(order.body), parts_, &Parts::Forget);
  if (!obeyed.ok()) LogWarning(absl::StrCat("order ", order.ask, ": ", obeyed.message()));
  head_.Send(obeyed.ok() ? AnswerTo(order, nlohmann::json::object()) : ErrorTo(order, obeyed));
}

void NodeDaemon::TellAll() {
  head_.Send(NewsOf("host", ToJson(facts_)));
  for (const PartTold& told : parts_.All()) head_.Send(NewsOf("part", ToJson(told)));
  head_.Send(NewsOf("parts", nlohmann::json::object()));
}

void NodeDaemon::LookAtHostAgain() {
  HostFacts facts = LookAtHost(config_, places_);
  const bool changed = ToJson(facts) != ToJson(facts_);
  facts_ = std::move(facts);
  if (changed) {
    if (!facts_.trouble.empty()) LogWarning(facts_.trouble);
    head_.Send(NewsOf("host", ToJson(facts_)));
  }
  look_.expires_after(kHostLookTime);
  look_.async_wait([this](std::error_code error) {
    if (!error) LookAtHostAgain();
  });
}

std::string NodeDaemon::StatusText() const {
  const size_t living = parts_.living();
  return absl::StrCat(
      head_.connected() ? absl::StrCat("connected to ", head_.head()) : head_.trouble(), "; ",
      living, living == 1 ? " part of a job runs" : " parts of jobs run");
}

void NodeDaemon::ShowStatus() {
  if (!ready_) return;
  std::string text = StatusText();
  if (text == shown_) return;
  shown_ = std::move(text);
  manager_.Status(shown_);
}

}  // namespace hlaunch
