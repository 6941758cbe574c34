// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/master/master_check.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/buffer.hpp"
#include "asio/io_context.hpp"
#include "asio/ip/address.hpp"
#include "asio/ip/tcp.hpp"
#include "asio/read.hpp"
#include "asio/steady_timer.hpp"
#include "asio/write.hpp"
#include "proto/base/address.h"
#include "rendezvous/store/c10d/c10d_protocol.h"

namespace hlaunch {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(200);  // Between attempts.

// Asks "Is there a key with this name?", which changes nothing in the store.
std::string Question() {
  std::string bytes(1, '\0');  // VALIDATE.
  PutUint32(&bytes, kC10dMagic);
  C10dRequest check;
  check.op = C10dOp::kCheck;
  check.keys = {"/hlaunch"};
  return bytes + SerializeC10dRequest(check);
}

}  // namespace

struct MasterCheck::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, std::string the_address, uint16_t the_port, Expect what,
        Duration the_limit, std::function<void(std::string)> when_done)
      : address(std::move(the_address)),
        port(the_port),
        expect(what),
        limit(the_limit),
        done(std::move(when_done)),
        socket(loop),
        deadline(loop),
        pause(loop) {}

  void Begin() {
    deadline.expires_after(limit);
    deadline.async_wait([self = shared_from_this()](asio::error_code stopped) {
      if (stopped) return;
      self->Finish(absl::StrCat(
          "cannot reach the master store at ", HostPort(self->address, self->port), " within ",
          std::chrono::duration_cast<std::chrono::seconds>(self->limit).count(), " s: ",
          self->trouble.empty() ? "no answer: a firewall between the nodes drops new ports, or the "
                                  "address is not the host's"
                                : self->trouble));
    });
    Connect();
  }

  void Connect() {
    asio::error_code wrong;
    const auto literal = asio::ip::make_address(address, wrong);
    if (wrong) return Retry(wrong);
    socket.async_connect({literal, port}, [self = shared_from_this()](asio::error_code error) {
      const bool host_answers = !error || error == asio::error::connection_refused;
      if (self->expect == Expect::kHost && host_answers) return self->Finish("");
      if (error) return self->Retry(error);
      self->trouble = "connected, and no answer";
      self->Ask();
    });
  }

  void Ask() {
    question = Question();
    asio::async_write(socket, asio::buffer(question),
                      [self = shared_from_this()](asio::error_code error, size_t) {
                        if (error) return self->Retry(error);
                        asio::async_read(self->socket, asio::buffer(self->answer),
                                         [self](asio::error_code failed, size_t) {
                                           if (failed) return self->Retry(failed);
                                           self->Finish("");
                                         });
                      });
  }

  void Retry(asio::error_code error) {
    if (done == nullptr) return;
    trouble = error.message();
    if (error == asio::error::connection_refused) {
      trouble += ": the host is up, so a firewall between the nodes rejects new ports";
    }
    asio::error_code ignored;
    socket.close(ignored);
    pause.expires_after(kPause);
    pause.async_wait([self = shared_from_this()](asio::error_code stopped) {
      if (!stopped && self->done != nullptr) self->Connect();
    });
  }

  void Finish(std::string unfit) {
    const auto tell = std::exchange(done, nullptr);
    Close();
    if (tell != nullptr) tell(std::move(unfit));
  }

  void Close() {
    done = nullptr;
    asio::error_code ignored;
    socket.close(ignored);
    deadline.cancel();
    pause.cancel();
  }

  const std::string address;
  const uint16_t port;
  const Expect expect;
  const Duration limit;
  std::function<void(std::string)> done;  // Null after it was called, or after Close.
  asio::ip::tcp::socket socket;
  asio::steady_timer deadline;
  asio::steady_timer pause;
  std::string question;
  std::array<char, 1> answer{};
  std::string trouble;  // The problem of the latest attempt.
};

MasterCheck::MasterCheck(asio::io_context& loop, std::string address, uint16_t port, Expect expect,
                         Duration limit, std::function<void(std::string unfit)> done)
    : state_(
          std::make_shared<State>(loop, std::move(address), port, expect, limit, std::move(done))) {
  state_->Begin();
}

MasterCheck::~MasterCheck() { state_->Close(); }

}  // namespace hlaunch
