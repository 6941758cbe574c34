// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/stand_ins.h"

#include <chrono>
#include <utility>

#include "agent/workers/process/descendants.h"
#include "agent/workers/process/stand_in_name.h"
#include "proto/base/clock.h"

namespace hlaunch {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(50);

}  // namespace

void StandIns::Started(int local_rank, pid_t pid) {
  unknown_[local_rank] = pid;
  LookLater();
}

void StandIns::Stop() {
  unknown_.clear();
  timer_.cancel();
}

void StandIns::LookLater() {
  timer_.expires_after(kLook);
  timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    for (const auto& [local_rank, stand_in] : std::map<int, pid_t>(unknown_)) {
      const auto process = ReadProcess(stand_in);
      const pid_t pid = process ? WorkerInName(process->command) : 0;
      if (pid == 0) continue;
      unknown_.erase(local_rank);
      on_known_(local_rank, pid);
    }
    if (!unknown_.empty()) LookLater();
  });
}

}  // namespace hlaunch
