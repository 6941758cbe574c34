// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/c10d_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "rendezvous/c10d_protocol.h"
#include "rendezvous/rare_log.h"

namespace hlaunch {
namespace {

using asio::posix::stream_descriptor;

constexpr size_t kReadBytes = 64 << 10;
// Replies that all clients together may leave unread; one alone has max_unread_bytes and the
// largest reply of all.
constexpr size_t kMaxUnreadOfAll = 512 << 20;
constexpr int kAcceptsPerTurn = 64;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

std::string PeerName(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  auto* address = reinterpret_cast<sockaddr*>(&peer);
  if (::getpeername(fd, address, &size) != 0 ||
      ::getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return absl::StrCat(host, " port ", port);
}

// One client. Belongs to the loop thread. Owned by the loop's table and by the handler that waits
// for its socket, which may outlive the entry in the table by one turn.
struct Connection {
  Connection(asio::io_context& io, KeySpace::WaiterId its_id) : id(its_id), socket(io), timer(io) {}

  // Requests are taken only while nothing stands in the way of their replies.
  bool blocked(size_t max_unread) const {
    return held.has_value() || out.size() - sent > max_unread;
  }

  const KeySpace::WaiterId id;
  stream_descriptor socket;
  asio::steady_timer timer;  // For C10dParser::awaits_silence().
  C10dParser parser;
  std::string unparsed;             // Read, but the connection is blocked.
  std::optional<C10dRequest> held;  // Came while its client waits; runs after.
  std::string out;                  // Replies; the first `sent` bytes are gone.
  size_t sent = 0;
  bool waiting = false;  // Armed in the key space.
  bool reading = false;  // A handler waits for bytes.
  bool writing = false;  // A handler waits for room.
  bool open = true;
  size_t counted = 0;  // Of `out`, in the loop's sum.
};
using ConnectionPtr = std::shared_ptr<Connection>;

absl::Status CheckReply(size_t bytes) {
  if (bytes <= kMaxC10dMessageBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a reply of ", bytes, " bytes, at most ", kMaxC10dMessageBytes));
}

absl::Status PutValues(const KeySpace& keys, const std::vector<std::string>& wanted,
                       std::string* out) {
  const auto value_of = [&keys](const std::string& key) {
    const std::string* value = keys.Find(key);  // Null: deleted since the client waited for it.
    return value != nullptr ? absl::string_view(*value) : absl::string_view();
  };
  size_t bytes = 0;
  for (const std::string& key : wanted) bytes += value_of(key).size();
  HLAUNCH_RETURN_IF_ERROR(CheckReply(bytes));
  for (const std::string& key : wanted) PutText(out, value_of(key));
  return absl::OkStatus();
}

absl::Status PutKeys(const KeySpace& keys, std::string* out) {
  const std::vector<std::string> all = keys.Keys();
  size_t bytes = 0;
  for (const std::string& key : all) bytes += key.size();
  HLAUNCH_RETURN_IF_ERROR(CheckReply(bytes));
  PutInt64(out, static_cast<int64_t>(all.size()));
  for (const std::string& key : all) PutText(out, key);
  return absl::OkStatus();
}

// Runs what stores something and appends its reply, if it has one.
absl::Status Write(KeySpace& keys, C10dRequest request, std::string* out) {
  switch (request.op) {
    case C10dOp::kSet:
    case C10dOp::kMultiSet:
      for (size_t i = 0; i < request.keys.size(); ++i) {
        HLAUNCH_RETURN_IF_ERROR(keys.Set(request.keys[i], std::move(request.values[i])));
      }
      return absl::OkStatus();
    case C10dOp::kAppend:
      return keys.Append(request.keys[0], request.values[0]);
    case C10dOp::kQueuePush:
      return keys.QueuePush(request.keys[0], std::move(request.values[0]));
    case C10dOp::kCompareSet: {
      HLAUNCH_ASSIGN_OR_RETURN(
          const std::string value,
          keys.CompareAndSet(request.keys[0], request.values[0], request.values[1]));
      PutText(out, value);
      return absl::OkStatus();
    }
    case C10dOp::kAdd: {
      HLAUNCH_ASSIGN_OR_RETURN(const int64_t sum, keys.Add(request.keys[0], request.number));
      PutInt64(out, sum);
      return absl::OkStatus();
    }
    default:
      return absl::InternalError("not a request that stores something");
  }
}

// Runs `request` and appends its reply. Returns whether the client now waits: then its reply is
// one kC10dStopWaiting, once the key space says that it is ready.
absl::StatusOr<bool> Execute(KeySpace& keys, KeySpace::WaiterId who, C10dRequest request,
                             std::string* out) {
  bool waits = false;
  switch (request.op) {
    case C10dOp::kGet:
    case C10dOp::kMultiGet:
      HLAUNCH_RETURN_IF_ERROR(PutValues(keys, request.keys, out));
      break;
    case C10dOp::kListKeys:
      HLAUNCH_RETURN_IF_ERROR(PutKeys(keys, out));
      break;
    case C10dOp::kCheck:
      PutByte(out, keys.Check(request.keys) ? kC10dReady : kC10dNotReady);
      break;
    case C10dOp::kNumKeys:
      PutInt64(out, static_cast<int64_t>(keys.size()));
      break;
    case C10dOp::kDeleteKey:
      PutInt64(out, keys.Delete(request.keys[0]) ? 1 : 0);
      break;
    case C10dOp::kWait:
      waits = !keys.Wait(who, request.keys);
      if (!waits) PutByte(out, kC10dStopWaiting);
      break;
    case C10dOp::kBarrier: {
      HLAUNCH_ASSIGN_OR_RETURN(const bool open, keys.Barrier(who, request.keys[0], request.number));
      waits = !open;
      if (!waits) PutByte(out, kC10dStopWaiting);
      break;
    }
    case C10dOp::kCancelWait:
      keys.CancelWait(who);
      PutByte(out, kC10dWaitCanceled);
      break;
    case C10dOp::kPing:
      PutUint32(out, static_cast<uint32_t>(request.number));
      break;
    case C10dOp::kQueuePop: {
      const KeySpace::Popped popped = keys.QueuePop(who, request.keys[0]);
      PutInt64(out, popped.length_before);
      if (popped.length_before > 0) PutText(out, popped.value);
      break;
    }
    case C10dOp::kQueueLen:
      PutInt64(out, keys.QueueLength(request.keys[0]));
      break;
    case C10dOp::kWatchKey:
      PutByte(out, kC10dCallbackRegistered);
      break;
    default:
      HLAUNCH_RETURN_IF_ERROR(Write(keys, std::move(request), out));
  }
  return waits;
}

}  // namespace

// The thread and all it owns. Everything below "loop thread" runs there only.
//
// A connection's life:
//
//            bytes                     reply does not fit
//   reading -------> parse, execute ---------------------> writing
//      ^  ^               |                                   |
//      |  +---------------+ nothing more to take              |
//      +------------------------------------------------------+ room again
class C10dServer::Loop {
 public:
  Loop(std::optional<ListeningSocket> listener, C10dServerOptions options)
      : options_(options),
        port_(listener.has_value() ? listener->port : 0),
        acceptor_(io_),
        accept_pause_(io_),
        keys_(options.max_bytes) {
    if (!listener.has_value()) return;
    acceptor_.assign(listener->fd.get());
    listener->fd.Release();
  }

  ~Loop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  void Start() {
    if (acceptor_.is_open()) WaitForConnections();
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "c10d-store");
      io_.run();
    });
  }

