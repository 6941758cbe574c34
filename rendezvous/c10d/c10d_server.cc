// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/c10d/c10d_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/rare_log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/c10d/c10d_protocol.h"
#include "rendezvous/c10d/store_streams.h"

namespace hlaunch {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr int kReadsPerTurn = 8;  // Of a client that has sent more than kReadBytes.
constexpr int kEventsPerTurn = 256;
// Replies that all clients together may leave unread; one alone has
// max_unread_bytes and the largest reply of all.
constexpr size_t kMaxUnreadOfAll = 512 << 20;
constexpr size_t kKeptBytes = 4 << 10;  // Of room for replies, by a connection that has none.
constexpr size_t kMaxCarried = 16384;   // Connections that one proxy may bring.
constexpr size_t kMaxWarnedOf = 1000;   // Sources; of more there is nothing to learn.
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

// Of an end of the connection, as getpeername or getsockname tells it.
StoreAddress AddressOf(int fd, int (*tell)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  tell(fd, address, &size);
  return ToStoreAddress(*address);
}

// One client. Belongs to the loop thread and its table.
struct Connection {
  Connection(KeySpace::WaiterId its_id, UniqueFd its_fd, const C10dServerOptions& options)
      : id(its_id), fd(std::move(its_fd)), parser(options.older, options.limits) {}

  // One of the streams that `its_carrier` brings.
  Connection(KeySpace::WaiterId its_id, Connection& its_carrier, uint32_t its_stream,
             const C10dServerOptions& options)
      : Connection(its_id, UniqueFd(), options) {
    carrier = its_carrier.id;
    stream = its_stream;
  }

  // Requests are taken only while nothing stands in the way of their replies.
  bool blocked(size_t max_unread) const {
    return held.has_value() || out.size() - sent > max_unread;
  }

  const KeySpace::WaiterId id;
  UniqueFd fd;
  uint32_t interest = 0;  // What the kernel has been asked to tell of it.
  C10dParser parser;
  std::string unparsed;             // Read, but the connection is blocked.
  std::optional<C10dRequest> held;  // Came while its client waits; runs after.
  std::string out;                  // Replies; the first `sent` bytes are gone.
  size_t sent = 0;
  size_t counted = 0;      // Of `out`, in the loop's sum.
  Instant silent_until;    // While silence is awaited: its entry in the loop's list.
  bool waiting = false;    // Armed in the key space.
  bool scheduled = false;  // Has a turn of its own to come.
  bool opened = false;     // Its first bytes have come.

