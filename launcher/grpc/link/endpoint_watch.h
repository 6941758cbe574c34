// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"
#include "proto/base/thread.h"

namespace hlaunch {

// Looks twice a second at the port of an endpoint that may lead to this node: another process held
// it, as the agent of a node that has died does for its last seconds.
//
// Its thread is "endpoint-watch". Belongs to one thread.
class EndpointWatch {
 public:
  // Calls `look`, from the watch's thread, until it returns true. If there is no thread to be had,
  // this says so and nothing is called.
  explicit EndpointWatch(std::function<bool()> look);
  // Waits for the end of a call.
  ~EndpointWatch();

 private:
  void Run();

  const std::function<bool()> look_;
  Mutex mu_;
  CondVar ended_;
  bool end_ ABSL_GUARDED_BY(mu_) = false;
  Thread thread_;
};

}  // namespace hlaunch
