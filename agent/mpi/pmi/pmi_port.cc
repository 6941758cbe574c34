// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_port.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/mpi/pmi/pmi_ids.h"
#include "agent/mpi/pmi/pmi_line.h"
#include "agent/mpi/pmi/pmi_node.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/rare_log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/peer/loopback_peer.h"
#include "rendezvous/net/socket/accept.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {
namespace {

constexpr size_t kGreetingBytes = 4 << 10;
constexpr int kAcceptsPerTurn = 64;
constexpr size_t kMaxGuests = 256;

}  // namespace

struct PmiPort::State {
  // A connection that has not yet said which worker it is.
  struct Guest {
    explicit Guest(asio::io_context& loop) : fd(loop) {}
    asio::posix::stream_descriptor fd;
    PmiReader greeting;
    const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with the guest.
  };
  using GuestAt = std::list<Guest>::iterator;

  State(asio::io_context& the_loop, bool hears_any_user, OnWorkerFn the_on_worker)
      : loop(the_loop),
        any_user(hears_any_user),
        on_worker(std::move(the_on_worker)),
        listener(the_loop),
        pause(the_loop) {}

  void AwaitConnections() {
    listener.async_wait(asio::posix::descriptor_base::wait_read,
                        [this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
                          if (!error && !alive.expired()) Accept();
                        });
  }

  void Accept() {
    if (!listener.is_open()) return;
    const int end = AcceptConnections(listener.native_handle(), kAcceptsPerTurn,
                                      [this](UniqueFd fd) { Admit(std::move(fd)); });
    if (!OutOfDescriptors(end)) return AwaitConnections();
    pause.expires_after(kAcceptPause);
    pause.async_wait([this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
      if (!error && !alive.expired()) Accept();
    });
  }

  // Other users are not even heard, else they could guess numbers or make the port close.
  void Admit(UniqueFd fd) {
    const absl::Status own = any_user ? absl::OkStatus() : CheckPeerIsOwn(fd.get());
    if (!own.ok()) {
      return Warn(others,
                  absl::StrCat("refused at the port of MPI's start, which is for this job's user: ",
                               own.message(), "; --any-user serves all users"));
    }
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const GuestAt guest = guests.emplace(guests.end(), loop);
    asio::error_code error;
    guest->fd.assign(fd.get(), error);
    if (error) {
      LogWarning(absl::StrCat("cannot serve MPI's start to a worker: ", error.message()));
      return guests.pop_back();
    }
    fd.Release();
    if (guests.size() > kMaxGuests) guests.pop_front();
    Listen(guest);
  }

  void Listen(GuestAt guest) {
    guest->fd.async_wait(
        asio::posix::descriptor_base::wait_read,
        [this, guest, alive = std::weak_ptr<bool>(guest->life)](const asio::error_code& error) {
          if (!error && !alive.expired()) Read(guest);
        });
  }

  void Read(GuestAt guest) {
    std::array<char, kGreetingBytes> bytes{};
    const ssize_t size =
        ::recv(guest->fd.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Listen(guest);
    if (size <= 0) return void(guests.erase(guest));
    const auto requests =
        guest->greeting.Take(absl::string_view(bytes.data(), static_cast<size_t>(size)));
    if (requests.ok() && requests->empty()) return Listen(guest);
    UniqueFd fd(guest->fd.release());
    guests.erase(guest);
    if (!requests.ok() || requests->size() > 1) return;
    if (const std::optional<int> id = PmiIdIn(requests->front())) Welcome(std::move(fd), *id);
  }

  void Welcome(UniqueFd fd, int id) {
    const PmiIds::Verdict who = ids.Take(id);
    if (who.guest == PmiGuest::kWorker) return on_worker(std::move(fd), who.local_rank);
    if (who.guest == PmiGuest::kAgain) {
      return Warn(again,
                  "a worker came to the port of MPI's start a second time: a worker can run one "
                  "MPI program");
    }
    if (ids.closed()) return Close();
    Warn(strangers,
         "somebody came to the port of MPI's start with a number that no worker of this round has");
  }

  void Close() {
    if (!listener.is_open()) return;
    asio::error_code ignored;
    listener.close(ignored);
    guests.clear();
    LogWarning(absl::StrCat(
        "the port of MPI's start is closed until the next round: ", kMostWrongPmiIds,
        " connections came with numbers that no worker has, as from somebody who guesses them. A "
        "worker that comes now cannot start its MPI program"));
  }

  static void Warn(RareLog& log, const std::string& text) {
    const std::string line = log.Admit(text, MonotonicClock().Now());
    if (!line.empty()) LogWarning(line);
  }

  asio::io_context& loop;
  const bool any_user;
  const OnWorkerFn on_worker;
  std::list<Guest> guests;  // The oldest first.
  PmiIds ids;
  RareLog again, strangers, others;  // Limit the warnings about those who are refused.
  uint16_t number = 0;
  asio::posix::stream_descriptor listener;
  asio::steady_timer pause;  // Before the next accept, if no descriptor is left.
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.
};

absl::StatusOr<std::unique_ptr<PmiPort>> PmiPort::Open(asio::io_context& loop, bool any_user,
                                                       OnWorkerFn on_worker) {
  HLAUNCH_ASSIGN_OR_RETURN(ListeningSocket socket, Listen("127.0.0.1", 0));
  auto state = std::make_unique<State>(loop, any_user, std::move(on_worker));
  asio::error_code error;
  state->listener.assign(socket.fd.get(), error);
  if (error) return absl::ResourceExhaustedError(error.message());
  socket.fd.Release();
  state->number = socket.port;
  state->AwaitConnections();
  return std::unique_ptr<PmiPort>(new PmiPort(std::move(state)));
}

PmiPort::PmiPort(std::unique_ptr<State> state) : state_(std::move(state)) {}
PmiPort::~PmiPort() = default;

uint16_t PmiPort::number() const { return state_->number; }

int PmiPort::NewId(int local_rank) { return state_->ids.Give(local_rank); }

}  // namespace hlaunch
