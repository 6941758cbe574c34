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
inline constexpr uint64_t kCallRecordMagic = 0x31736c6c61636c68;  // "hlcalls1"
inline constexpr size_t kRecordedCalls = 32;                      // The last ones.
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

  std::atomic<uint64_t> magic;
  char group[kMostGroupName + 1];
  std::atomic<uint64_t> begun;    // The number of the last collective that was called.
  std::atomic<uint64_t> over;     // That one and all before it are over.
  std::atomic<uint64_t> awaited;  // How many threads wait for a message from or to a single rank.
  Entry entries[kRecordedCalls];  // By number % kRecordedCalls.
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

  void BeginMessageWait() { at_->awaited.fetch_add(1, std::memory_order_relaxed); }
  void EndMessageWait() { at_->awaited.fetch_sub(1, std::memory_order_relaxed); }

 private:
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
