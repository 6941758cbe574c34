// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/endpoint_watch.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/now.h"

namespace hlaunch {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(500);

}  // namespace

EndpointWatch::EndpointWatch(std::function<bool()> look) : look_(std::move(look)) {
  try {
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "endpoint-watch");
      Run();
    });
  } catch (const std::system_error& error) {
    LogWarning(absl::StrCat("cannot start a thread that watches the endpoint's port: ",
                            error.code().message()));
  }
}

EndpointWatch::~EndpointWatch() {
  {
    MutexLock lock(&mu_);
    end_ = true;
    ended_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
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
