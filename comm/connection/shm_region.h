// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/connection/connection.h"
#include "proto/base/unique_fd.h"

// The memory that two ranks of a host share for one connection, and how each wakes the other. For
// shm_*_connection.cc; shm_connection.h describes the whole.

namespace hlaunch::shm {

inline constexpr uint64_t kSlots = 256;
inline constexpr uint64_t kRingBytes = 128 << 10;
inline constexpr uint64_t kPiece = 8 << 10;     // Most bytes in the ring that one slot stands for.
inline constexpr uint64_t kInline = 24;         // Bytes of a message that fit into its slot.
inline constexpr uint64_t kPullMin = 64 << 10;  // Messages from this size on may be pulled.
inline constexpr uint64_t kLine = 64;           // Bytes of a cache line.

// Where the bytes of a slot are.
enum SlotKind : uint64_t { kInSlot = 0, kInRing = 1, kToPull = 2 };

// A slot is used again after kSlots others. The stamp says which use this is, so that a reader
// recognises a new slot without a counter.
constexpr uint64_t Stamp(uint64_t position, SlotKind kind) { return (position + 1) << 2 | kind; }

struct alignas(kLine) Slot {
  std::atomic<uint64_t> stamp;
  FrameHead head;
  std::byte bytes[kInline];
};
static_assert(sizeof(Slot) == kLine);

struct Region {
  // Written by the sender.
  alignas(kLine) std::atomic<uint32_t> sender_sleeps;
  std::atomic<uint32_t> withdrawn;
  // Written by the receiver.
  alignas(kLine) std::atomic<uint64_t> slots_taken;
  std::atomic<uint64_t> ring_taken;
  std::atomic<uint64_t> pulled;
  alignas(kLine) std::atomic<uint32_t> receiver_sleeps;
  std::atomic<uint32_t> can_pull;
  Slot slots[kSlots];
  alignas(kLine) std::byte ring[kRingBytes];
};

// Returns the offset in the ring of a piece of `size` bytes that follows `*position`, and moves
// `*position` behind the piece. Sender and receiver compute the same offset, so it is not sent.
inline uint64_t PlaceInRing(uint64_t* position, uint64_t size) {
  uint64_t offset = *position % kRingBytes;
  if (offset + size > kRingBytes) {
    *position += kRingBytes - offset;
    offset = 0;
  }
  *position += (size + kLine - 1) / kLine * kLine;
  return offset;
}

// Sends a packet of one byte, which wakes the other rank and means nothing else.
void Wake(int socket);

// To be called after something was published: wakes the other rank if it sleeps.
inline void WakeIf(std::atomic<uint32_t>& sleeps, int socket) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleeps.load(std::memory_order_relaxed) != 0 &&
      sleeps.exchange(0, std::memory_order_relaxed) != 0) {
    Wake(socket);
  }
}

void SendNotice(int socket, const Notice& notice);
std::vector<Notice> ReadNotices(int socket);

}  // namespace hlaunch::shm

namespace hlaunch {

// Owns a mapped region, and its descriptor until CloseFd.
class ShmMapping {
 public:
  // Makes a region; fd() is to be passed to the receiver.
  static absl::StatusOr<ShmMapping> Make();
  // Maps a region that the sender has passed.
  //
  // Errors:
  //   InvalidArgument - the descriptor is not such a region, or its maker could shorten it while it
  //     is mapped.
  static absl::StatusOr<ShmMapping> Map(UniqueFd fd);

  ShmMapping(ShmMapping&& other) noexcept;
  ShmMapping& operator=(ShmMapping&&) = delete;
  ~ShmMapping();

  int fd() const { return fd_.get(); }
  void CloseFd() { fd_.Close(); }
  shm::Region* operator->() const { return region_; }

 private:
  ShmMapping(UniqueFd fd, shm::Region* region) : fd_(std::move(fd)), region_(region) {}

  UniqueFd fd_;
  shm::Region* region_;
};

}  // namespace hlaunch
