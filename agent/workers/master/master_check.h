// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Asks the master store of a proposed round for an answer, as this node's workers will. So a
// firewall or a wrong address, for which workers would wait in vain, is found before they start.
//
// Belongs to the loop thread. Destruction gives up and calls nothing.
class MasterCheck {
 public:
  enum class Expect {
    kStore,  // A master store answers.
    kHost,   // The host answers, even with a refusal: rank 0 will serve the store once it runs.
  };

  // `done` is called once, from the loop. `unfit` is empty if the expected answer came, else it
  // says why no answer came within `limit`, and names address and port. `address` is a literal.
  MasterCheck(asio::io_context& loop, std::string address, uint16_t port, Expect expect,
              Duration limit, std::function<void(std::string unfit)> done);
  ~MasterCheck();

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with the loop's pending handlers.
};

}  // namespace hlaunch
