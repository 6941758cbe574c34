// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/listening/front.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/rare_log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/listening/accept.h"

namespace hlaunch {
namespace {

constexpr int kAcceptsPerTurn = 64;

// Thousands of nodes may connect in the same second and speak a little later.
size_t HalfOfTheDescriptors() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur / 2;
}

// What is known of a connection.
enum class FirstByte { kNone, kGrpc, kOther, kGone };

FirstByte Peek(int fd) {
  char first = 0;
  const ssize_t n = ::recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return FirstByte::kNone;
  if (n != 1) return FirstByte::kGone;
  return first == 'P' || first == 0x16 ? FirstByte::kGrpc : FirstByte::kOther;
}

}  // namespace

// All members belong to the thread once it runs.
struct Front::State {
  // A connection whose first byte has not come.
  struct Undecided {
    explicit Undecided(asio::io_context& loop) : socket(loop) {}
    asio::posix::stream_descriptor socket;
    Instant deadline;
    uint64_t epoch = 0;  // When it came.
  };
  using Place = std::list<Undecided>::iterator;

  State(UniqueFd fd, Options given)
      : options(std::move(given)), listener(loop, fd.Release()), pause(loop), patience(loop) {
    if (options.max_undecided == 0) options.max_undecided = HalfOfTheDescriptors();
    listener.native_non_blocking(true);
    AwaitConnections();
  }

  void AwaitConnections() {
    listener.async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code error) {
      if (!error) Accept();
    });
  }

  void Accept() {
    const int end = AcceptConnections(listener.native_handle(), kAcceptsPerTurn,
                                      [this](UniqueFd fd) { Admit(fd.Release()); });
    if (OutOfDescriptors(end)) return PauseAccepting(end);
    AwaitConnections();
  }

  // Connections stay in the kernel's queue and are served once descriptors are free again.
  void PauseAccepting(int error) {
    Warn(absl::StrCat("cannot accept connections: ", std::strerror(error),
                      "; trying again (raise the limit with ulimit -n)"));
    pause.expires_after(kAcceptPause);
    pause.async_wait([this](asio::error_code stopped) {
      if (!stopped) Accept();
    });
  }

  void Admit(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // Under load the first byte is there before the connection is looked at.
    if (const FirstByte first = Peek(fd); first != FirstByte::kNone) {
      return HandOn(UniqueFd(fd), first);
    }
    const Place place = undecided.emplace(undecided.end(), loop);
    asio::error_code refused;
    if (place->socket.assign(fd, refused); refused) {
      Warn(absl::StrCat("closed a connection: ", refused.message()));
      ::close(fd);
      undecided.erase(place);
      return;
    }
    place->deadline = MonotonicClock().Now() + options.patience;
    place->epoch = epoch;
    place->socket.async_wait(asio::posix::descriptor_base::wait_read,
                             [this, place](asio::error_code error) {
                               if (!error) Decide(place);
                             });
    if (undecided.size() > options.max_undecided) Decide(undecided.begin());
    if (undecided.size() == 1) AwaitSilent();
  }

  void Decide(Place place) {
    // release() also ends the wait, whose handler then sees an error and leaves `place` alone.
    UniqueFd fd(place->socket.release());
    const bool ended = place->epoch != epoch;
    undecided.erase(place);
    const FirstByte first = Peek(fd.get());
    if (!ended || first == FirstByte::kGrpc) HandOn(std::move(fd), first);
  }

  void HandOn(UniqueFd fd, FirstByte first) {
    if (first == FirstByte::kGone) return;
    if (first == FirstByte::kGrpc) {
      options.grpc(std::move(fd));
    } else if (options.c10d) {
      options.c10d(std::move(fd));
    } else {
      Warn(first == FirstByte::kNone ? "closed a connection that said nothing"
                                     : "closed a connection that does not speak gRPC");
    }
  }

  void EndC10d() {
    // Those in the kernel's queue have connected as well.
    AcceptConnections(listener.native_handle(), kMostUnaccepted,
                      [this](UniqueFd fd) { Admit(fd.Release()); });
    ++epoch;
  }

  void Warn(const std::string& line) {
    const std::string admitted = rare_log.Admit(line, MonotonicClock().Now());
    if (!admitted.empty()) LogWarning(admitted);
  }

  // The list is in the order of deadlines, so one timer for its first does for all.
  void AwaitSilent() {
    if (undecided.empty()) return;
    patience.expires_at(undecided.front().deadline);
    patience.async_wait([this](asio::error_code stopped) {
      if (stopped) return;
      const Instant now = MonotonicClock().Now();
      while (!undecided.empty() && undecided.front().deadline <= now) Decide(undecided.begin());
      AwaitSilent();
    });
  }

  asio::io_context loop{1};
  Options options;
  asio::posix::stream_descriptor listener;
  asio::steady_timer pause;
  asio::steady_timer patience;
  std::list<Undecided> undecided;
  uint64_t epoch = 0;  // Of the store behind `options.c10d`.
  RareLog rare_log;
  std::thread thread;
};

Front::Front(UniqueFd listener, Options options)
    : state_(std::make_unique<State>(std::move(listener), std::move(options))) {
  HLAUNCH_CHECK(state_->options.grpc != nullptr);
  state_->thread = std::thread([state = state_.get()] {
    ::pthread_setname_np(::pthread_self(), "hl-front");
    state->loop.run();
  });
}

void Front::EndC10d() {
  std::promise<void> done;
  asio::post(state_->loop, [this, &done] {
    state_->EndC10d();
    done.set_value();
  });
  done.get_future().wait();
}

Front::~Front() {
  state_->loop.stop();
  state_->thread.join();
}

}  // namespace hlaunch
