// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/resolver/ask_in_time.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"
#include "proto/base/thread.h"

namespace hlaunch {
namespace {

bool HasAddresses(const std::optional<FoundHost>& answer) { return answer && answer->error == 0; }

// Both failed: the one that may pass says more.
FoundHost Joined(const FoundHost& v4, const FoundHost& v6) {
  if (v4.error != 0 && v6.error != 0) return v6.error == EAI_AGAIN ? v6 : v4;
  FoundHost joined = v4.error == 0 ? v4 : v6;
  if (v4.error == 0 && v6.error == 0) {
    joined.literals.insert(joined.literals.end(), v6.literals.begin(), v6.literals.end());
  }
  return joined;
}

// The answers to the three questions. The threads that ask share it with the caller.
//
// Thread-safe.
class Answers {
 public:
  void Set(int family, FoundHost answer) {
    MutexLock lock(&mu_);
    Of(family) = std::move(answer);
    set_.SignalAll();
  }

  // Unset if no answer about both families comes until `deadline`.
  std::optional<FoundHost> AwaitBoth(Instant deadline) {
    MutexLock lock(&mu_);
    while (!both_ && set_.WaitUntil(&mu_, deadline)) {
    }
    return both_;
  }

  // `other` is how long a family that has addresses waits for the other one.
  FoundHost AwaitAny(Duration other) {
    MutexLock lock(&mu_);
    std::optional<Instant> deadline;
    bool in_time = true;
    while (!both_ && !(v4_ && v6_) && in_time) {
      const bool one = HasAddresses(v4_) || HasAddresses(v6_);
      if (one && !deadline) deadline = MonotonicClock().Now() + other;
      if (!one) {
        set_.Wait(&mu_);
      } else {
        in_time = set_.WaitUntil(&mu_, *deadline);
      }
    }
    if (both_) return *both_;
    if (v4_ && v6_) return Joined(*v4_, *v6_);
    return HasAddresses(v4_) ? *v4_ : *v6_;
  }

 private:
  std::optional<FoundHost>& Of(int family) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return family == AF_INET ? v4_ : family == AF_INET6 ? v6_ : both_;
  }

  Mutex mu_;
  CondVar set_;
  std::optional<FoundHost> both_ ABSL_GUARDED_BY(mu_);
  std::optional<FoundHost> v4_ ABSL_GUARDED_BY(mu_);
  std::optional<FoundHost> v6_ ABSL_GUARDED_BY(mu_);
};

// Returns false if no thread can be started.
bool Begin(const std::shared_ptr<Answers>& answers, const std::string& host,
           const AskResolverFn& ask, int family) {
  return StartUnawaited("hl-resolver",
                        [answers, host, ask, family] { answers->Set(family, ask(host, family)); })
      .ok();
}

}  // namespace

FoundHost AskInTime(const std::string& host, const AskResolverFn& ask,
                    const ResolverPatience& patience) {
  const auto answers = std::make_shared<Answers>();
  if (!Begin(answers, host, ask, AF_UNSPEC)) return ask(host, AF_UNSPEC);
  const auto both = answers->AwaitBoth(MonotonicClock().Now() + patience.both);
  if (both) return *both;
  for (const int family : {AF_INET, AF_INET6}) {
    if (Begin(answers, host, ask, family)) continue;
    answers->Set(family, {{}, EAI_AGAIN, "cannot start a thread for the resolver"});
  }
  return answers->AwaitAny(patience.other);
}

}  // namespace hlaunch
