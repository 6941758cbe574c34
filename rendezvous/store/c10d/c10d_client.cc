// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/net/socket/find_host.h"
#include "rendezvous/store/keys/key_space.h"
#include "rendezvous/store/keys/pauses.h"

namespace hlaunch {
namespace {

constexpr Duration kSecondLook = std::chrono::seconds(1);  // To find out why a call failed.
absl::Status Gone(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("connection to the store: ", what));
}

// Waits until `fd` is ready for `events` or in error. Looks once even if time is up.
absl::Status Await(int fd, int16_t events, Instant deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Now());
    pollfd entry{fd, events, 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return Gone(std::strerror(errno));
    if (left.count() <= 0) return absl::DeadlineExceededError("no answer from the store in time");
  }
}

absl::Status Send(int fd, absl::string_view bytes, Instant deadline) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put >= 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      HLAUNCH_RETURN_IF_ERROR(Await(fd, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return Gone(std::strerror(errno));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Receive(int fd, size_t size, Instant deadline) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::recv(fd, bytes.data() + done, size - done, 0);
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (got == 0) {
      return Gone("closed by the store");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      HLAUNCH_RETURN_IF_ERROR(Await(fd, POLLIN, deadline));
    } else if (errno != EINTR) {
      return Gone(std::strerror(errno));
    }
  }
  return bytes;
}

absl::StatusOr<uint8_t> ReceiveByte(int fd, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string byte, Receive(fd, 1, deadline));
  return static_cast<uint8_t>(byte[0]);
}

absl::StatusOr<int64_t> ReceiveInt64(int fd, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string bytes, Receive(fd, sizeof(int64_t), deadline));
  return ReadInt64(bytes);
}

absl::StatusOr<std::string> ReceiveText(int fd, const StoreLimits& limits, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t size, ReceiveInt64(fd, deadline));
  if (size < 0 || size > static_cast<int64_t>(MaxC10dMessageBytes(limits))) {
    return Gone("the answer is not one of a c10d store");
  }
  return Receive(fd, static_cast<size_t>(size), deadline);
}

// A socket can connect to itself, at a port of this host where no process listens.
bool ConnectedToItself(int fd) {
  sockaddr_storage mine{};
  sockaddr_storage its{};
  socklen_t mine_size = sizeof(mine);
  socklen_t its_size = sizeof(its);
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &mine_size) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&its), &its_size) == 0 &&
         mine_size == its_size && std::memcmp(&mine, &its, mine_size) == 0;
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& literal, uint16_t port, Instant deadline) {
  int error = 0;
  UniqueFd fd = BeginToConnect(literal, port, &error);
  if (!fd.valid()) return Gone(std::strerror(error));
  HLAUNCH_RETURN_IF_ERROR(Await(fd.get(), POLLOUT, std::min(deadline, Now() + kConnectAttempt)));
  socklen_t size = sizeof(error);
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return Gone(std::strerror(error));
  if (ConnectedToItself(fd.get())) return Gone(std::strerror(ECONNREFUSED));
  std::string validate(1, '\0');
  PutUint32(&validate, kC10dMagic);
  HLAUNCH_RETURN_IF_ERROR(Send(fd.get(), validate, deadline));
  return fd;
}

absl::StatusOr<UniqueFd> ConnectOnce(const std::string& host, uint16_t port, Instant deadline) {
  const FoundHost found = FindHost(host);
  if (found.error == EAI_AGAIN) return Gone(found.why);  // The name server may come back.
  if (found.error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot find the store's host '", host, "': ", found.why));
  }
  absl::StatusOr<UniqueFd> connected = Gone("no address");
  for (const std::string& literal : found.literals) {
    connected = ConnectTo(literal, port, deadline);
    if (connected.ok()) break;
  }
  return connected;
}

absl::StatusOr<UniqueFd> ConnectUntil(const std::string& host, uint16_t port, Instant deadline) {
  Pauses pauses;
  for (int attempts = 1;; ++attempts) {
    absl::StatusOr<UniqueFd> connected = ConnectOnce(host, port, deadline);
    if (connected.ok() || absl::IsInvalidArgument(connected.status())) return connected;
    if (!pauses.PauseUntil(deadline)) {
      return absl::UnavailableError(absl::StrCat("cannot reach the store at ", host, " port ", port,
                                                 " (", attempts,
                                                 " attempts): ", connected.status().message()));
    }
  }
}

