// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/bootstrap.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "comm/comm_address.h"
#include "comm/connection/greeting.h"
#include "comm/pmi_meeting.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/store/c10d/c10d_client.h"
#include "rendezvous/store/c10d/c10d_server.h"
#include "rendezvous/store/keys/file_store.h"

namespace hlaunch {
namespace {

constexpr char kForms[] = "env://, tcp://HOST:PORT, file:///PATH or pmi://";

const std::string* Find(const Environment& environment, const char* name) {
  const auto it = environment.find(name);
  return it == environment.end() || it->second.empty() ? nullptr : &it->second;
}

absl::StatusOr<int> Number(absl::string_view text, absl::string_view what, int least, int most) {
  int number;
  if (!absl::SimpleAtoi(text, &number) || number < least || number > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is '", text, "', not a number from ", least, " to ", most));
  }
  return number;
}

constexpr int kMostRanks = 1 << 24;

// Returns `given` unless it is -1, else the value in the url, else the value in the environment.
absl::StatusOr<int> Choose(int given, const Environment& query, const char* key,
                           const Environment& environment, const char* variable, int least) {
  if (given != -1) return Number(absl::StrCat(given), key, least, kMostRanks);
  if (const std::string* said = Find(query, key)) {
    return Number(*said, absl::StrCat("'", key, "' of the url"), least, kMostRanks);
  }
  if (const std::string* said = Find(environment, variable)) {
    return Number(*said, variable, least, kMostRanks);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(variable, " is not set: start this program by hlaunch or torchrun, or give the ",
                   key, ", or `?", key, "=` in the url"));
}

absl::StatusOr<Environment> ParseQuery(absl::string_view url, absl::string_view text) {
  Environment query;
  for (const absl::string_view pair : absl::StrSplit(text, '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> word = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    if (word.first != "rank" && word.first != "world_size" &&
        !(word.first == "store" && word.second == "open")) {
      return absl::InvalidArgumentError(absl::StrCat("'", pair, "' in '", url,
                                                     "' is unknown; there are rank=R, "
                                                     "world_size=N and store=open"));
    }
    query[word.first] = word.second;
  }
  return query;
}

// Parses HOST:PORT or [HOST]:PORT.
absl::Status ParseAuthority(absl::string_view url, absl::string_view text, InitMethod* init) {
  absl::ConsumeSuffix(&text, "/");
  const size_t colon = text.rfind(':');
  absl::string_view host = text.substr(0, colon == text.npos ? 0 : colon);
  if (absl::ConsumePrefix(&host, "[")) {
    if (!absl::ConsumeSuffix(&host, "]")) host = {};
  } else if (absl::StrContains(host, ':')) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", url, "': write an IPv6 address in brackets, tcp://[", host, "]:PORT"));
  }
  if (host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", url, "' is not of the form tcp://HOST:PORT"));
  }
  init->host = std::string(host);
  HLAUNCH_ASSIGN_OR_RETURN(
      const int port,
      Number(text.substr(colon + 1), absl::StrCat("the port of '", url, "'"), 1, 65535));
  init->port = static_cast<uint16_t>(port);
  return absl::OkStatus();
}

absl::Status FindMaster(const Environment& environment, InitMethod* init) {
  const std::string* host = Find(environment, kEnvMasterAddr);
  const std::string* port = Find(environment, kEnvMasterPort);
  if (host == nullptr || port == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        host == nullptr ? kEnvMasterAddr : kEnvMasterPort,
        " is not set, which env:// needs: start this program by hlaunch or torchrun, or give ",
        "tcp://HOST:PORT or file:///PATH"));
  }
  init->host = *host;
  HLAUNCH_ASSIGN_OR_RETURN(const int number, Number(*port, kEnvMasterPort, 1, 65535));
  init->port = static_cast<uint16_t>(number);
  return absl::OkStatus();
}

// How long rank 0 keeps its store open for ranks that have not left yet, and how long those try to
// reach a store that is gone.
constexpr auto kLeaveTimeout = std::chrono::seconds(5);

// A client of the store, and the server if this process has opened it.
struct ServedStore {
  explicit ServedStore(const InitMethod& where) : init(where) {}
  ~ServedStore() {
    if (!init.rank_0_opens || client == nullptr) return;
    const std::string last = "hlaunch/comm/left/all";
    const auto left = client->Add("hlaunch/comm/left", 1);
    if (left.ok() && *left == init.size) client->Set(last, "").IgnoreError();
    if (server != nullptr)
      client->Wait({last}, MonotonicClock().Now() + kLeaveTimeout).IgnoreError();
  }
  ServedStore(const ServedStore&) = delete;
  ServedStore& operator=(const ServedStore&) = delete;

  const InitMethod init;
  std::unique_ptr<C10dServer> server;
  std::unique_ptr<C10dClient> client;
};

