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

// Asks the master store of a proposed round for an answer, as this node's workers will: what a
// firewall or a wrong address would make them wait for in vain is known before they start.
//
// Belongs to the loop thread. Destruction gives up without a word.
class MasterCheck {
 public:
  enum class Expect {
    kStore,  // A master store answers.
    kHost,   // Something does, were it a refusal: rank 0 will serve the store once it runs.
  };

  // `done` is called once, from the loop: with an empty text if what is expected came, else with
  // why it did not within `limit`, in words that name address and port. `address` is a literal.
  MasterCheck(asio::io_context& loop, std::string address, uint16_t port, Expect expect,
              Duration limit, std::function<void(std::string unfit)> done);
  ~MasterCheck();

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with what is under way in the loop.
};

}  // namespace hlaunch