// PyTorch's clients put "/" before every key. This client does so, too, and both see the same keys.
std::string OnWire(absl::string_view key) { return absl::StrCat("/", key); }

std::vector<std::string> OnWire(const std::vector<std::string>& keys) {
  std::vector<std::string> on_wire;
  on_wire.reserve(keys.size());
  for (const std::string& key : keys) on_wire.push_back(OnWire(key));
  return on_wire;
}

absl::Status CheckLimits(const C10dRequest& request, const StoreLimits& limits) {
  size_t bytes = 0;
  HLAUNCH_RETURN_IF_ERROR(limits.CheckList(request.keys.size()));
  for (const std::string& key : request.keys) {
    HLAUNCH_RETURN_IF_ERROR(limits.CheckKey(key.size()));
    bytes += key.size();
  }
  for (const std::string& value : request.values) {
    HLAUNCH_RETURN_IF_ERROR(limits.CheckValue(value.size()));
    bytes += value.size();
  }
  const size_t most = MaxC10dMessageBytes(limits);
  if (bytes <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a request of ", bytes, " bytes, at most ", most));
}

// If an answer that is due at once does not come, the caller is told that the store is unreachable.
absl::Status LateIsUnavailable(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) ? absl::UnavailableError(status.message()) : status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<C10dClient>> C10dClient::Connect(absl::string_view host,
                                                                uint16_t port, Instant deadline,
                                                                C10dClientOptions options) {
  std::unique_ptr<C10dClient> client(new C10dClient(std::string(host), port, options));
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd first, ConnectUntil(client->host_, port, deadline));
  client->ReturnConnection(std::move(first));
  return client;
}

std::unique_ptr<Store> C10dClient::Attempt(Duration patience) {
  C10dClientOptions options = options_;
  options.request_timeout = std::min(options.request_timeout, patience);
  return std::unique_ptr<Store>(new C10dClient(host_, port_, options));
}

Instant C10dClient::Soon() const { return Now() + options_.request_timeout; }

absl::StatusOr<UniqueFd> C10dClient::TakeConnection(Instant deadline) {
  for (;;) {
    UniqueFd connection;
    {
      MutexLock lock(&mu_);
      if (idle_.empty()) break;
      connection = std::move(idle_.back());
      idle_.pop_back();
    }
    // Nothing is due on an idle connection: if it is readable, the store has closed it.
    pollfd entry{connection.get(), POLLIN, 0};
    if (::poll(&entry, 1, 0) == 0) return connection;
  }
  return ConnectUntil(host_, port_, deadline);
}

void C10dClient::ReturnConnection(UniqueFd connection) {
  MutexLock lock(&mu_);
  idle_.push_back(std::move(connection));
}

absl::Status C10dClient::Exchange(const C10dRequest& request, ReadReply read) {
  return ExchangeUntil(Soon(), request, read);
}

absl::Status C10dClient::ExchangeUntil(Instant deadline, const C10dRequest& request,
                                       ReadReply read) {
  HLAUNCH_RETURN_IF_ERROR(CheckLimits(request, options_.limits));
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd connection, TakeConnection(deadline));
  HLAUNCH_RETURN_IF_ERROR(
      LateIsUnavailable(Send(connection.get(), SerializeC10dRequest(request), deadline)));
  HLAUNCH_RETURN_IF_ERROR(LateIsUnavailable(read(connection.get(), deadline)));
  ReturnConnection(std::move(connection));
  return absl::OkStatus();
}

// Sends a request without a reply, and a question: its answer shows that the request was taken.
absl::Status C10dClient::Write(const C10dRequest& request) {
  return Exchange(request, [](int fd, Instant deadline) {
    HLAUNCH_RETURN_IF_ERROR(
        Send(fd, SerializeC10dRequest({C10dOp::kNumKeys, {}, {}, 0}), deadline));
    return ReceiveInt64(fd, deadline).status();
  });
}

