// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "comm/connection/shm_connection.h"
#include "comm/connection/shm_region.h"

namespace hlaunch {
namespace {

using namespace shm;

// The receiver wakes a sleeping sender after at most this many slots.
constexpr uint64_t kWakePeriod = kSlots / 4;

class ShmInConnection : public InConnection {
 public:
  ShmInConnection(UniqueFd socket, ShmMapping region, pid_t pid, const PullProof& proof, bool pulls)
      : socket_(std::move(socket)), region_(std::move(region)), pid_(pid), proof_(proof) {
    if (pulls && Pull({}, 0)) region_->can_pull.store(1, std::memory_order_relaxed);
  }

  int fd() const override { return socket_.get(); }

  const FrameHead* Front() override {
    if (in_front_) return &front_;
    if (!Published()) return nullptr;
    const Slot& slot = region_->slots[position_ % kSlots];
    front_ = slot.head;
    // This is the only check: a sender that writes such a frame is broken.
    if ((kind_ == kInSlot) != (front_.size <= kInline) || kind_ > kToPull) broken_ = true;
    in_front_ = !broken_;
    front_kind_ = kind_;
    offset_ = 0;
    return in_front_ ? &front_ : nullptr;
  }

  bool Take(std::span<std::byte> into) override {
    const uint64_t before = ring_position_ + pulled_;
    const bool whole = Read(into);
    in_front_ = in_front_ && !whole;
    // A sender that sleeps because all slots are full can wait until several are free. So not every
    // message inside a slot needs the fence.
    if (ring_position_ + pulled_ != before || position_ % kWakePeriod == 0) WakeSender();
    return whole;
  }

  bool Arm() override {
    WakeSender();
    region_->receiver_sleeps.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return !broken_ && !Published();
  }

  void SendNotice(const Notice& notice) override { shm::SendNotice(socket_.get(), notice); }

  std::vector<Notice> ReadNotices() override {
    std::vector<Notice> notices = shm::ReadNotices(socket_.get());
    if (broken_) notices.push_back({Notice::kDisconnected});
    return notices;
  }

 private:
  bool Published() {
    if (broken_) return false;
    const uint64_t stamp = region_->slots[position_ % kSlots].stamp.load(std::memory_order_acquire);
    kind_ = static_cast<SlotKind>(stamp & 3);
    return stamp >> 2 == position_ + 1;
  }

  void WakeSender() { WakeIf(region_->sender_sleeps, socket_.get()); }

  // Copies from the sender's memory. Returns false if the sender is dead or has withdrawn its
  // messages.
  bool Pull(std::span<std::byte> into, uint64_t address) {
    return PullFrom(pid_, proof_, into, address) &&
           region_->withdrawn.load(std::memory_order_seq_cst) == 0;
  }

  bool Read(std::span<std::byte> into) {
    while (Published()) {
      // A broken sender may write a slot again after Front has read it, or change the kind of a
      // message between its pieces. The code for each kind is safe only for the sizes that Front
      // allowed for this kind.
      if (kind_ != front_kind_) {
        broken_ = true;
        return false;
      }
      const Slot& slot = region_->slots[position_ % kSlots];
      if (kind_ == kInSlot) {
        if (!into.empty()) std::memcpy(into.data(), slot.bytes, into.size());
        offset_ = into.size();
      } else if (kind_ == kToPull) {
        uint64_t address;
        std::memcpy(&address, slot.bytes, sizeof address);
        if (!Pull(into, address)) {
          broken_ = true;
          return false;
        }
        offset_ = into.size();
        region_->pulled.store(++pulled_, std::memory_order_release);
      } else {
        const uint64_t piece = std::min<uint64_t>(into.size() - offset_, kPiece);
        const uint64_t at = PlaceInRing(&ring_position_, piece);
        std::memcpy(into.data() + offset_, region_->ring + at, piece);
        offset_ += piece;
        region_->ring_taken.store(ring_position_, std::memory_order_release);
      }
      region_->slots_taken.store(++position_, std::memory_order_release);
      if (offset_ == into.size()) return true;
    }
    return false;
  }

  const UniqueFd socket_;
  const ShmMapping region_;
  const pid_t pid_;
  const PullProof proof_;
  FrameHead front_;
  bool in_front_ = false;          // `front_` is valid.
  bool broken_ = false;            // The sender has written nonsense, or is dead.
  SlotKind kind_ = kInSlot;        // The kind of the slot that Published has seen.
  SlotKind front_kind_ = kInSlot;  // The kind of the message at Front.
  uint64_t position_ = 0;          // Slots taken.
  uint64_t ring_position_ = 0;
  uint64_t offset_ = 0;  // Bytes read of the message at Front.
  uint64_t pulled_ = 0;
};

}  // namespace

std::unique_ptr<InConnection> MakeShmInConnection(UniqueFd socket, ShmMapping mapping, pid_t pid,
                                                  const PullProof& proof, SingleCopy single_copy) {
  mapping.CloseFd();
  return std::make_unique<ShmInConnection>(std::move(socket), std::move(mapping), pid, proof,
                                           ShouldPull(single_copy));
}

}  // namespace hlaunch
