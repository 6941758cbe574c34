// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/record/call_record.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace hlaunch {

std::unique_ptr<CallRecord> CallRecord::Open(absl::string_view group) {
  const int file = ::memfd_create(kCallRecordFile, MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (::ftruncate(file, sizeof(CallRecordLayout)) == 0) {
    memory = ::mmap(nullptr, sizeof(CallRecordLayout), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory == MAP_FAILED) {
    ::close(file);
    return nullptr;
  }
  auto* const at = new (memory) CallRecordLayout{};
  std::memcpy(at->group, group.data(), std::min(group.size(), kMostGroupName));
  at->magic.store(kCallRecordMagic, std::memory_order_release);
  return std::unique_ptr<CallRecord>(new CallRecord(file, at));
}

CallRecordLayout::Peer* CallRecord::Find(Rank peer, bool sends) {
  if (peer < 0) return nullptr;
  const uint64_t who = Layout::Who(peer, sends);
  for (size_t i = 0; i < kRecordedPeers; ++i) {
    Layout::Peer& place = at_->peers[(who + i) % kRecordedPeers];
    uint64_t there = place.who.load(std::memory_order_relaxed);
    if (there == 0) place.who.compare_exchange_strong(there, who);
    if (there == 0 || there == who) return &place;
  }
  at_->more_peers.store(1, std::memory_order_relaxed);
  return nullptr;
}

CallRecord::~CallRecord() {
  ::munmap(at_, sizeof(CallRecordLayout));
  ::close(file_);
}

}  // namespace hlaunch