  KeySpace::WaiterId carrier = 0;  // On whose socket its bytes come; 0: it has its own.
  uint32_t stream = 0;             // Its number there.
  // Of a node's proxy: it carries others.
  struct Carried {
    FrameReader frames{/*greeted=*/true};
    // 0: ended here; what still comes of it is nobody's.
    absl::flat_hash_map<uint32_t, KeySpace::WaiterId> streams;
  };
  std::unique_ptr<Carried> carried;
};

absl::Status CheckReply(const KeySpace& keys, size_t bytes) {
  const size_t most = MaxC10dMessageBytes(keys.limits());
  if (bytes <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a reply of ", bytes, " bytes, at most ", most));
}

absl::Status PutValues(const KeySpace& keys, const std::vector<std::string>& wanted,
                       std::string* out) {
  const auto value_of = [&keys](const std::string& key) {
    const std::string* value = keys.Find(key);  // Null: deleted since the client waited for it.
    return value != nullptr ? absl::string_view(*value) : absl::string_view();
  };
  size_t bytes = 0;
  for (const std::string& key : wanted) bytes += value_of(key).size();
  HLAUNCH_RETURN_IF_ERROR(CheckReply(keys, bytes));
  for (const std::string& key : wanted) PutText(out, value_of(key));
  return absl::OkStatus();
}

absl::Status PutKeys(const KeySpace& keys, std::string* out) {
  const std::vector<std::string> all = keys.Keys();
  size_t bytes = 0;
  for (const std::string& key : all) bytes += key.size();
  HLAUNCH_RETURN_IF_ERROR(CheckReply(keys, bytes));
  PutInt64(out, static_cast<int64_t>(all.size()));
  for (const std::string& key : all) PutText(out, key);
  return absl::OkStatus();
}

// A key that is watched and is about to be changed.
struct Change {
  std::string key;
  bool existed = false;
  std::string old;
};

// Whether `request` changes its keys, now that one holds `old` (null: it is absent).
bool Changes(const C10dRequest& request, const std::string* old) {
  switch (request.op) {
    case C10dOp::kSet:
    case C10dOp::kMultiSet:
    case C10dOp::kAdd:
    case C10dOp::kAppend:
      return true;
    case C10dOp::kDeleteKey:
      return old != nullptr;
    case C10dOp::kCompareSet:
      return (old != nullptr ? absl::string_view(*old) : "") == request.values[0];
    default:
      return false;
  }
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

// Runs `request` and appends its reply. Returns whether the client now waits:
// then its reply is one kC10dStopWaiting, once the key space says that it is
// ready.
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
// Not Asio's loop: that asks the kernel anew for each message of each
// connection, which is a third of what one costs.
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
      : options_(std::move(options)),
        port_(listener.has_value() ? listener->port : 0),
        events_(::epoll_create1(EPOLL_CLOEXEC)),
        called_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        keys_(options_.limits),
        access_(options_.access) {
    if (listener.has_value()) listener_ = std::move(listener->fd);
    const int on = 1;  // What it accepts has it too.
    if (listener_.valid()) {
      ::setsockopt(listener_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (!events_.valid() || !called_.valid() || !Watch(called_.get(), kCalled, EPOLLIN) ||
        (listener_.valid() && !Watch(listener_.get(), kListener, EPOLLIN))) {
      throw std::system_error(errno, std::generic_category());
    }
  }

  ~Loop() {
    Post([this] { stopped_ = true; });
    if (thread_.joinable()) thread_.join();
  }

  void Start() {
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "c10d-store");
      while (!stopped_) Turn();
    });
  }

  uint16_t port() const { return port_; }

  void Adopt(UniqueFd fd) {
    // A std::function is copied; this is the only copy that runs.
    Post([this, shared = std::make_shared<UniqueFd>(std::move(fd))] {
      const int on = 1;
      ::setsockopt(shared->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      ::fcntl(shared->get(), F_SETFD, FD_CLOEXEC);
      ::fcntl(shared->get(), F_SETFL, ::fcntl(shared->get(), F_GETFL) | O_NONBLOCK);
      Serve(std::move(*shared));
    });
  }

  void Reset(std::optional<StoreAccess> access) {
    Mutex mu;
    CondVar changed;
    bool done = false;
    Post([&] {
      CloseAll();
      if (access.has_value()) access_ = std::move(access);
      warned_of_.clear();
      MutexLock lock(&mu);
      done = true;
      changed.Signal();
    });
    MutexLock lock(&mu);
    while (!done) changed.Wait(&mu);
  }

 private:
  // Ids of connections are larger.
  static constexpr uint64_t kListener = 0;
  static constexpr uint64_t kCalled = 1;
  // Told once for each change, so in the order in which bytes come.
  static constexpr uint32_t kNothing = EPOLLET;
  static constexpr uint32_t kReads = EPOLLET | EPOLLIN | EPOLLRDHUP;

  void Post(std::function<void()> call) {
    {
      MutexLock lock(&mu_);
      calls_.push_back(std::move(call));
    }
    const uint64_t one = 1;
    if (::write(called_.get(), &one, sizeof(one)) < 0) return;  // Full: it is told already.
  }

  // ---- loop thread ----

  void Turn() {
    epoll_event events[kEventsPerTurn];
    const int ready = ::epoll_wait(events_.get(), events, kEventsPerTurn, Patience());
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[i];
      if (event.data.u64 == kListener) {
        AcceptSome();
      } else if (event.data.u64 == kCalled) {
        RunCalls();
      } else {
        Serve(event.data.u64, event.events);
      }
    }
    TakeTurns();
    EndSilences();
    SendToCarriers();
  }

  void Serve(KeySpace::WaiterId id, uint32_t events) {
    Connection* connection = FindConnection(id);
    if (connection != nullptr && (events & EPOLLOUT) != 0) {
      Resume(*connection);
      connection = FindConnection(id);
    }
    if (connection == nullptr || (events & ~uint32_t{EPOLLOUT}) == 0) return;
    if ((connection->interest & EPOLLIN) != 0) {
      Read(*connection, (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
    } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
      CloseAndWake(id);
    }
  }

  // How long there is nothing to do, in milliseconds; -1 for ever.
  int Patience() const {
    if (!turns_.empty()) return 0;
    Instant next = Instant::max();
    if (!silences_.empty()) next = silences_.begin()->first;
    if (accepts_fail_) next = std::min(next, accept_again_);
    if (next == Instant::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - MonotonicClock().Now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }

  bool Watch(int fd, uint64_t id, uint32_t interest, int operation = EPOLL_CTL_ADD) {
    epoll_event event{};
    event.events = interest;
    event.data.u64 = id;
    return ::epoll_ctl(events_.get(), operation, fd, &event) == 0;
  }

  void RunCalls() {
    uint64_t count = 0;
    if (::read(called_.get(), &count, sizeof(count)) < 0) return;
    std::vector<std::function<void()>> calls;
    {
      MutexLock lock(&mu_);
      calls.swap(calls_);
    }
    for (const auto& call : calls) call();
  }

  Connection* FindConnection(KeySpace::WaiterId id) {
    const auto it = connections_.find(id);
    return it == connections_.end() ? nullptr : it->second.get();
  }

  UniqueFd Accept() {
    return UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  void AcceptSome() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      UniqueFd fd = Accept();
      if (fd.valid()) {
        Serve(std::move(fd));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return;
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return PauseAccepting(errno);
      }  // Else that connection is gone already: the next.
    }
  }

  // The connection stays in the kernel's queue; asking again at once would
  // spin.
  void PauseAccepting(int error) {
    LogRarely(absl::StrCat("store: cannot accept connections on port ", port_, ": ",
                           std::strerror(error), "; trying again until it works"));
    Watch(listener_.get(), kListener, 0, EPOLL_CTL_MOD);
    accepts_fail_ = true;
    accept_again_ = MonotonicClock().Now() + kAcceptPause;
  }

  // Says once of each source what there is to say.
  bool Admit(int fd) {
    if (!access_.has_value()) return true;
    const StoreAddress source = AddressOf(fd, ::getpeername);
    const AdmissionVerdict verdict =
        DecideAdmission(*access_, source, AddressOf(fd, ::getsockname));
    if (!verdict.reason.empty() && warned_of_.size() < kMaxWarnedOf &&
        warned_of_.insert(source).second) {
      LogWarning(absl::StrCat("store: ", verdict.reason));
    }
    return verdict.admitted;
  }

  void Serve(UniqueFd fd) {
    if (!Admit(fd.get())) return;
    const KeySpace::WaiterId id = ++last_id_;
    auto connection = std::make_unique<Connection>(id, std::move(fd), options_);
    connection->interest = kReads;
    if (!Watch(connection->fd.get(), id, kReads)) {
      return LogRarely(absl::StrCat("store: cannot serve a connection: ", std::strerror(errno)));
    }
    connections_.emplace(id, std::move(connection));
  }

  // Asks the kernel for what the connection can use: bytes unless it is
  // blocked, room if it must.
  void SetInterest(Connection& connection) {
    if (connection.carrier != 0) return;
    const bool reads =
        !connection.blocked(options_.max_unread_bytes) && connection.unparsed.empty();
    const uint32_t interest = (reads ? kReads : kNothing) |
                              (connection.out.size() > connection.sent ? uint32_t{EPOLLOUT} : 0);
    if (interest == connection.interest) return;
    connection.interest = interest;
    Watch(connection.fd.get(), connection.id, interest, EPOLL_CTL_MOD);
  }

  // The kernel tells of bytes once, when they come. Fewer than there was room for were the last;
  // of a client that has `hung_up` the end comes after them.
  void Read(Connection& connection, bool hung_up) {
    const KeySpace::WaiterId id = connection.id;
    for (int i = 0; i < kReadsPerTurn; ++i) {
      const ssize_t got = ::recv(connection.fd.get(), buffer_.data(), buffer_.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (got <= 0) return CloseAndWake(id);
      const absl::string_view bytes(buffer_.data(), static_cast<size_t>(got));
      if (!std::exchange(connection.opened, true) && bytes[0] == kStreamsGreeting[0]) {
        connection.carried = std::make_unique<Connection::Carried>();
      }
      if (connection.carried != nullptr) {
        TakeFrames(connection, bytes);
      } else {
        AwaitSilence(connection, Instant());
        TakeRequests(connection, bytes);
      }
      if (FindConnection(id) == nullptr || (connection.interest & EPOLLIN) == 0) return;
      if (!hung_up && static_cast<size_t>(got) < buffer_.size()) return;
    }
    Watch(connection.fd.get(), id, connection.interest, EPOLL_CTL_MOD);  // It tells again.
  }

  // The connection may be closed after.
  void TakeFrames(Connection& carrier, absl::string_view bytes) {
    const absl::Status taken = carrier.carried->frames.Take(
        bytes,
        [&](uint32_t stream, absl::string_view piece) { TakePiece(carrier, stream, piece); });
    if (!taken.ok()) Refuse(carrier, taken);
  }

  // What a carrier brings. It stays open, whatever becomes of the stream.
  void TakePiece(Connection& carrier, uint32_t stream, absl::string_view piece) {
    auto& streams = carrier.carried->streams;
    auto it = streams.find(stream);
    if (piece.empty()) {  // Its client is gone.
      if (it == streams.end()) return;
      const KeySpace::WaiterId id = it->second;
      if (id != 0) EndStream(carrier, stream);
      streams.erase(it);
      return CloseAndWake(id);
    }
    if (it == streams.end()) {
      const bool room = streams.size() < kMaxCarried;
      const KeySpace::WaiterId id = room ? ++last_id_ : 0;
      it = streams.emplace(stream, id).first;
      if (!room) return EndStream(carrier, stream);
      connections_.emplace(id, std::make_unique<Connection>(id, carrier, stream, options_));
    }
    if (it->second == 0) return;
    Connection& connection = *FindConnection(it->second);
    AwaitSilence(connection, Instant());
    const bool behind =
        connection.blocked(options_.max_unread_bytes) || !connection.unparsed.empty();
    if (!behind) return TakeRequests(connection, piece);
    // On a socket of its own it would not be read.
    connection.unparsed.append(piece.data(), piece.size());
    if (connection.unparsed.size() > MaxC10dMessageBytes(options_.limits)) {
      Refuse(connection, absl::ResourceExhaustedError("it sends much behind a wait"));
    }
  }

  // What streams have to say goes out once a turn, in one piece for each carrier. Closing one may
  // make another ready: until none is left.
  void SendToCarriers() {
    while (!to_send_.empty()) {
      for (const KeySpace::WaiterId id : std::exchange(to_send_, {})) {
        Connection* carrier = FindConnection(id);
        if (carrier == nullptr) continue;
        if (Send(*carrier)) {
          SetInterest(*carrier);
        } else {
          CloseAndWake(id);
        }
      }
    }
  }

  void EndStream(Connection& carrier, uint32_t stream) {
    PutFrame(&carrier.out, stream, "");
    Recount(carrier);
    to_send_.insert(carrier.id);
  }

  bool SendByCarrier(Connection& connection) {
    if (connection.out.empty()) return true;
    Connection& carrier = *FindConnection(connection.carrier);
    PutFrame(&carrier.out, connection.stream, connection.out);
    connection.out = std::string();
    Recount(connection);
    Recount(carrier);
    to_send_.insert(carrier.id);
    return true;
  }

  // Executes what `bytes` hold, as far as replies can go out. The connection
  // may be closed after.
  void TakeRequests(Connection& connection, absl::string_view bytes) {
    const KeySpace::WaiterId id = connection.id;
    if (const absl::Status taken = Take(connection, &bytes); !taken.ok()) {
      return Refuse(connection, taken);
    }
    if (!bytes.empty()) {
      connection.unparsed = std::string(bytes);
    } else if (connection.unparsed.capacity() > 0) {
      connection.unparsed = std::string();
    }
    if (!Send(connection)) return CloseAndWake(id);
    if (!told_.empty()) SendToTold();
    WakeReady();
    if (FindConnection(id) != nullptr) Continue(connection);
  }

  absl::Status Take(Connection& connection, absl::string_view* bytes) {
    while (!connection.blocked(options_.max_unread_bytes)) {
      HLAUNCH_ASSIGN_OR_RETURN(std::optional<C10dRequest> request, connection.parser.Next(bytes));
      if (!request.has_value()) break;
      HLAUNCH_RETURN_IF_ERROR(Run(connection, *std::move(request)));
    }
    return absl::OkStatus();
  }

  absl::Status Run(Connection& connection, C10dRequest request) {
    if (connection.waiting && request.op != C10dOp::kCancelWait) {
      if (connection.parser.dialect() == C10dDialect::kTorch22) {
        connection.held = std::move(request);
        return absl::OkStatus();
      }
      // These have no CANCEL_WAIT: whoever goes on has timed out, and a late
      // reply to its wait would be taken for the reply to this request. (If the
      // key came between its time-out and this request, that has happened
      // already; PyTorch's own server did no better.)
      keys_.CancelWait(connection.id);
    }
    if (request.op == C10dOp::kWatchKey) watchers_[request.keys[0]].insert(connection.id);
    std::vector<Change> changes;
    if (!watchers_.empty()) changes = WatchedChanges(request);
    HLAUNCH_ASSIGN_OR_RETURN(connection.waiting,
                             Execute(keys_, connection.id, std::move(request), &connection.out));
    Recount(connection);
    for (const Change& change : changes) Tell(change);
    if (unread_ <= std::max(kMaxUnreadOfAll, 2 * MaxC10dMessageBytes(options_.limits))) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError("all clients together leave too many replies unread");
  }

  // What `request` is about to do to keys that are watched.
  std::vector<Change> WatchedChanges(const C10dRequest& request) const {
    std::vector<Change> changes;
    for (const std::string& key : request.keys) {
      if (!watchers_.contains(key)) continue;
      const std::string* old = keys_.Find(key);
      if (Changes(request, old)) changes.push_back({key, old != nullptr, old ? *old : ""});
    }
    return changes;
  }

  void Tell(const Change& change) {
    const std::string* now = keys_.Find(change.key);
    const uint8_t kind = now == nullptr   ? kC10dKeyDeleted
                         : change.existed ? kC10dKeyUpdated
                                          : kC10dKeyCreated;
    for (const KeySpace::WaiterId id : watchers_.at(change.key)) {
      Connection& watcher = *FindConnection(id);
      PutByte(&watcher.out, kind);
      PutText(&watcher.out, change.key);
      PutText(&watcher.out, change.old);
      PutText(&watcher.out, now != nullptr ? absl::string_view(*now) : absl::string_view());
      Recount(watcher);
      told_.insert(id);
    }
  }

  // After a turn, so that none is closed within it.
  void SendToTold() {
    for (const KeySpace::WaiterId id : std::exchange(told_, {})) {
      Connection* watcher = FindConnection(id);
      if (watcher == nullptr) continue;
      // One that does not read must not use up what all may leave unread.
      if (Send(*watcher) &&
          watcher->out.size() - watcher->sent <= MaxC10dMessageBytes(options_.limits)) {
        SetInterest(*watcher);
      } else {
        CloseAndWake(id);
      }
    }
  }

  // What comes next for a connection whose turn is over.
  void Continue(Connection& connection) {
    SetInterest(connection);
    if (connection.blocked(options_.max_unread_bytes)) return;
    if (!connection.unparsed.empty()) {
      Schedule(connection);  // A client that asks for much must let others in
                             // between.
    } else if (connection.parser.awaits_silence()) {
      AwaitSilence(connection, MonotonicClock().Now() + options_.silence);
    }
  }

  void Schedule(Connection& connection) {
    if (!std::exchange(connection.scheduled, true)) turns_.push_back(connection.id);
  }

  // Those who were due when it began; who is due again comes after the others'
  // events.
  void TakeTurns() {
    if (turns_.empty()) return;
    for (const KeySpace::WaiterId id : std::exchange(turns_, {})) {
      Connection* connection = FindConnection(id);
      if (connection == nullptr) continue;
      connection->scheduled = false;
      if (connection->waiting) continue;  // Its held request is behind a wait again.
      if (connection->held.has_value()) {
        C10dRequest request = *std::move(connection->held);
        connection->held.reset();
        const absl::Status ran = Run(*connection, std::move(request));
        if (!ran.ok()) {
          Refuse(*connection, ran);
          continue;
        }
      }
      TakeRequests(*connection, std::exchange(connection->unparsed, {}));
    }
  }

  // `until` the epoch: not at all.
  void AwaitSilence(Connection& connection, Instant until) {
    if (connection.silent_until == until) return;
    silences_.erase({connection.silent_until, connection.id});
    connection.silent_until = until;
    if (until != Instant()) silences_.insert({until, connection.id});
  }

  void EndSilences() {
    if (silences_.empty() && !accepts_fail_) return;
    const Instant now = MonotonicClock().Now();
    if (accepts_fail_ && accept_again_ <= now) {
      accepts_fail_ = false;
      Watch(listener_.get(), kListener, EPOLLIN, EPOLL_CTL_MOD);
    }
    while (!silences_.empty() && silences_.begin()->first <= now) {
      Connection& connection = *FindConnection(silences_.begin()->second);
      AwaitSilence(connection, Instant());
      const absl::Status ran = Run(connection, connection.parser.Silence());
      if (ran.ok()) {
        TakeRequests(connection, "");
      } else {
        Refuse(connection, ran);
      }
    }
  }

  // There is room again.
  void Resume(Connection& connection) {
    const KeySpace::WaiterId id = connection.id;
    if (!Send(connection)) return CloseAndWake(id);
    Continue(connection);
  }

  // False: the client is gone.
  bool Send(Connection& connection) {
    if (connection.carrier != 0) return SendByCarrier(connection);
    std::string& out = connection.out;
    while (connection.sent < out.size()) {
      const ssize_t put = ::send(connection.fd.get(), out.data() + connection.sent,
                                 out.size() - connection.sent, MSG_NOSIGNAL);
      if (put >= 0) {
        connection.sent += static_cast<size_t>(put);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno != EINTR) {
        return false;
      }
    }
    // More is dropped than is moved: a client that is always behind costs no
    // more memory for it.
    if (connection.sent >= out.size() - connection.sent) {
      out.erase(0, connection.sent);
      connection.sent = 0;
      if (out.empty() && out.capacity() > kKeptBytes) out.shrink_to_fit();
    }
    Recount(connection);
    return true;
  }

  // Keeps the sum of all replies that were not read; to be called when `out`
  // has changed.
  void Recount(Connection& connection) {
    unread_ += connection.out.size() - connection.counted;
    connection.counted = connection.out.size();
  }

  // Tells all whose keys have come. Closing one may make another ready: until
  // none is left.
  void WakeReady() {
    for (;;) {
      const std::vector<KeySpace::WaiterId> ready = keys_.TakeReady();
      if (ready.empty()) return;
      for (const KeySpace::WaiterId id : ready) {
        Connection* connection = FindConnection(id);
        if (connection == nullptr) continue;
        connection->waiting = false;
        PutByte(&connection->out, kC10dStopWaiting);
        if (!Send(*connection)) {
          Close(id);
          continue;
        }
        SetInterest(*connection);
        if (connection->held.has_value()) Schedule(*connection);
      }
    }
  }

  void Refuse(Connection& connection, const absl::Status& why) {
    const Connection* const carrier = FindConnection(connection.carrier);
    const std::string line =
        absl::StrCat("store: closed the connection from ",
                     PeerName((carrier != nullptr ? *carrier : connection).fd.get()),
                     carrier != nullptr ? ", a proxy's for a worker: " : ": ", why.message());
    CloseAndWake(connection.id);
    LogRarely(line);
  }

  void LogRarely(const std::string& line) {
    const std::string admitted = refusals_.Admit(line, MonotonicClock().Now());
    if (!admitted.empty()) LogWarning(admitted);
  }

  void CloseAndWake(KeySpace::WaiterId id) {
    Close(id);
    WakeReady();
  }

  // The descriptor leaves the kernel's set with its last copy.
  void Close(KeySpace::WaiterId id) {
    const auto it = connections_.find(id);
    if (it == connections_.end()) return;
    if (it->second->carried != nullptr) {
      for (const auto& [stream, carried] : std::exchange(it->second->carried->streams, {})) {
        Close(carried);
      }
    } else if (Connection* carrier = FindConnection(it->second->carrier)) {
      // Unless the carrier, or its client, has ended it.
      const auto stream = carrier->carried->streams.find(it->second->stream);
      if (stream != carrier->carried->streams.end()) {
        stream->second = 0;
        EndStream(*carrier, it->second->stream);
      }
    }
    unread_ -= it->second->counted;
    AwaitSilence(*it->second, Instant());
    keys_.CancelWait(id);
    if (it->second->parser.dialect() == C10dDialect::kTorch1) StopWatching(id);
    connections_.erase(it);
  }

  void StopWatching(KeySpace::WaiterId id) {
    for (auto it = watchers_.begin(); it != watchers_.end();) {
      it->second.erase(id);
      const auto next = std::next(it);
      if (it->second.empty()) watchers_.erase(it);
      it = next;
    }
  }

  void CloseAll() {
    watchers_.clear();
    told_.clear();
    to_send_.clear();
    connections_.clear();
    turns_.clear();
    silences_.clear();
    unread_ = 0;
    keys_ = KeySpace(options_.limits);
    // Who connected before the reset belongs to the old round, accepted or not.
    errno = 0;
    while (listener_.valid() && (Accept().valid() || errno == ECONNABORTED || errno == EINTR)) {
    }
  }

  const C10dServerOptions options_;
  const uint16_t port_;
  UniqueFd listener_;
  UniqueFd events_;
  UniqueFd called_;
  Mutex mu_;
  std::vector<std::function<void()>> calls_ ABSL_GUARDED_BY(mu_);
  bool stopped_ = false;
  bool accepts_fail_ = false;
  Instant accept_again_;
  KeySpace keys_;
  size_t unread_ = 0;  // Bytes of replies in all connections.
  RareLog refusals_;
  std::optional<StoreAccess> access_;
  std::set<StoreAddress> warned_of_;
  // Of PyTorch before 2.1: who is told of each change of a key.
  std::map<std::string, std::set<KeySpace::WaiterId>> watchers_;
  std::set<KeySpace::WaiterId> told_;     // Something was put into their replies.
  std::set<KeySpace::WaiterId> to_send_;  // Carriers: the same.
  KeySpace::WaiterId last_id_ = kCalled;
  absl::flat_hash_map<KeySpace::WaiterId, std::unique_ptr<Connection>> connections_;
  std::vector<KeySpace::WaiterId> turns_;
  std::set<std::pair<Instant, KeySpace::WaiterId>> silences_;
  std::string buffer_ = std::string(kReadBytes, '\0');  // Idle connections have none of their own.
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<C10dServer>> C10dServer::Start(
    std::optional<ListeningSocket> listener, C10dServerOptions options) {
  try {
    auto loop = std::make_unique<Loop>(std::move(listener), std::move(options));
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
void C10dServer::Reset(std::optional<StoreAccess> access) { loop_->Reset(std::move(access)); }

}  // namespace hlaunch
