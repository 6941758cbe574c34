// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/lookup.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/thread.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {

std::shared_ptr<Lookup> Lookup::Start(const std::string& host) {
  auto lookup = std::make_shared<Lookup>();
  if (IsAddressLiteral(host)) {
    lookup->Set(ResolveHost(host));
    return lookup;
  }
  const absl::Status started =
      StartUnawaited("hl-lookup", [lookup, host] { lookup->Set(ResolveHost(host)); });
  if (!started.ok()) {
    lookup->Set(absl::UnavailableError(
        absl::StrCat("cannot resolve '", host,
                     "': cannot start a thread for the resolver: ", started.message())));
  }
  return lookup;
}

std::optional<Lookup::Result> Lookup::result() const {
  MutexLock lock(&mu_);
  return result_;
}

std::optional<Lookup::Result> Lookup::Await(Instant deadline) {
  MutexLock lock(&mu_);
  while (!result_.has_value() && set_.WaitUntil(&mu_, deadline)) {
  }
  return result_;
}

void Lookup::Set(Result result) {
  MutexLock lock(&mu_);
  result_ = std::move(result);
  set_.SignalAll();
}

}  // namespace hlaunch
