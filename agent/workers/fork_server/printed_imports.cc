// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/printed_imports.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace hlaunch {
namespace {

constexpr size_t kMost = 32 << 10;  // Fits into the pipe of any rank.
constexpr int kPipeSize = 1 << 20;

}  // namespace

std::array<UniqueFd, 2> PrintedImports::Open() {
  std::array<UniqueFd, 2> ends;
  for (size_t i = 0; i < streams_.size(); ++i) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return {};
    streams_[i].read_end = UniqueFd(fds[0]);
    ends[i] = UniqueFd(fds[1]);
    ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
    ::fcntl(fds[0], F_SETPIPE_SZ, kPipeSize);
  }
  return ends;
}

void PrintedImports::Drain() {
  char buffer[4096];
  for (Stream& stream : streams_) {
    while (stream.text.size() <= kMost) {
      const ssize_t n = ::read(stream.read_end.get(), buffer, sizeof buffer);
      if (n <= 0) break;
      stream.text.append(buffer, static_cast<size_t>(n));
    }
  }
}

void PrintedImports::Begin(const std::string& module) {
  if (module == module_) return;
  module_ = module;
  for (Stream& stream : streams_) stream.before_module = stream.text.size();
}

void PrintedImports::Forget(const std::string& module) {
  if (module != module_) return;
  for (Stream& stream : streams_) stream.text.resize(stream.before_module);
}

bool PrintedImports::too_much() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const Stream& stream) { return stream.text.size() > kMost; });
}

}  // namespace hlaunch