absl::StatusOr<int64_t> C10dClient::AskNumber(const C10dRequest& request) {
  int64_t number = 0;
  HLAUNCH_RETURN_IF_ERROR(Exchange(request, [&number](int fd, Instant deadline) {
    HLAUNCH_ASSIGN_OR_RETURN(number, ReceiveInt64(fd, deadline));
    return absl::OkStatus();
  }));
  return number;
}

// Repeats `attempt` while it is Unavailable and there is time.
absl::Status C10dClient::Retry(Instant deadline, absl::FunctionRef<absl::Status()> attempt) {
  Pauses pauses;
  for (;;) {
    absl::Status status = attempt();
    if (!absl::IsUnavailable(status) || !pauses.PauseUntil(deadline)) return status;
  }
}

absl::Status C10dClient::Set(absl::string_view key, absl::string_view value) {
  return Write({C10dOp::kSet, {OnWire(key)}, {std::string(value)}, 0});
}

absl::Status C10dClient::Append(absl::string_view key, absl::string_view data) {
  return Write({C10dOp::kAppend, {OnWire(key)}, {std::string(data)}, 0});
}

absl::Status C10dClient::MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) {
  C10dRequest request{C10dOp::kMultiSet, {}, {}, 0};
  for (const auto& [key, value] : pairs) {
    request.keys.push_back(OnWire(key));
    request.values.push_back(value);
  }
  return Write(request);
}

absl::StatusOr<int64_t> C10dClient::Add(absl::string_view key, int64_t delta) {
  auto sum = AskNumber({C10dOp::kAdd, {OnWire(key)}, {}, delta});
  if (sum.ok() || !absl::IsUnavailable(sum.status())) return sum;
  return WhyNotAdded(key, sum.status());
}

// The wire has no errors: a server hangs up on an impossible Add. This checks whether it was that.
absl::Status C10dClient::WhyNotAdded(absl::string_view key, absl::Status seen) {
  const C10dRequest get{C10dOp::kGet, {OnWire(key)}, {}, 0};
  uint8_t exists = kC10dNotReady;
  std::string value;
  const absl::Status got = ExchangeUntil(
      Now() + kSecondLook, {C10dOp::kCheck, {OnWire(key)}, {}, 0}, [&](int fd, Instant deadline) {
        HLAUNCH_RETURN_IF_ERROR(Send(fd, SerializeC10dRequest(get), deadline));
        HLAUNCH_ASSIGN_OR_RETURN(exists, ReceiveByte(fd, deadline));
        HLAUNCH_ASSIGN_OR_RETURN(value, ReceiveText(fd, options_.limits, deadline));
        return absl::OkStatus();
      });
  if (!got.ok() || exists != kC10dReady || ParseCounter(value).has_value()) return seen;
  return absl::FailedPreconditionError(
      absl::StrCat("cannot add to key '", key, "': its value is no number"));
}

absl::StatusOr<std::string> C10dClient::CompareAndSet(absl::string_view key,
                                                      absl::string_view expected,
                                                      absl::string_view desired) {
  std::string value;
  HLAUNCH_RETURN_IF_ERROR(Exchange(
      {C10dOp::kCompareSet, {OnWire(key)}, {std::string(expected), std::string(desired)}, 0},
      [&](int fd, Instant deadline) {
        HLAUNCH_ASSIGN_OR_RETURN(value, ReceiveText(fd, options_.limits, deadline));
        return absl::OkStatus();
      }));
  return value;
}

absl::StatusOr<bool> C10dClient::Delete(absl::string_view key) {
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t deleted,
                           AskNumber({C10dOp::kDeleteKey, {OnWire(key)}, {}, 0}));
  return deleted == 1;
}

absl::StatusOr<int64_t> C10dClient::NumKeys() { return AskNumber({C10dOp::kNumKeys, {}, {}, 0}); }

