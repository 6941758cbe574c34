// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/record/recorded_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "comm/call/call.h"
#include "comm/record/call_record.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

template <typename Number>
Number At(std::span<const std::byte> bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

RecordedCall CallAt(std::span<const std::byte> entry) {
  using Entry = CallRecordLayout::Entry;
  RecordedCall call;
  call.number = At<uint64_t>(entry, offsetof(Entry, number));
  const auto verb = At<uint32_t>(entry, offsetof(Entry, verb));
  const auto type = static_cast<DataType>(
      std::min<uint32_t>(At<uint32_t>(entry, offsetof(Entry, type)), kDataTypes));
  call.verb = verb == CallRecordLayout::kMonitoredBarrier
                  ? "monitored_barrier"
                  : std::string(Name(static_cast<Verb>(std::min<uint32_t>(verb, 254))));
  if (static_cast<int>(type) < kDataTypes) {
    call.count = At<uint64_t>(entry, offsetof(Entry, count));
    call.type = std::string(Name(type));
    call.element = ElementSize(type);
  }
  return call;
}

std::vector<RecordedPeer> PeersIn(std::span<const std::byte> bytes) {
  using Layout = CallRecordLayout;
  std::vector<RecordedPeer> peers;
  if (At<uint64_t>(bytes, offsetof(Layout, more_peers)) != 0) return peers;
  for (size_t i = 0; i < kRecordedPeers; ++i) {
    const auto place =
        bytes.subspan(offsetof(Layout, peers) + i * sizeof(Layout::Peer), sizeof(Layout::Peer));
    const auto who = At<uint64_t>(place, offsetof(Layout::Peer, who));
    if (who < 2) continue;
    RecordedPeer peer;
    peer.peer = static_cast<int64_t>(who / 2 - 1);
    peer.sends = who % 2 == 1;
    peer.called = At<uint64_t>(place, offsetof(Layout::Peer, called));
    peer.over = std::min(peer.called, At<uint64_t>(place, offsetof(Layout::Peer, over)));
    peer.awaited = At<uint64_t>(place, offsetof(Layout::Peer, awaited)) > 0;
    peers.push_back(peer);
  }
  std::sort(peers.begin(), peers.end(), [](const RecordedPeer& a, const RecordedPeer& b) {
    return std::pair(a.peer, a.sends) < std::pair(b.peer, b.sends);
  });
  return peers;
}

}  // namespace

std::optional<RecordedCalls> ParseCallRecord(std::span<const std::byte> bytes) {
  using Layout = CallRecordLayout;
  if (bytes.size() != sizeof(Layout) ||
      At<uint64_t>(bytes, offsetof(Layout, magic)) != kCallRecordMagic) {
    return std::nullopt;
  }
  RecordedCalls calls;
  const auto* const name = reinterpret_cast<const char*>(bytes.data() + offsetof(Layout, group));
  calls.group.assign(name, ::strnlen(name, kMostGroupName));
  calls.begun = At<uint64_t>(bytes, offsetof(Layout, begun));
  calls.over = std::min(calls.begun, At<uint64_t>(bytes, offsetof(Layout, over)));
  calls.awaits_message = At<uint64_t>(bytes, offsetof(Layout, awaited)) > 0;
  calls.peers = PeersIn(bytes);
  const uint64_t first = calls.begun < kRecordedCalls ? 1 : calls.begun - kRecordedCalls + 1;
  for (uint64_t number = first; number <= calls.begun && number >= first; ++number) {
    const size_t at = offsetof(Layout, entries) + number % kRecordedCalls * sizeof(Layout::Entry);
    RecordedCall call = CallAt(bytes.subspan(at, sizeof(Layout::Entry)));
    if (call.number != number) continue;  // It is being replaced.
    call.over = number <= calls.over;
    calls.latest.push_back(std::move(call));
  }
  return calls;
}

std::vector<RecordedCalls> ReadCallRecords(pid_t pid, size_t most) {
  std::vector<RecordedCalls> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(absl::StrCat("/proc/", pid, "/fd"), error), end;
       !error && entry != end && found.size() < most; entry.increment(error)) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry->path(), gone);
    if (gone || !absl::StartsWith(target.string(), absl::StrCat("/memfd:", kCallRecordFile))) {
      continue;
    }
    const UniqueFd file(::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC));
    std::array<std::byte, sizeof(CallRecordLayout)> bytes;
    if (!file.valid() ||
        ::pread(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      continue;
    }
    if (auto calls = ParseCallRecord(bytes)) found.push_back(*std::move(calls));
  }
  return found;
}

}  // namespace hlaunch
