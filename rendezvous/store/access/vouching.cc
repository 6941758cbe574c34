// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/access/vouching.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

std::string Refused(const StoreAddress& source, absl::string_view why) {
  return absl::StrCat("refused a connection from ", ShowStoreAddress(source), ": ", why,
                      "; if it is yours, name it on node rank 0: ", AllowingOption(source));
}

}  // namespace

Vouching::Verdict JudgeAnswer(const VouchAnswer& answer, const StoreAddress& source) {
  Vouching::Verdict verdict;
  switch (answer.vouch) {
    case Vouch::kOwn:
      verdict.served = true;
      return verdict;
    case Vouch::kUntold:
      verdict.served = true;
      verdict.reason = absl::StrCat("the kernel of ", ShowStoreAddress(source),
                                    " does not tell whose its connections are: the store serves "
                                    "all users there");
      return verdict;
    case Vouch::kOther:
      verdict.reason = Refused(
          source, absl::StrCat("it is of the user ", answer.user, " there, who is not the job's"));
      return verdict;
    case Vouch::kNobody:
      break;
  }
  verdict.perhaps_gone = true;
  verdict.reason = Refused(source, "the job's agent there sees no process that has it");
  return verdict;
}

void Vouching::Came(Client client, const StoreAddress& source, uint16_t port, Instant now,
                    std::string denial) {
  Waiting& waiting = waiting_[client];
  waiting = {source, port, now + patience_, now + std::min(kDeniedPatience, patience_)};
  deadlines_.insert({waiting.until, client});
  if (!denial.empty()) {
    waiting.denial = Verdict{.reason = std::move(denial)};
    SetUntil(client, waiting.until_if_denied);
  }
  AskFor(client);
}

void Vouching::SetUntil(Client client, Instant until) {
  Waiting& waiting = waiting_.at(client);
  deadlines_.erase({waiting.until, client});
  waiting.until = until;
  deadlines_.insert({until, client});
}

void Vouching::Gone(Client client) {
  const auto it = waiting_.find(client);
  if (it == waiting_.end()) return;
  const Waiting& waiting = it->second;
  deadlines_.erase({waiting.until, client});
  if (const auto same = unasked_.find(waiting.source); same != unasked_.end()) {
    same->second.erase(client);
    if (same->second.empty()) unasked_.erase(same);
  }
  waiting_.erase(it);
}

// Asks an agent of the client's host that was not asked yet, or notes that there is none now.
void Vouching::AskFor(Client client) {
  Waiting& waiting = waiting_.at(client);
  const auto agents = by_address_.find(waiting.source);
  const auto other = [&waiting](Agent agent) { return !waiting.denied_by.contains(agent); };
  if (agents == by_address_.end() ||
      std::none_of(agents->second.begin(), agents->second.end(), other)) {
    unasked_[waiting.source].insert(client);
    return;
  }
  const Agent agent = *std::find_if(agents->second.begin(), agents->second.end(), other);
  if (agents_[agent].translated) {
    Verdict verdict;
    verdict.served = true;
    verdict.reason = absl::StrCat(
        "addresses are translated on the way from ", ShowStoreAddress(waiting.source),
        ", so nobody can say whose a connection is: the store serves all that come from there; "
        "--store-proxy carries the workers' through their agents instead");
    return Decide(client, std::move(verdict));
  }
  waiting.asked = agent;
  PutVouchMessage(&questions_[agent], VouchQuestion{client, waiting.source, waiting.port});
}

absl::Status Vouching::Take(Agent agent, const StoreAddress& seen, uint16_t seen_port,
                            absl::string_view bytes) {
  Host& host = agents_[agent];
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<VouchMessage> messages, host.reader.Take(bytes));
  for (const VouchMessage& message : messages) {
    const auto* greeting = std::get_if<VouchGreeting>(&message);
    const auto* answer = std::get_if<VouchAnswer>(&message);
    if (host.greeted ? answer == nullptr : greeting == nullptr) {
      return absl::InvalidArgumentError("it says something out of order about connections");
    }
    if (greeting != nullptr) {
      Greet(agent, *greeting, seen, seen_port);
    } else {
      Answer(agent, *answer);
    }
  }
  return absl::OkStatus();
}

void Vouching::Greet(Agent agent, const VouchGreeting& greeting, const StoreAddress& seen,
                     uint16_t seen_port) {
  Host& host = agents_[agent];
  host.greeted = true;
  host.translated = greeting.address != seen || greeting.port != seen_port;
  host.addresses = {seen};
  if (!host.translated) host.addresses.insert(greeting.others.begin(), greeting.others.end());
  for (const StoreAddress& address : host.addresses) {
    by_address_[address].insert(agent);
    const auto node = unasked_.extract(address);
    if (node.empty()) continue;
    for (const Client client : node.mapped()) AskFor(client);
  }
}

void Vouching::Answer(Agent agent, const VouchAnswer& answer) {
  const auto it = waiting_.find(answer.number);
  if (it == waiting_.end() || it->second.asked != agent) return;  // The client has gone.
  Verdict verdict = JudgeAnswer(answer, it->second.source);
  verdict.served ? Decide(answer.number, std::move(verdict))
                 : Deny(answer.number, agent, std::move(verdict));
}

// Another agent of the client's host may know it. What names a user says more than what does not.
void Vouching::Deny(Client client, Agent agent, Verdict denial) {
  Waiting& waiting = waiting_.at(client);
  waiting.asked = 0;
  waiting.denied_by.insert(agent);
  if (!waiting.denial || waiting.denial->perhaps_gone) waiting.denial = std::move(denial);
  SetUntil(client, waiting.until_if_denied);
  AskFor(client);
}

void Vouching::Decide(Client client, Verdict verdict) {
  verdict.client = client;
  verdicts_.push_back(std::move(verdict));
  Gone(client);
}

void Vouching::Left(Agent agent) {
  const auto node = agents_.extract(agent);
  questions_.erase(agent);
  if (node.empty()) return;
  for (const StoreAddress& address : node.mapped().addresses) {
    const auto it = by_address_.find(address);
    it->second.erase(agent);
    if (it->second.empty()) by_address_.erase(it);
  }
  std::vector<Client> asked;
  for (auto& [client, waiting] : waiting_) {
    if (waiting.asked == agent) asked.push_back(client);
  }
  for (const Client client : asked) {
    waiting_.at(client).asked = 0;
    AskFor(client);
  }
}

std::vector<Vouching::Verdict> Vouching::TakeVerdicts(Instant now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const Client client = deadlines_.begin()->second;
    Waiting& waiting = waiting_.at(client);
    if (waiting.denial) {
      Decide(client, *std::exchange(waiting.denial, std::nullopt));
      continue;
    }
    Verdict verdict;
    verdict.reason = Refused(
        waiting.source,
        absl::StrCat(waiting.asked == 0 ? "no agent of the job is there that could say"
                                        : "the job's agent there does not say",
                     " whose it is, within ",
                     std::chrono::duration_cast<std::chrono::seconds>(patience_).count(), " s"));
    Decide(client, std::move(verdict));
  }
  return std::exchange(verdicts_, {});
}

Instant Vouching::next() const {
  if (!verdicts_.empty() || !questions_.empty()) return Instant();
  return deadlines_.empty() ? Instant::max() : deadlines_.begin()->first;
}

void Vouching::Clear() {
  agents_.clear();
  by_address_.clear();
  waiting_.clear();
  deadlines_.clear();
  unasked_.clear();
  questions_.clear();
  verdicts_.clear();
}

}  // namespace hlaunch
