// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "proto/base/clock.h"
#include "rendezvous/round/values/lease.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Shows the keeper that the loop turns, for as long as workers live. A loop that stands still does
// not obey the rendezvous either, so its workers must not live longer than the rendezvous allows.
//
// Belongs to the loop thread.
class LifeSigns {
 public:
  // Tells the keeper until when the workers may live; Instant::max(): without an end.
  using ShowFn = std::function<void(Instant until)>;

  // `allowed` returns until when the workers may live by what is known now; Instant::max() if no
  // other node can take over, which then never changes. `show` is empty if there is no keeper.
  // `on_due` is called from the loop, once after each Begin, a moment before the keeper would end
  // the workers although the loop turns. After a pause of this process an allowance from before it
  // is not acted upon for two seconds: it no longer holds, and soon another one will be there.
  LifeSigns(asio::io_context& loop, std::function<Allowance(Instant now)> allowed, ShowFn show,
            std::function<void()> on_due);
  ~LifeSigns();

  // Workers are about to be started.
  void Begin();
  // No worker lives.
  void End();

 private:
  void Turn();
  void TurnAfter(Duration delay);

  struct Timer;
  const std::function<Allowance(Instant now)> allowed_;
  const ShowFn show_;
  const std::function<void()> on_due_;
  bool limited_ = false;          // The keeper was given a time limit.
  bool due_ = false;              // on_due_ was called.
  std::optional<Instant> woken_;  // When the last pause ended that what is allowed is from before.
  Instant look_at_;               // When Turn asked to be called.
  Instant begun_;                 // At the last Begin.
  const std::unique_ptr<Timer> timer_;
};

}  // namespace hlaunch