absl::StatusOr<bool> C10dClient::Check(const std::vector<std::string>& keys) {
  uint8_t reply = kC10dNotReady;
  HLAUNCH_RETURN_IF_ERROR(
      Exchange({C10dOp::kCheck, OnWire(keys), {}, 0}, [&reply](int fd, Instant deadline) {
        HLAUNCH_ASSIGN_OR_RETURN(reply, ReceiveByte(fd, deadline));
        return absl::OkStatus();
      }));
  return reply == kC10dReady;
}

absl::Status C10dClient::Wait(const std::vector<std::string>& keys, Instant deadline) {
  const C10dRequest request{C10dOp::kWait, OnWire(keys), {}, 0};
  HLAUNCH_RETURN_IF_ERROR(CheckLimits(request, options_.limits));
  return Retry(deadline, [&] { return WaitOnce(request, deadline); });
}

absl::Status C10dClient::WaitOnce(const C10dRequest& request, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd connection, TakeConnection(deadline));
  HLAUNCH_RETURN_IF_ERROR(
      LateIsUnavailable(Send(connection.get(), SerializeC10dRequest(request), Soon())));
  const auto reply = ReceiveByte(connection.get(), deadline);
  if (absl::IsDeadlineExceeded(reply.status())) {
    return CancelWait(std::move(connection), request.keys);
  }
  HLAUNCH_RETURN_IF_ERROR(reply.status());
  ReturnConnection(std::move(connection));
  return absl::OkStatus();
}

// Cancels the wait and says which of `keys` are missing; OK if they came in the meantime.
absl::Status C10dClient::CancelWait(UniqueFd connection, const std::vector<std::string>& keys) {
  const int fd = connection.get();
  const Instant soon = Soon();
  HLAUNCH_RETURN_IF_ERROR(
      LateIsUnavailable(Send(fd, SerializeC10dRequest({C10dOp::kCancelWait, {}, {}, 0}), soon)));
  auto reply = ReceiveByte(fd, soon);
  const bool came = reply.ok() && *reply == kC10dStopWaiting;
  if (came) reply = ReceiveByte(fd, soon);
  HLAUNCH_RETURN_IF_ERROR(LateIsUnavailable(reply.status()));
  std::vector<std::string> missing;
  constexpr size_t kNamed = 4;    // One more than a message names, to say that there are more.
  constexpr size_t kBatch = 256;  // Questions under way at once.
  for (size_t at = 0; !came && at < keys.size() && missing.size() < kNamed; at += kBatch) {
    const size_t count = std::min(kBatch, keys.size() - at);
    std::string questions;
    for (size_t i = at; i < at + count; ++i) {
      questions += SerializeC10dRequest({C10dOp::kCheck, {keys[i]}, {}, 0});
    }
    HLAUNCH_RETURN_IF_ERROR(LateIsUnavailable(Send(fd, questions, soon)));
    const auto answers = Receive(fd, count, soon);
    HLAUNCH_RETURN_IF_ERROR(LateIsUnavailable(answers.status()));
    for (size_t i = 0; i < count; ++i) {
      if ((*answers)[i] != kC10dReady) missing.push_back(keys[at + i].substr(1));
    }
  }
  ReturnConnection(std::move(connection));
  return missing.empty() ? absl::OkStatus() : WaitTimedOut(missing);
}

absl::StatusOr<std::string> C10dClient::Get(absl::string_view key, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> values, MultiGet({std::string(key)}, deadline));
  return std::move(values[0]);
}

absl::StatusOr<std::vector<std::string>> C10dClient::MultiGet(const std::vector<std::string>& keys,
                                                              Instant deadline) {
  const C10dRequest request{C10dOp::kMultiGet, OnWire(keys), {}, 0};
  std::vector<std::string> values;
  HLAUNCH_RETURN_IF_ERROR(Wait(keys, deadline));
  HLAUNCH_RETURN_IF_ERROR(Retry(deadline, [&] {
    values.clear();
    return Exchange(request, [&](int fd, Instant soon) {
      for (size_t i = 0; i < keys.size(); ++i) {
        HLAUNCH_ASSIGN_OR_RETURN(std::string value, ReceiveText(fd, options_.limits, soon));
        values.push_back(std::move(value));
      }
      return absl::OkStatus();
    });
  }));
  return values;
}

}  // namespace hlaunch
