// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/string_view.h"
#include "comm/call/call.h"

namespace hlaunch {

inline constexpr char kCallRecordFile[] = "hlaunch-calls";        // The name of its file in memory.
inline constexpr uint64_t kCallRecordMagic = 0x32736c6c61636c68;  // "hlcalls2"
inline constexpr size_t kRecordedCalls = 32;                      // The last ones.
inline constexpr size_t kRecordedPeers = 64;                      // Each direction counts.
inline constexpr size_t kMostGroupName = 127;

// How the record lies in the file. It is the same in all releases with the same magic number.
struct CallRecordLayout {
  struct Entry {
    std::atomic<uint64_t> number;
    std::atomic<uint64_t> count;  // The elements of this rank's data.
    std::atomic<uint32_t> verb;   // A Verb, or kMonitoredBarrier.
    std::atomic<uint32_t> type;   // A DataType.
  };
  static constexpr uint32_t kMonitoredBarrier = 255;
  // The messages to one rank of the group, or from it.
  struct Peer {
    std::atomic<uint64_t> who;      // As Who says; 0: nobody yet.
    std::atomic<uint64_t> called;   // How many.
    std::atomic<uint64_t> over;     // Of these, as far as somebody has asked.
    std::atomic<uint64_t> awaited;  // How many threads wait for one.
  };
  static constexpr uint64_t Who(Rank peer, bool sends) {
    return 2 * (static_cast<uint64_t>(peer) + 1) + (sends ? 1 : 0);
  }

  std::atomic<uint64_t> magic;
  char group[kMostGroupName + 1];
  std::atomic<uint64_t> begun;    // The number of the last collective that was called.
  std::atomic<uint64_t> over;     // That one and all before it are over.
  std::atomic<uint64_t> awaited;  // How many threads wait for a message from or to a single rank.
  Entry entries[kRecordedCalls];  // By number % kRecordedCalls.
  Peer peers[kRecordedPeers];
  std::atomic<uint64_t> more_peers;  // There was no place for all.
};

// What a group of this process has called last, in a file in memory that the rank's hlaunch reads
// while this process runs: it needs no thread of this process, and no lock of Python.
//
// Thread-safe, except that Begin and End need the caller's order.
class CallRecord {
 public:
  // Returns null if the system gives no such file: then nothing is recorded.
  static std::unique_ptr<CallRecord> Open(absl::string_view group);
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  // A collective with this number, one more than the last, was called.
  void Begin(uint64_t number, Verb verb, DataType type, uint64_t count) {
    Begin(number, static_cast<uint32_t>(verb), static_cast<uint32_t>(type), count);
  }
  void BeginMonitoredBarrier(uint64_t number) {
    Begin(number, CallRecordLayout::kMonitoredBarrier, 0, 0);
  }
  // It is over, as all before it are.
  void End(uint64_t number) { at_->over.store(number, std::memory_order_release); }

  // A message to that rank of the group, or from it, was called, or is over. Any rank (less than 0)
  // is not recorded.
  void CallMessage(Rank peer, bool sends) { Add(Find(peer, sends), &Layout::Peer::called); }
  void EndMessage(Rank peer, bool sends) { Add(Find(peer, sends), &Layout::Peer::over); }

  // A thread waits for such a message.
  void BeginMessageWait(Rank peer, bool sends) {
    at_->awaited.fetch_add(1, std::memory_order_relaxed);
    Add(Find(peer, sends), &Layout::Peer::awaited);
  }
  void EndMessageWait(Rank peer, bool sends) {
    at_->awaited.fetch_sub(1, std::memory_order_relaxed);
    if (Layout::Peer* const found = Find(peer, sends)) {
      found->awaited.fetch_sub(1, std::memory_order_relaxed);
    }
  }

 private:
  using Layout = CallRecordLayout;

  static void Add(Layout::Peer* peer, std::atomic<uint64_t> Layout::Peer::*what) {
    if (peer != nullptr) (peer->*what).fetch_add(1, std::memory_order_relaxed);
  }
  // Null if it is not recorded.
  Layout::Peer* Find(Rank peer, bool sends);

  CallRecord(int file, CallRecordLayout* at) : file_(file), at_(at) {}
  void Begin(uint64_t number, uint32_t verb, uint32_t type, uint64_t count) {
    CallRecordLayout::Entry& entry = at_->entries[number % kRecordedCalls];
    entry.number.store(0, std::memory_order_release);  // Who reads it now learns nothing.
    entry.verb.store(verb, std::memory_order_release);
    entry.type.store(type, std::memory_order_release);
    entry.count.store(count, std::memory_order_release);
    entry.number.store(number, std::memory_order_release);
    at_->begun.store(number, std::memory_order_release);
  }

  const int file_;
  CallRecordLayout* const at_;
};

}  // namespace hlaunch