// Turns codes that InitProcessGroup does not promise into InvalidArgument.
absl::Status Promised(const absl::Status& status) {
  const bool one = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
                   absl::IsResourceExhausted(status) || absl::IsInternal(status);
  return status.ok() || one ? status : absl::InvalidArgumentError(status.message());
}

absl::StatusOr<ListeningSocket> OpenStore(const InitMethod& init) {
  // A store at loopback listens there only; any other at all addresses, as the given name or the
  // address of a NAT may not be an address of this host.
  const bool loopback = init.host == "localhost" || absl::StartsWith(init.host, "127.");
  auto listener = Listen(loopback ? "127.0.0.1" : init.host == "::1" ? "::1" : "", init.port);
  if (listener.ok()) return listener;
  const std::string where = HostPort(init.host, init.port);
  return absl::InvalidArgumentError(
      absl::StrCat("rank 0 opens the store at ", where, ": ", listener.status().message(),
                   "; give another port, or tcp://", where, "?store=open for a store that is ",
                   "there already"));
}

// `opened` is the store's socket if this rank has opened it before.
absl::StatusOr<std::shared_ptr<Store>> ReachServer(const InitMethod& init,
                                                   std::optional<ListeningSocket> opened,
                                                   Instant deadline) {
  const std::string where = HostPort(init.host, init.port);
  const auto store = std::make_shared<ServedStore>(init);
  const bool opens = init.rank_0_opens && init.rank == 0;
  if (opens) {
    if (!opened) {
      HLAUNCH_ASSIGN_OR_RETURN(opened, OpenStore(init));
    }
    HLAUNCH_ASSIGN_OR_RETURN(store->server, C10dServer::Start(std::move(opened)));
  }
  C10dClientOptions client_options;
  if (init.rank_0_opens) client_options.request_timeout = kLeaveTimeout;
  auto client = C10dClient::Connect(init.host, init.port, deadline, client_options);
  if (!client.ok()) {
    return absl::Status(client.status().code(),
                        absl::StrCat("looked for the store at ", where,
                                     opens ? ", which this rank has opened: "
                                           : ", which rank 0 or the agent opens: ",
                                     client.status().message()));
  }
  store->client = *std::move(client);
  return std::shared_ptr<Store>(store, store->client.get());
}

// A store in a file; the last rank that leaves deletes the file.
class FileOfRanks {
 public:
  FileOfRanks(std::unique_ptr<FileStore> store, const InitMethod& init)
      : store_(std::move(store)), init_(init) {}
  ~FileOfRanks() {
    const auto left = store_->Add("hlaunch/comm/left", 1);
    if (left.ok() && *left == init_.size) ::unlink(init_.path.c_str());
  }
  FileOfRanks(const FileOfRanks&) = delete;
  FileOfRanks& operator=(const FileOfRanks&) = delete;
  Store* store() { return store_.get(); }

 private:
  const std::unique_ptr<FileStore> store_;
  const InitMethod init_;
};

absl::StatusOr<std::shared_ptr<Store>> ReachFile(const InitMethod& init) {
  HLAUNCH_ASSIGN_OR_RETURN(auto file, FileStore::Open(init.path));
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t came,
                           file->Add(absl::StrCat("hlaunch/comm/came/", init.rank), 1));
  if (came != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", init.rank, " has used '", init.path,
                     "' before: remove the file, or give one that does not exist yet"));
  }
  const auto store = std::make_shared<FileOfRanks>(std::move(file), init);
  return std::shared_ptr<Store>(store, store->store());
}

// Returns the address at which other ranks reach this rank. `route` is this host's address on its
// route to the store, if any.
absl::StatusOr<std::string> OwnAddress(const Environment& environment, const std::string& route,
                                       bool several_hosts) {
  const std::string* wish = Find(environment, kEnvSocketInterface);
  const std::string* towards = Find(environment, kEnvGlooInterface);
  return ChooseAddress(InterfaceAddresses(), wish == nullptr ? "" : *wish, route, several_hosts,
                       towards == nullptr ? "" : *towards);
}

// Learns by PMI-1 which rank this is, and from rank 0 where its store is and the ranks' secret.
// Returns the store's socket at rank 0.
absl::StatusOr<std::optional<ListeningSocket>> MeetRanks(const Environment& environment,
                                                         Instant deadline, InitMethod* init) {
  std::optional<ListeningSocket> opened;
  const auto say = [&]() -> absl::StatusOr<std::string> {
    std::array<char, kSecretSize> secret{};
    HLAUNCH_CHECK(::getrandom(secret.data(), secret.size(), 0) == kSecretSize);
    HLAUNCH_ASSIGN_OR_RETURN(const std::string host, OwnAddress(environment, "", true));
    HLAUNCH_ASSIGN_OR_RETURN(opened, Listen("", 0));
    return absl::StrCat(absl::BytesToHexString({secret.data(), secret.size()}), "/tcp://",
                        HostPort(host, opened->port));
  };
  HLAUNCH_ASSIGN_OR_RETURN(const PmiMeeting meeting, MeetByPmi(environment, say, deadline));
  const std::vector<std::string> said = absl::StrSplit(meeting.said, absl::MaxSplits('/', 1));
  Environment heard = environment;
  heard[kEnvCommSecret] = said[0];
  const std::string local(
      Find(environment, kEnvMpiLocalSize) == nullptr ? "" : *Find(environment, kEnvMpiLocalSize));
  heard[kEnvLocalWorldSize] = local;
  HLAUNCH_ASSIGN_OR_RETURN(*init, ParseInitMethod(said.back(), meeting.rank, meeting.size, heard));
  return opened;
}

