// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/lookup.h"

#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {

std::shared_ptr<Lookup> Lookup::Start(const std::string& host) {
  auto lookup = std::make_shared<Lookup>();
  if (IsAddressLiteral(host)) {
    lookup->Set(ResolveHost(host));
    return lookup;
  }
  try {
    std::thread([lookup, host] { lookup->Set(ResolveHost(host)); }).detach();
  } catch (const std::system_error& error) {
    lookup->Set(absl::UnavailableError(
        absl::StrCat("cannot resolve '", host,
                     "': cannot start a thread for the resolver: ", error.code().message())));
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
