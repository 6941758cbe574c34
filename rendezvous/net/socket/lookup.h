// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// One question to the resolver, on its own thread. The resolver may block for minutes and cannot be
// stopped, so nobody waits for that thread (see StartUnawaited). The thread and the caller share
// the object.
//
// Thread-safe.
class Lookup {
 public:
  using Result = absl::StatusOr<std::vector<std::string>>;  // As of ResolveHost.

  // A literal is answered at once and without a thread. If no thread can be started, the result is
  // Unavailable, since this may pass.
  static std::shared_ptr<Lookup> Start(const std::string& host);

  // Unset until the resolver has answered.
  std::optional<Result> result() const;

  // Like result(), but waits for the answer until `deadline`.
  std::optional<Result> Await(Instant deadline);

 private:
  void Set(Result result);

  mutable Mutex mu_;
  CondVar set_;
  std::optional<Result> result_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