// Returns this host's address on its route to the store; empty if there is none.
std::string Route(const InitMethod& init) {
  const auto literals = ResolveHost(init.host);
  const auto route = LocalAddressTowards(literals.ok() ? literals->front() : init.host);
  return route.value_or("");
}

}  // namespace

absl::StatusOr<InitMethod> ParseInitMethod(absl::string_view url, Rank rank, int size,
                                           const Environment& environment) {
  InitMethod init;
  const std::vector<absl::string_view> parts = absl::StrSplit(url, absl::MaxSplits('?', 1));
  HLAUNCH_ASSIGN_OR_RETURN(const Environment query,
                           ParseQuery(url, parts.size() > 1 ? parts[1] : ""));
  absl::string_view rest = parts[0];
  if (rest == "pmi://") {  // The server of PMI-1 tells all else.
    init.by_pmi = true;
    return init;
  }
  bool open = query.count("store") != 0;
  if (absl::ConsumePrefix(&rest, "env://")) {
    HLAUNCH_RETURN_IF_ERROR(FindMaster(environment, &init));
    const std::string* agent = Find(environment, kEnvUseAgentStore);
    open = open || (agent != nullptr && *agent == "True");
  } else if (absl::ConsumePrefix(&rest, "tcp://")) {
    HLAUNCH_RETURN_IF_ERROR(ParseAuthority(url, rest, &init));
  } else if (absl::ConsumePrefix(&rest, "file://")) {
    init.path = std::string(rest);
    if (!absl::StartsWith(rest, "/")) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", url, "': give the whole path, file:///tmp/", rest));
    }
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("'", url, "' is not an init method; give ", kForms));
  }
  HLAUNCH_ASSIGN_OR_RETURN(init.rank, Choose(rank, query, "rank", environment, kEnvRank, 0));
  HLAUNCH_ASSIGN_OR_RETURN(init.size,
                           Choose(size, query, "world_size", environment, kEnvWorldSize, 1));
  if (init.rank >= init.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", init.rank, " in a world of ", init.size,
                                                   ": ranks go from 0 to ", init.size - 1));
  }
  init.rank_0_opens = init.path.empty() && !open;
  if (const std::string* local = Find(environment, kEnvLocalWorldSize)) {
    HLAUNCH_ASSIGN_OR_RETURN(const int said, Number(*local, kEnvLocalWorldSize, 1, kMostRanks));
    init.local_ranks = std::min(said, init.size);
  }
  if (const std::string* secret = Find(environment, kEnvCommSecret)) {
    auto bytes = ParseSecret(*secret);
    if (!bytes.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kEnvCommSecret, ": ", bytes.status().message()));
    }
    init.secret = *std::move(bytes);
  }
  if (const std::string* round = Find(environment, kEnvRound)) {
    if (!absl::SimpleAtoi(*round, &init.round) || init.round < 0) init.round = 0;
  }
  return init;
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> InitProcessGroup(absl::string_view url, Rank rank,
                                                               int size, GroupOptions options,
                                                               const Environment& environment) {
  HLAUNCH_ASSIGN_OR_RETURN(InitMethod init, ParseInitMethod(url, rank, size, environment));
  const Instant deadline = MonotonicClock().Now() + options.timeout;
  std::optional<ListeningSocket> opened;
  if (init.by_pmi) {
    auto met = MeetRanks(environment, deadline, &init);
    if (!met.ok()) return Promised(met.status());
    opened = *std::move(met);
  }
  auto store = init.path.empty() ? ReachServer(init, std::move(opened), deadline) : ReachFile(init);
  if (!store.ok()) return Promised(store.status());

  // A file does not tell the number of hosts; a store at loopback means that there is one.
  const bool several_hosts =
      init.local_ranks != 0 ? init.local_ranks < init.size : !init.path.empty();
  HLAUNCH_ASSIGN_OR_RETURN(
      options.address,
      OwnAddress(environment, init.path.empty() ? Route(init) : "", several_hosts));
  if (init.local_ranks != 0) options.local_ranks = init.local_ranks;
  options.secret = init.secret;
  options.round = init.round;
  const std::string* tap = Find(environment, kEnvTap);
  options.recorded = tap != nullptr && *tap != "0";
  auto group = ProcessGroup::Create(*std::move(store), init.rank, init.size, std::move(options));
  if (!group.ok()) return Promised(group.status());
  return group;
}

}  // namespace hlaunch
