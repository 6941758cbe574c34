// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_server.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/mpi/pmi/pmi_port.h"
#include "agent/mpi/serve/awaited_notice.h"
#include "agent/mpi/serve/node_exchange.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kReadAtOnce = 64 << 10;
constexpr size_t kMaxUnread = 4 << 20;  // Answers that a worker does not read.

}  // namespace

struct PmiServer::State {
  // One worker's stream.
  struct Stream {
    explicit Stream(asio::io_context& loop) : fd(loop) {}
    asio::posix::stream_descriptor fd;
    int local_rank = 0;
    std::string out;      // Answers that are not sent yet.
    bool writes = false;  // `out` waits for room.
    const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with the stream.
  };
  using StreamAt = std::list<Stream>::iterator;

  State(asio::io_context& the_loop, PmiPlace the_place, Events the_events)
      : loop(the_loop),
        place(the_place),
        events(std::move(the_events)),
        node(std::move(the_place)),
        streams_of(static_cast<size_t>(place.nproc), streams.end()),
        notice(
            the_loop, [this] { return Awaited(); },
            place.certain ? "" : " (--mpi none: each rank is an MPI world of its own)") {}

  std::string Awaited() const {
    std::string who = node.Awaited();
    return who.empty() || place.name.empty() ? who : absl::StrCat("of ", place.name, ", ", who);
  }

  void Add(UniqueFd fd, int local_rank) {
    const StreamAt stream = streams.emplace(streams.end(), loop);
    asio::error_code error;
    stream->fd.assign(fd.get(), error);
    if (error) {
      LogWarning(absl::StrCat("cannot serve MPI's start to a worker: ", error.message()));
      return void(streams.erase(stream));
    }
    fd.Release();
    stream->local_rank = local_rank;
    streams_of[static_cast<size_t>(local_rank)] = stream;
    Listen(stream);
  }

  // Serves a worker that has come by the port.
  void Welcome(UniqueFd fd, int local_rank) {
    Add(std::move(fd), local_rank);
    const StreamAt stream = streams_of[static_cast<size_t>(local_rank)];
    if (stream == streams.end()) return;
    Say(stream, WelcomeOfPmi(place.world_size, place.first_rank + local_rank));
  }

  void Drop(StreamAt stream) {
    streams_of[static_cast<size_t>(stream->local_rank)] = streams.end();
    streams.erase(stream);
  }

  void Listen(StreamAt stream) {
    stream->fd.async_wait(
        asio::posix::descriptor_base::wait_read,
        [this, stream, alive = std::weak_ptr<bool>(stream->life)](const asio::error_code& error) {
          if (!error && !alive.expired()) Read(stream);
        });
  }

