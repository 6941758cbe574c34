// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/endpoint_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/now.h"

namespace hlaunch {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(500);

}  // namespace

EndpointWatch::EndpointWatch(std::function<bool()> look) : look_(std::move(look)) {
  absl::StatusOr<Thread> thread = Thread::Start("endpoint-watch", [this] { Run(); });
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else {
    LogWarning(absl::StrCat("cannot start a thread that watches the endpoint's port: ",
                            thread.status().message()));
  }
}

EndpointWatch::~EndpointWatch() {
  {
    MutexLock lock(&mu_);
    end_ = true;
    ended_.SignalAll();
  }
  thread_.Join();
}

void EndpointWatch::Run() {
  while (true) {
    {
      MutexLock lock(&mu_);
      const Instant next = Now() + kBetweenLooks;
      while (!end_ && Now() < next) ended_.WaitUntil(&mu_, next);
      if (end_) return;
    }
    if (look_()) return;
  }
}

}  // namespace hlaunch
