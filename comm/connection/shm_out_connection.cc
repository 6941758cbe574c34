// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <utility>

#include "comm/connection/shm_connection.h"
#include "comm/connection/shm_region.h"

namespace hlaunch {
namespace {

using namespace shm;

class ShmOutConnection : public OutConnection {
 public:
  ShmOutConnection(UniqueFd socket, ShmMapping region)
      : socket_(std::move(socket)), region_(std::move(region)) {}

  int fd() const override { return socket_.get(); }

  bool Push(Outgoing* message) override {
    const bool handed_over = Write(message);
    WakeIf(region_->receiver_sleeps, socket_.get());
    return handed_over;
  }

  bool Poll() override {
    if (to_pull_.empty()) return false;
    const uint64_t before = pulled_;
    for (seen_pulled_ = region_->pulled.load(std::memory_order_acquire);
         pulled_ < seen_pulled_ && !to_pull_.empty(); ++pulled_) {
      MarkDone(to_pull_.front());
      to_pull_.pop_front();
    }
    return pulled_ != before;
  }

  bool Settled() const override { return to_pull_.empty(); }

  bool Arm() override {
    region_->sender_sleeps.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint64_t slots = region_->slots_taken.load(std::memory_order_acquire);
    const uint64_t ring = region_->ring_taken.load(std::memory_order_acquire);
    const bool same = slots == seen_slots_ && ring == seen_ring_ &&
                      region_->pulled.load(std::memory_order_acquire) == seen_pulled_;
    seen_slots_ = slots;
    seen_ring_ = ring;
    return same;
  }

  void SendNotice(const Notice& notice) override { shm::SendNotice(socket_.get(), notice); }
  std::vector<Notice> ReadNotices() override { return shm::ReadNotices(socket_.get()); }
  void Withdraw() override { region_->withdrawn.store(1, std::memory_order_seq_cst); }

 private:
  bool SlotIsFree() {
    if (position_ - seen_slots_ < kSlots) return true;
    seen_slots_ = region_->slots_taken.load(std::memory_order_acquire);
    return position_ - seen_slots_ < kSlots;
  }

  // Returns whether the ring has room for a piece that ends at `end`. If the receiver writes a
  // wrong number here, it harms only itself.
  bool RingHasRoom(uint64_t end) {
    if (end - seen_ring_ <= kRingBytes) return true;
    seen_ring_ = region_->ring_taken.load(std::memory_order_acquire);
    return end - seen_ring_ <= kRingBytes;
  }

  Slot& NextSlot(const Outgoing& message) {
    Slot& slot = region_->slots[position_ % kSlots];
    slot.head = {message.number, message.call, message.bytes.size()};
    return slot;
  }
  void Publish(Slot* slot, SlotKind kind) {
    slot->stamp.store(Stamp(position_++, kind), std::memory_order_release);
  }

  bool Write(Outgoing* message) {
    const size_t size = message->bytes.size();
    if (offset_ == 0 && size <= kInline) return WriteInSlot(message);
    if (offset_ == 0 && size >= kPullMin &&
        region_->can_pull.load(std::memory_order_relaxed) != 0) {
      return WriteAddress(message);
    }
    return WritePieces(message);
  }

  bool WriteInSlot(Outgoing* message) {
    if (!SlotIsFree()) return false;
    Slot& slot = NextSlot(*message);
    const size_t size = message->bytes.size();
    if (size > 0) std::memcpy(slot.bytes, message->bytes.data(), size);
    Publish(&slot, kInSlot);
    MarkDone(message);
    return true;
  }

  bool WriteAddress(Outgoing* message) {
    if (!SlotIsFree()) return false;
    Slot& slot = NextSlot(*message);
    const auto address = reinterpret_cast<uint64_t>(message->bytes.data());
    std::memcpy(slot.bytes, &address, sizeof address);
    Publish(&slot, kToPull);
    to_pull_.push_back(message);
    return true;
  }

  bool WritePieces(Outgoing* message) {
    const size_t size = message->bytes.size();
    while (offset_ < size) {
      const uint64_t piece = std::min<uint64_t>(size - offset_, kPiece);
      uint64_t end = ring_position_;
      const uint64_t at = PlaceInRing(&end, piece);
      if (!SlotIsFree() || !RingHasRoom(end)) return false;
      std::memcpy(region_->ring + at, message->bytes.data() + offset_, piece);
      ring_position_ = end;
      offset_ += piece;
      Publish(&NextSlot(*message), kInRing);
    }
    offset_ = 0;
    MarkDone(message);
    return true;
  }

  const UniqueFd socket_;
  const ShmMapping region_;
  uint64_t position_ = 0;          // The number of slots published.
  uint64_t ring_position_ = 0;     // The number of bytes of the ring used.
  uint64_t offset_ = 0;            // Bytes already sent of the message that Push has begun.
  std::deque<Outgoing*> to_pull_;  // Messages that the receiver will copy.
  uint64_t pulled_ = 0;
  // What the receiver had taken when this rank last looked.
  uint64_t seen_slots_ = 0, seen_ring_ = 0, seen_pulled_ = 0;
};

}  // namespace

std::unique_ptr<OutConnection> MakeShmOutConnection(UniqueFd socket, ShmMapping mapping) {
  mapping.CloseFd();
  return std::make_unique<ShmOutConnection>(std::move(socket), std::move(mapping));
}

}  // namespace hlaunch
