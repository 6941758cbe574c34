// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/fakes/tcp_proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {
namespace {

UniqueFd ConnectTo(const std::string& target, uint16_t port) {
  HLAUNCH_CHECK(target == "127.0.0.1");
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Where it fails, the first read tells.
  (void)::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  return fd;
}

// Both ends of one connection.
struct Pair {
  UniqueFd ends[2];
};

}  // namespace

struct TcpProxy::State {
  std::string target;
  uint16_t target_port = 0;
  ListeningSocket listener;
  UniqueFd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  Mutex mu;
  bool stop ABSL_GUARDED_BY(mu) = false;
  bool drop ABSL_GUARDED_BY(mu) = false;
  bool swallow ABSL_GUARDED_BY(mu) = false;
  CondVar dropped;

  std::thread thread;
  std::list<Pair> pairs;  // Of the thread.

  void Wake() { HLAUNCH_CHECK(::eventfd_write(wake.get(), 1) == 0); }

  void Run() {
    while (true) {
      std::vector<pollfd> waits = {{wake.get(), POLLIN, 0}, {listener.fd.get(), POLLIN, 0}};
      bool forward = true;
      {
        MutexLock lock(&mu);
        if (stop) return;
        if (std::exchange(drop, false)) Reset();
        dropped.SignalAll();
        forward = !swallow;
      }
      if (forward) {
        for (const Pair& pair : pairs) {
          for (const UniqueFd& end : pair.ends) waits.push_back({end.get(), POLLIN, 0});
        }
      }
      ::poll(waits.data(), waits.size(), -1);
      eventfd_t count = 0;
      ::eventfd_read(wake.get(), &count);
      if (forward) Forward(waits);
      if (waits[1].revents != 0) Accept();
    }
  }

  void Reset() {
    for (const Pair& pair : pairs) {
      const linger at_once = {1, 0};
      for (const UniqueFd& end : pair.ends) {
        ::setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      }
    }
    pairs.clear();
  }

  void Accept() {
    UniqueFd client(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) return;
    pairs.push_back({{std::move(client), ConnectTo(target, target_port)}});
  }

  void Forward(const std::vector<pollfd>& waits) {
    size_t i = 2;
    for (auto pair = pairs.begin(); pair != pairs.end();) {
      bool broken = false;
      for (int end = 0; end < 2; ++end) {
        if (waits[i++].revents != 0)
          broken |= !Copy(pair->ends[end].get(), pair->ends[1 - end].get());
      }
      pair = broken ? pairs.erase(pair) : std::next(pair);
    }
  }

  static bool Copy(int from, int to) {
    char bytes[65536];
    const ssize_t n = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    return n > 0 && ::send(to, bytes, n, MSG_NOSIGNAL) == n;
  }
};

TcpProxy::TcpProxy(const std::string& target, uint16_t port) : state_(std::make_unique<State>()) {
  state_->target = target;
  state_->target_port = port;
  state_->listener = Listen("127.0.0.1", 0).value();
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

TcpProxy::~TcpProxy() {
  {
    MutexLock lock(&state_->mu);
    state_->stop = true;
  }
  state_->Wake();
  state_->thread.join();
}

uint16_t TcpProxy::port() const { return state_->listener.port; }

void TcpProxy::DropConnections() {
  MutexLock lock(&state_->mu);
  state_->drop = true;
  state_->Wake();
  while (state_->drop) state_->dropped.Wait(&state_->mu);
}

void TcpProxy::Swallow() {
  MutexLock lock(&state_->mu);
  state_->swallow = true;
  state_->Wake();
}

}  // namespace hlaunch
