// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/mpi/awaited_notice.h"
#include "agent/mpi/node_exchange.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/rare_log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/listening/accept.h"
#include "rendezvous/listening/listen.h"

namespace hlaunch {
namespace {

constexpr size_t kReadAtOnce = 64 << 10;
constexpr size_t kMaxUnread = 4 << 20;  // Answers that a worker does not read.
constexpr int kAcceptsPerTurn = 64;
constexpr size_t kMaxGuests = 256;  // Connections that have not yet said which worker they are.

}  // namespace

struct PmiServer::State {
  // One worker's stream, or a connection that has not yet said which worker it is.
  struct Stream {
    explicit Stream(asio::io_context& loop) : fd(loop) {}
    asio::posix::stream_descriptor fd;
    int local_rank = -1;  // -1 until it is known.
    PmiReader greeting;   // Used until then.
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
        ids(static_cast<size_t>(place.nproc), 0),
        listener(the_loop),
        pause(the_loop),
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
    if (local_rank >= 0) {
      BelongsTo(stream, local_rank);
    } else if (++guests > kMaxGuests) {
      for (StreamAt oldest = streams.begin(); oldest != streams.end(); ++oldest) {
        if (oldest->local_rank < 0) {
          Drop(oldest);
          break;
        }
      }
    }
    Listen(stream);
  }

  void BelongsTo(StreamAt stream, int local_rank) {
    stream->local_rank = local_rank;
    streams_of[static_cast<size_t>(local_rank)] = stream;
  }

  void Drop(StreamAt stream) {
    if (stream->local_rank < 0) {
      --guests;
    } else {
      streams_of[static_cast<size_t>(stream->local_rank)] = streams.end();
    }
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
    if (stream->local_rank < 0) {
      if (!Welcome(stream, text)) return Drop(stream);
      return Listen(stream);
    }
    const int local_rank = stream->local_rank;
    Listen(stream);  // Take and Do may drop the stream.
    Do(node.Take(local_rank, text));
  }

  // Returns false if `stream` does not belong to an expected worker.
  bool Welcome(StreamAt stream, absl::string_view text) {
    const absl::StatusOr<std::vector<PmiRequest>> requests = stream->greeting.Take(text);
    if (!requests.ok() || requests->size() > 1) return false;
    if (requests->empty()) return true;
    const std::optional<int> id = PmiIdIn(requests->front());
    for (int i = 0; id && i < place.nproc; ++i) {
      int& expected = ids[static_cast<size_t>(i)];
      if (expected == 0 || expected != *id) continue;
      expected = 0;  // An id works only once.
      --guests;
      BelongsTo(stream, i);
      Say(stream, WelcomeOfPmi(place.world_size, place.first_rank + i));
      return true;
    }
    const std::string line = strangers.Admit(
        "somebody came to the port of MPI's start who is no worker of this round, or a worker came "
        "a second time: a worker can run one MPI program",
        MonotonicClock().Now());
    if (!line.empty()) LogWarning(line);
    return false;
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

  void AwaitConnections() {
    listener.async_wait(asio::posix::descriptor_base::wait_read,
                        [this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
                          if (!error && !alive.expired()) Accept();
                        });
  }

  void Accept() {
    const int end = AcceptConnections(listener.native_handle(), kAcceptsPerTurn,
                                      [this](UniqueFd fd) { Admit(std::move(fd)); });
    if (!OutOfDescriptors(end)) return AwaitConnections();
    pause.expires_after(kAcceptPause);
    pause.async_wait([this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
      if (!error && !alive.expired()) Accept();
    });
  }

  void Admit(UniqueFd fd) {
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Add(std::move(fd), -1);
  }

  asio::io_context& loop;
  const PmiPlace place;
  const Events events;
  PmiNode node;
  std::list<Stream> streams;
  std::vector<StreamAt> streams_of;  // By local rank; end() if the rank has no stream.
  size_t guests = 0;                 // Streams that do not belong to a worker yet.
  RareLog strangers;                 // Limits the warnings about them.
  std::vector<int> ids;              // By local rank; 0: already used, or the worker uses no port.
  uint16_t port = 0;
  asio::posix::stream_descriptor listener;  // On the port, if there is one.
  asio::steady_timer pause;                 // Before the next accept, if no descriptor is left.
  std::optional<NodeExchange> exchange;
  AwaitedNotice notice;
  bool hushed = false;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.
};

absl::StatusOr<std::unique_ptr<PmiServer>> PmiServer::Open(asio::io_context& loop, PmiPlace place,
                                                           bool by_port, std::string store_host,
                                                           uint16_t store_port, Events events) {
  const ExchangePlace meeting{std::move(store_host), store_port, place.node_rank, place.num_nodes};
  auto state = std::make_unique<State>(loop, std::move(place), std::move(events));
  State& s = *state;
  if (meeting.num_nodes > 1 && store_port != 0) {
    s.exchange.emplace(loop, meeting,
                       NodeExchange::Events{[&s](const auto& all) { s.OnMessages(all); },
                                            [&s](const std::string& line) {
                                              if (!s.hushed) LogWarning(line);
                                            }});
  }
  if (by_port) {
    HLAUNCH_ASSIGN_OR_RETURN(ListeningSocket socket, hlaunch::Listen("127.0.0.1", 0));
    asio::error_code error;
    s.listener.assign(socket.fd.get(), error);
    if (error) return absl::ResourceExhaustedError(error.message());
    socket.fd.Release();
    s.port = socket.port;
    s.AwaitConnections();
  }
  return std::unique_ptr<PmiServer>(new PmiServer(std::move(state)));
}

PmiServer::PmiServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PmiServer::~PmiServer() = default;

absl::StatusOr<PmiLink> PmiServer::Link(int local_rank) {
  State& s = *state_;
  PmiLink link;
  if (s.port != 0) {
    constexpr uint64_t kPositive = 0x7fffffff;
    link.port = s.port;
    link.id = static_cast<int>(NewIncarnation() & kPositive) | 1;
    s.ids[static_cast<size_t>(local_rank)] = link.id;
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