  uint16_t port() const { return port_; }

  void Adopt(UniqueFd fd) {
    asio::post(io_, [this, fd = std::move(fd)]() mutable { Serve(std::move(fd)); });
  }

  void Reset() {
    Mutex mu;
    CondVar changed;
    bool done = false;
    asio::post(io_, [&] {
      CloseAll();
      MutexLock lock(&mu);
      done = true;
      changed.Signal();
    });
    MutexLock lock(&mu);
    while (!done) changed.Wait(&mu);
  }

 private:
  // ---- loop thread ----

  void WaitForConnections() {
    acceptor_.async_wait(stream_descriptor::wait_read, [this](std::error_code error) {
      if (!error) AcceptSome();
    });
  }

  UniqueFd Accept() {
    return UniqueFd(::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  void AcceptSome() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      UniqueFd fd = Accept();
      if (!fd.valid()) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) break;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          return PauseAccepting(errno);
        }
        continue;  // That connection is gone already: the next.
      }
      accepts_fail_ = false;
      Serve(std::move(fd));
    }
    WaitForConnections();
  }

  // The connection stays in the kernel's queue; asking again at once would spin.
  void PauseAccepting(int error) {
    if (!std::exchange(accepts_fail_, true)) {
      LogWarning(absl::StrCat("store: cannot accept connections on port ", port_, ": ",
                              std::strerror(error), "; trying again until it works"));
    }
    accept_pause_.expires_after(kAcceptPause);
    accept_pause_.async_wait([this](std::error_code cancelled) {
      if (!cancelled) AcceptSome();
    });
  }

  void Serve(UniqueFd fd) {
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    auto connection = std::make_shared<Connection>(io_, ++last_id_);
    std::error_code error;
    connection->socket.assign(fd.get(), error);
    if (error)
      return LogWarning(absl::StrCat("store: cannot serve a connection: ", error.message()));
    fd.Release();
    connections_.emplace(connection->id, connection);
    WaitForBytes(connection);
  }

  void WaitForBytes(const ConnectionPtr& connection) {
    if (!connection->open || std::exchange(connection->reading, true)) return;
    connection->socket.async_wait(stream_descriptor::wait_read,
                                  [this, connection](std::error_code) {
                                    connection->reading = false;
                                    if (connection->open) Read(connection);
                                  });
  }

  void Read(const ConnectionPtr& connection) {
    if (connection->blocked(options_.max_unread_bytes)) return;  // Whoever unblocks it reads on.
    const ssize_t got =
        ::recv(connection->socket.native_handle(), buffer_.data(), buffer_.size(), 0);
    if (got == 0) return CloseAndWake(connection);
    if (got < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        return CloseAndWake(connection);
      }
      return WaitForBytes(connection);
    }
    connection->timer.cancel();
    TakeRequests(connection, absl::string_view(buffer_.data(), static_cast<size_t>(got)));
  }

  // Executes what `bytes` hold, as far as replies can go out. Ends every turn of a connection.
  void TakeRequests(const ConnectionPtr& connection, absl::string_view bytes) {
    const absl::Status taken = Take(connection, &bytes);
    if (!taken.ok()) return Refuse(connection, taken);
    std::string rest(bytes);
    connection->unparsed = std::move(rest);
    Send(connection);
    WakeReady();
    Continue(connection);
  }

  absl::Status Take(const ConnectionPtr& connection, absl::string_view* bytes) {
    while (!connection->blocked(options_.max_unread_bytes)) {
      HLAUNCH_ASSIGN_OR_RETURN(std::optional<C10dRequest> request, connection->parser.Next(bytes));
      if (!request.has_value()) break;
      HLAUNCH_RETURN_IF_ERROR(Run(*connection, *std::move(request)));
    }
    return absl::OkStatus();
  }

  absl::Status Run(Connection& connection, C10dRequest request) {
    if (connection.waiting && request.op != C10dOp::kCancelWait) {
      if (connection.parser.dialect() == C10dDialect::kTorch22) {
        connection.held = std::move(request);
        return absl::OkStatus();
      }
      // These have no CANCEL_WAIT: whoever goes on has timed out, and a late reply to its wait
      // would be taken for the reply to this request. (If the key came between its time-out and
      // this request, that has happened already; PyTorch's own server did no better.)
      keys_.CancelWait(connection.id);
    }
    HLAUNCH_ASSIGN_OR_RETURN(connection.waiting,
                             Execute(keys_, connection.id, std::move(request), &connection.out));
    Recount(connection);
    if (unread_ <= kMaxUnreadOfAll) return absl::OkStatus();
    return absl::ResourceExhaustedError("all clients together leave too many replies unread");
  }

  // What comes next for a connection whose turn is over.
  void Continue(const ConnectionPtr& connection) {
    if (!connection->open || connection->blocked(options_.max_unread_bytes)) return;
    if (!connection->unparsed.empty()) {
      // A turn of its own: a client that asks for much must let others in between.
      asio::post(io_, [this, connection] {
        if (!connection->open || connection->unparsed.empty()) return;
        const std::string bytes = std::exchange(connection->unparsed, {});
        TakeRequests(connection, bytes);
      });
      return;
    }
    if (connection->parser.awaits_silence()) WaitForSilence(connection);
    WaitForBytes(connection);
  }

  void WaitForSilence(const ConnectionPtr& connection) {
    connection->timer.expires_after(options_.silence);
    connection->timer.async_wait([this, connection](std::error_code cancelled) {
      if (cancelled || !connection->open || !connection->parser.awaits_silence()) return;
      const absl::Status ran = Run(*connection, connection->parser.Silence());
      if (!ran.ok()) return Refuse(connection, ran);
      TakeRequests(connection, "");
    });
  }

  void Send(const ConnectionPtr& connection) {
    std::string& out = connection->out;
    while (connection->open && !connection->writing && connection->sent < out.size()) {
      const ssize_t put = ::send(connection->socket.native_handle(), out.data() + connection->sent,
                                 out.size() - connection->sent, MSG_NOSIGNAL);
      if (put >= 0) {
        connection->sent += static_cast<size_t>(put);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        WaitForRoom(connection);  // Ends the loop.
      } else if (errno != EINTR) {
        return Close(connection);
      }
    }
    // More is dropped than is moved: a client that is always behind costs no more memory for it.
    if (connection->sent >= out.size() - connection->sent) {
      out.erase(0, connection->sent);
      connection->sent = 0;
      if (out.empty() && out.capacity() > kReadBytes) out.shrink_to_fit();
    }
    Recount(*connection);
  }

  // Keeps the sum of all replies that were not read; to be called when `out` has changed.
  void Recount(Connection& connection) {
    if (!connection.open) return;
    unread_ += connection.out.size() - connection.counted;
    connection.counted = connection.out.size();
  }

  void WaitForRoom(const ConnectionPtr& connection) {
    connection->writing = true;
    connection->socket.async_wait(stream_descriptor::wait_write,
                                  [this, connection](std::error_code) {
                                    connection->writing = false;
                                    if (!connection->open) return;
                                    Send(connection);
                                    WakeReady();
                                    Continue(connection);
                                  });
  }

  // Tells all whose keys have come. Closing one may make another ready: until none is left.
  void WakeReady() {
    for (;;) {
      const std::vector<KeySpace::WaiterId> ready = keys_.TakeReady();
      if (ready.empty()) return;
      for (const KeySpace::WaiterId id : ready) {
        const auto it = connections_.find(id);
        if (it == connections_.end()) continue;
        const ConnectionPtr connection = it->second;
        connection->waiting = false;
        PutByte(&connection->out, kC10dStopWaiting);
        Send(connection);
        if (connection->held.has_value()) RunHeld(connection);
      }
    }
  }

  void RunHeld(const ConnectionPtr& connection) {
    asio::post(io_, [this, connection] {
      if (!connection->open || !connection->held.has_value()) return;
      C10dRequest request = *std::move(connection->held);
      connection->held.reset();
      const absl::Status ran = Run(*connection, std::move(request));
      if (!ran.ok()) return Refuse(connection, ran);
      const std::string bytes = std::exchange(connection->unparsed, {});
      TakeRequests(connection, bytes);
    });
  }

  void Refuse(const ConnectionPtr& connection, const absl::Status& why) {
    const std::string line = refusals_.Admit(
        absl::StrCat("store: closed the connection from ",
                     PeerName(connection->socket.native_handle()), ": ", why.message()),
        MonotonicClock().Now());
    CloseAndWake(connection);
    if (!line.empty()) LogWarning(line);
  }

  void CloseAndWake(const ConnectionPtr& connection) {
    Close(connection);
    WakeReady();
  }

  void Close(const ConnectionPtr& connection) {
    if (!std::exchange(connection->open, false)) return;
    unread_ -= std::exchange(connection->counted, 0);
    keys_.CancelWait(connection->id);
    connections_.erase(connection->id);
    connection->timer.cancel();
    std::error_code ignored;
    connection->socket.close(ignored);
  }

  void CloseAll() {
    const auto all = std::exchange(connections_, {});
    for (const auto& [id, connection] : all) Close(connection);
    keys_ = KeySpace(options_.max_bytes);
    // Who connected before the reset belongs to the old round, accepted or not.
    errno = 0;
    while (acceptor_.is_open() && (Accept().valid() || errno == ECONNABORTED || errno == EINTR)) {
    }
  }

  const C10dServerOptions options_;
  const uint16_t port_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  stream_descriptor acceptor_;
  asio::steady_timer accept_pause_;
  bool accepts_fail_ = false;
  KeySpace keys_;
  size_t unread_ = 0;  // Bytes of replies in all connections.
  RareLog refusals_;
  KeySpace::WaiterId last_id_ = 0;
  absl::flat_hash_map<KeySpace::WaiterId, ConnectionPtr> connections_;
  std::string buffer_ = std::string(kReadBytes, '\0');  // Idle connections have none of their own.
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<C10dServer>> C10dServer::Start(
    std::optional<ListeningSocket> listener, C10dServerOptions options) {
  try {
    auto loop = std::make_unique<Loop>(std::move(listener), options);
    loop->Start();
    return std::unique_ptr<C10dServer>(new C10dServer(std::move(loop)));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start the store: ", error.what()));
  }
}

C10dServer::C10dServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
C10dServer::~C10dServer() = default;
uint16_t C10dServer::port() const { return loop_->port(); }
void C10dServer::Adopt(UniqueFd connection) { loop_->Adopt(std::move(connection)); }
void C10dServer::Reset() { loop_->Reset(); }

}  // namespace hlaunch
