// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/cluster_wire/ask_as_stranger.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "proto/base/address.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/cluster_wire/tls_context.h"
#include "rendezvous/net/cluster_wire/wire_connection.h"
#include "rendezvous/net/cluster_wire/wire_limits.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/net/socket/lookup.h"

namespace hlaunch {
namespace {

using Answer = absl::StatusOr<nlohmann::json>;

int MillisUntil(Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// Waits until `fd` is connected. Returns 0, or the errno that says why it is not.
int AwaitConnection(int fd, Instant deadline) {
  pollfd ready{fd, POLLOUT, 0};
  int found = 0;
  do {
    found = ::poll(&ready, 1, MillisUntil(deadline));
  } while (found < 0 && errno == EINTR);
  if (found <= 0) return found == 0 ? ETIMEDOUT : errno;
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

absl::StatusOr<UniqueFd> Connect(const std::vector<std::string>& addresses, uint16_t port,
                                 Instant deadline) {
  std::string why = "its name has no address";
  for (const std::string& address : addresses) {
    int error = 0;
    UniqueFd fd = BeginToConnect(address, port, &error);
    if (fd.valid()) error = AwaitConnection(fd.get(), std::min(deadline, Now() + kConnectPatience));
    if (fd.valid() && error == 0) return fd;
    why = absl::StrCat(address, ": ", std::strerror(error));
  }
  return absl::UnavailableError(why);
}

absl::StatusOr<UniqueFd> Reach(const std::string& host, uint16_t port, Instant deadline) {
  const auto found = Lookup::Start(host)->Await(deadline);
  if (!found.has_value()) return absl::UnavailableError("its name is still being looked up");
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, *found);
  return Connect(addresses, port, deadline);
}

Answer AnswerIn(Envelope envelope) {
  if (!envelope.is_answer()) return absl::UnavailableError("it does not answer the question");
  if (!envelope.error.ok()) return envelope.error;
  return std::move(envelope.body);
}

Answer AskOver(UniqueFd fd, const std::string& pin, const Envelope& question, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(TlsContext tls, TlsOfStranger(pin));
  asio::io_context loop;
  HLAUNCH_ASSIGN_OR_RETURN(const std::shared_ptr<WireConnection> wire,
                           WireConnection::Of(loop, std::move(fd), std::move(tls)));
  std::optional<Answer> answer;
  WireConnection::Events events;
  events.shaken = [&] { wire->Send(question); };
  events.pinged = [] {};
  events.said = [&](Envelope envelope) {
    answer = AnswerIn(std::move(envelope));
    loop.stop();
  };
  events.ended = [&](const absl::Status& why) {
    answer = why;
    loop.stop();
  };
  wire->Begin(/*is_server=*/false, kMaxClusterFrame, std::move(events));
  loop.run_until(deadline);
  wire->Drop();
  return answer.value_or(absl::DeadlineExceededError("there is no answer in time"));
}

}  // namespace

absl::StatusOr<nlohmann::json> AskAsStranger(const std::string& host, uint16_t port,
                                             const std::string& pin, const Envelope& question,
                                             Duration patience) {
  const Instant deadline = Now() + patience;
  const auto named = [&](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("the head at ", HostPort(host, port), ": ", status.message()));
  };
  absl::StatusOr<UniqueFd> fd = Reach(host, port, deadline);
  if (!fd.ok()) return named(fd.status());
  Answer answer = AskOver(*std::move(fd), pin, question, deadline);
  if (!answer.ok()) return named(answer.status());
  return answer;
}

}  // namespace hlaunch
