// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/store/access/store_access.h"
#include "rendezvous/store/access/vouch_messages.h"

namespace hlaunch {

// The clients of a master store of which it must be found out whether they are the job's: each is
// asked about at the agents of the host that it comes from, until one vouches for it. Nodes of one
// host may have different users, and each agent vouches for its own. An agent has proven that it
// belongs to the round before it is heard here.
//
//            an agent has the address           it vouches
//   awaiting -------------------------> asked -------------> served
//      ^  |                               |
//      |  +-- no other agent in time: refused
//      +----------------------------------+
//        the agent has left, or denies that it is the job's
//
// Does no I/O; belongs to one thread.
class Vouching {
 public:
  using Agent = uint64_t;
  using Client = uint64_t;

  // How long a client waits for the word of an agent, and how long one that was denied: the agent
  // of another node on its host may still be on its way.
  static constexpr Duration kPatience = std::chrono::seconds(30);
  static constexpr Duration kDeniedPatience = std::chrono::seconds(1);

  explicit Vouching(Duration patience = kPatience) : patience_(patience) {}

  // A client comes from `source` and must be asked about. `denial`: why this host's kernel, or an
  // agent, says that it is not the job's; empty if nobody has said so.
  void Came(Client client, const StoreAddress& source, uint16_t port, Instant now,
            std::string denial = "");
  // The client has gone, or was served or refused.
  void Gone(Client client);

  // Takes what an agent has said; its connection comes from `seen`, as seen here.
  //
  // Errors: as VouchReader::Take, and
  //   InvalidArgument - it says first what only a greeted agent may say.
  absl::Status Take(Agent agent, const StoreAddress& seen, uint16_t seen_port,
                    absl::string_view bytes);
  void Left(Agent agent);
  void Clear();

  // What to send to agents: bytes of messages for each.
  std::map<Agent, std::string> TakeQuestions() { return std::exchange(questions_, {}); }

  struct Verdict {
    Client client = 0;
    bool served = false;
    // It may be that the client has just gone: then there is nothing to tell.
    bool perhaps_gone = false;
    std::string reason;  // For the log, once per address; may be empty if it is served.
  };
  // The verdicts of which nobody has heard yet. The clients are forgotten.
  std::vector<Verdict> TakeVerdicts(Instant now);

  // When one of the two above has something to return: Instant() means now, Instant::max() never.
  Instant next() const;

 private:
  struct Host {
    VouchReader reader;
    bool greeted = false;
    bool translated = false;  // Its address is rewritten on the way: it knows no ports seen here.
    std::set<StoreAddress> addresses;
  };
  struct Waiting {
    StoreAddress source{};
    uint16_t port = 0;
    Instant until;
    Instant until_if_denied;
    Agent asked = 0;                 // 0: no agent.
    std::set<Agent> denied_by = {};  // Agents that need not be asked again.
    std::optional<Verdict> denial = std::nullopt;
  };

  void Greet(Agent agent, const VouchGreeting& greeting, const StoreAddress& seen,
             uint16_t seen_port);
  void Answer(Agent agent, const VouchAnswer& answer);
  void Deny(Client client, Agent agent, Verdict denial);
  void SetUntil(Client client, Instant until);
  void AskFor(Client client);
  void Decide(Client client, Verdict verdict);

  const Duration patience_;
  std::map<Agent, Host> agents_;
  std::map<StoreAddress, std::set<Agent>> by_address_;
  std::map<Client, Waiting> waiting_;
  std::set<std::pair<Instant, Client>> deadlines_;
  std::map<StoreAddress, std::set<Client>> unasked_;  // By where they come from.
  std::map<Agent, std::string> questions_;
  std::vector<Verdict> verdicts_;
};

// Says what follows from an agent's answer about the connection from `source`. `client` is left to
// the caller. Pure.
Vouching::Verdict JudgeAnswer(const VouchAnswer& answer, const StoreAddress& source);

}  // namespace hlaunch