  void Read(StreamAt stream) {
    std::vector<char> bytes(kReadAtOnce);
    const ssize_t size =
        ::recv(stream->fd.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Listen(stream);
    if (size <= 0) return Drop(stream);
    const absl::string_view text(bytes.data(), static_cast<size_t>(size));
    const int local_rank = stream->local_rank;
    Listen(stream);  // Take and Do may drop the stream.
    Do(node.Take(local_rank, text));
  }

  void Say(StreamAt stream, absl::string_view text) {
    absl::StrAppend(&stream->out, text);
    if (!stream->writes) Write(stream);
  }

  void Write(StreamAt stream) {
    std::string& out = stream->out;
    const ssize_t size =
        ::send(stream->fd.native_handle(), out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size > 0) out.erase(0, static_cast<size_t>(size));
    const bool full = size < 0 && (errno == EAGAIN || errno == EINTR);
    // A process that is gone is noticed by its exit; one that reads nothing needs no more answers.
    if ((size < 0 && !full) || out.size() > kMaxUnread) out.clear();
    stream->writes = !out.empty();
    if (!stream->writes) return;
    stream->fd.async_wait(
        asio::posix::descriptor_base::wait_write,
        [this, stream, alive = std::weak_ptr<bool>(stream->life)](const asio::error_code& error) {
          if (!error && !alive.expired()) Write(stream);
        });
  }

  void Do(const PmiStep& step) {
    for (const auto& [local_rank, text] : step.answers) {
      const StreamAt stream = streams_of[static_cast<size_t>(local_rank)];
      if (stream != streams.end()) Say(stream, text);
    }
    for (const NodeMessage& message : step.messages) {
      if (exchange) {
        exchange->Swap(message);
      } else {
        Fail(
            "MPI over several nodes needs hlaunch's own master store: leave out --master-store "
            "worker");
      }
    }
    if (!hushed) {
      for (const std::string& warning : step.warnings) LogWarning(warning);
      for (const MpiFailure& failure : step.failures) events.on_failure(failure);
    }
    for (const int local_rank : step.closed) {
      const StreamAt stream = streams_of[static_cast<size_t>(local_rank)];
      if (stream != streams.end()) Drop(stream);
    }
    for (const auto& [local_rank, request] : step.spawns) {
      Do(node.Spawned(local_rank, events.spawn(local_rank, request)));
    }
    notice.Look();
  }

  // Reports one rank that waits for others as failed, for `why`.
  void Fail(const std::string& why) {
    for (int i = 0; !hushed && i < place.nproc; ++i) {
      if (node.state(i) != MpiState::kInMpi) continue;
      return events.on_failure({i, 1, why});
    }
  }

  void OnMessages(const absl::StatusOr<NodeMessages>& all) {
    if (all.ok()) return Do(node.TakeMessages(*all));
    Fail(absl::StrCat("MPI's start cannot meet the other nodes: ", all.status().message()));
  }

  asio::io_context& loop;
  const PmiPlace place;
  const Events events;
  PmiNode node;
  std::list<Stream> streams;
  std::vector<StreamAt> streams_of;  // By local rank; end() if the rank has no stream.
  std::unique_ptr<PmiPort> port;     // Set if workers come by a port.
  std::optional<NodeExchange> exchange;
  AwaitedNotice notice;
  bool hushed = false;
};

absl::StatusOr<std::unique_ptr<PmiServer>> PmiServer::Open(asio::io_context& loop, PmiPlace place,
                                                           bool by_port, std::string store_host,
                                                           uint16_t store_port, Events events) {
  const bool any_user = place.any_user;
  const ExchangePlace meeting{std::move(store_host), store_port, place.node_rank, place.num_nodes};
  auto state = std::make_unique<State>(loop, std::move(place), std::move(events));
  State& s = *state;
  if (meeting.num_nodes > 1 && store_port != 0) {
    s.exchange.emplace(loop, meeting,
                       NodeExchange::Events{[&s](const auto& all) { s.OnMessages(all); },
                                            [&s](const std::string& line) {
                                              // Others may run, and never call it either.
                                              if (!s.hushed && s.node.used()) LogWarning(line);
                                            }});
  }
  if (by_port) {
    HLAUNCH_ASSIGN_OR_RETURN(s.port,
                             PmiPort::Open(loop, any_user, [&s](UniqueFd fd, int local_rank) {
                               s.Welcome(std::move(fd), local_rank);
                             }));
  }
  return std::unique_ptr<PmiServer>(new PmiServer(std::move(state)));
}

PmiServer::PmiServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PmiServer::~PmiServer() = default;

absl::StatusOr<PmiLink> PmiServer::Link(int local_rank) {
  State& s = *state_;
  PmiLink link;
  if (s.port) {
    link.port = s.port->number();
    link.id = s.port->NewId(local_rank);
    return link;
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot make a socket for MPI's start: ", std::strerror(errno)));
  }
  link.fd = UniqueFd(ends[1]);
  s.Add(UniqueFd(ends[0]), local_rank);
  return link;
}

void PmiServer::Exited(int local_rank) { state_->Do(state_->node.Exited(local_rank)); }

void PmiServer::Hush() {
  state_->hushed = true;
  state_->notice.Hush();
}

bool PmiServer::used() const { return state_->node.used(); }

}  // namespace hlaunch
