// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/stack_log.h"

#include <utility>

#include "proto/base/clock.h"

namespace hlaunch {
namespace {

constexpr Duration kLastWords = std::chrono::seconds(1);

}  // namespace

StackLog::~StackLog() {
  if (writer_) writer_->WaitEmpty(MonotonicClock().Now() + kLastWords);
}

std::string StackLog::Keep(int local_rank, std::string text) {
  const std::string& path = files_.paths[static_cast<size_t>(local_rank)];
  if (path.empty()) return "";
  if (!writer_) {
    auto made = OutputWriter::Make();
    if (!made.ok()) return "";
    writer_ = *std::move(made);
  }
  auto& file = written_[local_rank];
  if (!file) file = std::make_shared<LogFile>(path, Rotation{}, files_.losses);
  writer_->Push(file, std::move(text));
  return path;
}

}  // namespace hlaunch
