// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/shm_link.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr uint64_t kSlots = 256;
constexpr uint64_t kBulk = 128 << 10;
constexpr uint64_t kPiece = 8 << 10;
constexpr uint64_t kInline = 24;
constexpr uint64_t kPullMin = 16 << 10;
constexpr uint64_t kLine = 64;
constexpr uint64_t kWakeEach = kSlots / 4;

enum SlotKind : uint64_t { kInSlot = 0, kInBulk = 1, kToPull = 2 };

// The stamp says which slot of the endless row this is, so a reader knows it without a counter.
constexpr uint64_t Stamp(uint64_t position, SlotKind kind) { return (position + 1) << 2 | kind; }

struct alignas(kLine) Slot {
  std::atomic<uint64_t> stamp;
  FrameHead head;
  std::byte bytes[kInline];
};
static_assert(sizeof(Slot) == kLine);

// Where a piece of `size` bytes lies that comes after `*position`, which moves behind it. Both ends
// count alike, so it need not be told.
uint64_t PlaceInBulk(uint64_t* position, uint64_t size) {
  uint64_t offset = *position % kBulk;
  if (offset + size > kBulk) {
    *position += kBulk - offset;
    offset = 0;
  }
  *position += (size + kLine - 1) / kLine * kLine;
  return offset;
}

}  // namespace

struct ShmRegion {
  // Written by the sender.
  alignas(kLine) std::atomic<uint32_t> sender_sleeps;
  std::atomic<uint32_t> withdrawn;
  // Written by the receiver.
  alignas(kLine) std::atomic<uint64_t> slots_taken;
  std::atomic<uint64_t> bulk_taken;
  std::atomic<uint64_t> pulled;
  alignas(kLine) std::atomic<uint32_t> receiver_sleeps;
  std::atomic<uint32_t> can_pull;
  Slot slots[kSlots];
  alignas(kLine) std::byte bulk[kBulk];
};

namespace {

// Sends a packet of one byte: it wakes and says nothing.
void Wake(int socket) { ::send(socket, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

// After a publication: wakes the other side if it sleeps.
void WakeIf(std::atomic<uint32_t>& sleeps, int socket) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleeps.load(std::memory_order_relaxed) != 0 &&
      sleeps.exchange(0, std::memory_order_relaxed) != 0) {
    Wake(socket);
  }
}

void SendNews(int socket, const News& news) {
  const NewsPacket packet = Pack(news);
  ::send(socket, &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::vector<News> ReadNews(int socket) {
  std::vector<News> heard;
  while (true) {
    NewsPacket packet;
    const ssize_t size = ::recv(socket, &packet, sizeof packet, MSG_DONTWAIT);
    if (size == sizeof packet) {
      heard.push_back(Unpack(packet));
    } else if (size < 0 && errno == ECONNRESET) {
      // It closed without reading our last word; what it said before that comes after this error.
    } else if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
      heard.push_back({News::kGone});
      return heard;
    } else if (size < 0 && errno == EAGAIN) {
      return heard;
    }
  }
}

class ShmOutLink : public OutLink {
 public:
  ShmOutLink(UniqueFd socket, ShmMapping region)
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
    const uint64_t bulk = region_->bulk_taken.load(std::memory_order_acquire);
    const bool same = slots == seen_slots_ && bulk == seen_bulk_ &&
                      region_->pulled.load(std::memory_order_acquire) == seen_pulled_;
    seen_slots_ = slots;
    seen_bulk_ = bulk;
    return same;
  }

  void Tell(const News& news) override { SendNews(socket_.get(), news); }
  std::vector<News> Hear() override { return ReadNews(socket_.get()); }
  void Withdraw() override { region_->withdrawn.store(1, std::memory_order_seq_cst); }

 private:
  bool SlotFree() {
    if (position_ - seen_slots_ < kSlots) return true;
    seen_slots_ = region_->slots_taken.load(std::memory_order_acquire);
    return position_ - seen_slots_ < kSlots;
  }

  // Room for a piece that ends at `end`. The receiver's word is not trusted to be sane, only to be
  // its own loss.
  bool BulkFree(uint64_t end) {
    if (end - seen_bulk_ <= kBulk) return true;
    seen_bulk_ = region_->bulk_taken.load(std::memory_order_acquire);
    return end - seen_bulk_ <= kBulk;
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
    if (offset_ == 0 && size <= kInline) {
      if (!SlotFree()) return false;
      Slot& slot = NextSlot(*message);
      if (size > 0) std::memcpy(slot.bytes, message->bytes.data(), size);
      Publish(&slot, kInSlot);
      MarkDone(message);
      return true;
    }
    if (offset_ == 0 && size >= kPullMin &&
        region_->can_pull.load(std::memory_order_relaxed) != 0) {
      if (!SlotFree()) return false;
      Slot& slot = NextSlot(*message);
      const auto address = reinterpret_cast<uint64_t>(message->bytes.data());
      std::memcpy(slot.bytes, &address, sizeof address);
      Publish(&slot, kToPull);
      to_pull_.push_back(message);
      return true;
    }
    while (offset_ < size) {
      const uint64_t piece = std::min<uint64_t>(size - offset_, kPiece);
      uint64_t end = bulk_position_;
      const uint64_t place = PlaceInBulk(&end, piece);
      if (!SlotFree() || !BulkFree(end)) return false;
      std::memcpy(region_->bulk + place, message->bytes.data() + offset_, piece);
      bulk_position_ = end;
      offset_ += piece;
      Publish(&NextSlot(*message), kInBulk);
    }
    offset_ = 0;
    MarkDone(message);
    return true;
  }

  const UniqueFd socket_;
  const ShmMapping region_;
  uint64_t position_ = 0;       // Slots published.
  uint64_t bulk_position_ = 0;  // Bytes of the ring used up.
  uint64_t offset_ = 0;         // Of the message that Push is in the middle of.
  std::deque<Outgoing*> to_pull_;
  uint64_t pulled_ = 0;
  // What the receiver had taken when last looked at.
  uint64_t seen_slots_ = 0, seen_bulk_ = 0, seen_pulled_ = 0;
};

class ShmInLink : public InLink {
 public:
  ShmInLink(UniqueFd socket, ShmMapping region, pid_t pid, const PullProof& proof, bool pulls)
      : socket_(std::move(socket)), region_(std::move(region)), pid_(pid), proof_(proof) {
    if (pulls && Pull({}, 0)) region_->can_pull.store(1, std::memory_order_relaxed);
  }

  int fd() const override { return socket_.get(); }

  const FrameHead* Front() override {
    if (in_front_) return &front_;
    if (!Published()) return nullptr;
    const Slot& slot = region_->slots[position_ % kSlots];
    front_ = slot.head;
    // Checked once and for all: a frame that a sender may not write is a broken sender.
    if ((kind_ == kInSlot) != (front_.size <= kInline) || kind_ > kToPull) broken_ = true;
    in_front_ = !broken_;
    offset_ = 0;
    return in_front_ ? &front_ : nullptr;
  }

  bool Take(std::span<std::byte> into) override {
    const uint64_t before = bulk_position_ + pulled_;
    const bool whole = Read(into);
    in_front_ = in_front_ && !whole;
    // A sender that sleeps because all slots are full can wait for more than one of them: so a
    // message that lies in its slot does without the fence.
    if (bulk_position_ + pulled_ != before || position_ % kWakeEach == 0) WakeSender();
    return whole;
  }

  bool Arm() override {
    WakeSender();
    region_->receiver_sleeps.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return !broken_ && !Published();
  }

  void Tell(const News& news) override { SendNews(socket_.get(), news); }

  std::vector<News> Hear() override {
    std::vector<News> heard = ReadNews(socket_.get());
    if (broken_) heard.push_back({News::kGone});
    return heard;
  }

 private:
  bool Published() {
    if (broken_) return false;
    const uint64_t stamp = region_->slots[position_ % kSlots].stamp.load(std::memory_order_acquire);
    kind_ = static_cast<SlotKind>(stamp & 3);
    return stamp >> 2 == position_ + 1;
  }

  void WakeSender() { WakeIf(region_->sender_sleeps, socket_.get()); }

  // Reads the sender's memory and, in the same call, the proof that it is the sender's.
  bool Pull(std::span<std::byte> into, uint64_t address) {
    size_t offset = 0;
    do {
      const size_t size = std::min<size_t>(into.size() - offset, 1 << 30);
      uint64_t seen = 0;
      iovec local[2] = {{into.data() + offset, size}, {&seen, sizeof seen}};
      iovec remote[2] = {{reinterpret_cast<void*>(address + offset), size},
                         {reinterpret_cast<void*>(proof_.address), sizeof seen}};
      const bool empty = size == 0;
      const ssize_t got =
          ::process_vm_readv(pid_, local + empty, 2 - empty, remote + empty, 2 - empty, 0);
      if (got != static_cast<ssize_t>(size + sizeof seen) || seen != proof_.value) return false;
      offset += size;
    } while (offset < into.size());
    return region_->withdrawn.load(std::memory_order_seq_cst) == 0;
  }

  bool Read(std::span<std::byte> into) {
    while (Published()) {
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
        const uint64_t place = PlaceInBulk(&bulk_position_, piece);
        std::memcpy(into.data() + offset_, region_->bulk + place, piece);
        offset_ += piece;
        region_->bulk_taken.store(bulk_position_, std::memory_order_release);
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
  bool in_front_ = false;
  bool broken_ = false;
  SlotKind kind_ = kInSlot;
  uint64_t position_ = 0;  // Slots taken.
  uint64_t bulk_position_ = 0;
  uint64_t offset_ = 0;  // In the message in front.
  uint64_t pulled_ = 0;
};

absl::StatusOr<ShmRegion*> MapFd(int fd) {
  void* const at = ::mmap(nullptr, sizeof(ShmRegion), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap of shared memory");
  return static_cast<ShmRegion*>(at);
}

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

// The best of a few, so that an interruption does not count.
template <typename Copy>
Duration TimeOf(const Copy& copy) {
  Duration best = Duration::max();
  for (int i = 0; i < 5; ++i) {
    const Instant begin = MonotonicClock().Now();
    copy();
    best = std::min(best, Duration(MonotonicClock().Now() - begin));
  }
  return best;
}

// Whether one copy by the kernel costs less than two of ours. These are made by two cores at once
// where only one rank sends, and one after the other where both do: between one and two times one
// of ours, so the limit is one and a half. It reads this process, which is as much work for it as
// another.
bool MeasurePull() {
  constexpr size_t kSize = 128 << 10;
  std::vector<std::byte> from(kSize, std::byte{1}), into(kSize, std::byte{2});
  const Duration ours = TimeOf([&] { std::memcpy(into.data(), from.data(), kSize); });
  bool allowed = true;
  const Duration kernels = TimeOf([&] {
    const iovec local{into.data(), kSize}, remote{from.data(), kSize};
    allowed &= ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == ssize_t{kSize};
  });
  return allowed && 2 * kernels < 3 * ours;
}

bool Pulls(SingleCopy single_copy) {
  if (single_copy != SingleCopy::kIfFaster) return single_copy == SingleCopy::kAlways;
  static const bool faster = MeasurePull();
  return faster;
}

}  // namespace

absl::StatusOr<SingleCopy> SingleCopyFromEnvironment() {
  const char* const value = std::getenv(kEnvSingleCopy);
  const absl::string_view text = value == nullptr ? "" : value;
  if (text.empty() || text == "auto") return SingleCopy::kIfFaster;
  if (text == "always") return SingleCopy::kAlways;
  if (text == "never") return SingleCopy::kNever;
  return absl::InvalidArgumentError(
      absl::StrCat(kEnvSingleCopy, "=", text, ": it is auto, always or never"));
}

absl::StatusOr<ShmMapping> ShmMapping::Make() {
  UniqueFd fd(::memfd_create("hlaunch-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  if (::ftruncate(fd.get(), sizeof(ShmRegion)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return absl::ErrnoToStatus(errno, "shared memory");
  }
  HLAUNCH_ASSIGN_OR_RETURN(ShmRegion * region, MapFd(fd.get()));
  return ShmMapping(std::move(fd), region);
}

absl::StatusOr<ShmMapping> ShmMapping::Map(UniqueFd fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals ||
      ::lseek(fd.get(), 0, SEEK_END) != static_cast<off_t>(sizeof(ShmRegion))) {
    return absl::InvalidArgumentError("what was passed is no shared memory of this version");
  }
  HLAUNCH_ASSIGN_OR_RETURN(ShmRegion * region, MapFd(fd.get()));
  return ShmMapping(std::move(fd), region);
}

ShmMapping::ShmMapping(ShmMapping&& other) noexcept
    : fd_(std::move(other.fd_)), region_(std::exchange(other.region_, nullptr)) {}

ShmMapping::~ShmMapping() {
  if (region_ != nullptr) ::munmap(region_, sizeof(ShmRegion));
}

PullProof MyPullProof() {
  static const uint64_t value = NewIncarnation();
  return {reinterpret_cast<uint64_t>(&value), value};
}

std::unique_ptr<OutLink> MakeShmOutLink(UniqueFd socket, ShmMapping mapping) {
  mapping.CloseFd();
  return std::make_unique<ShmOutLink>(std::move(socket), std::move(mapping));
}

std::unique_ptr<InLink> MakeShmInLink(UniqueFd socket, ShmMapping mapping, pid_t pid,
                                      const PullProof& proof, SingleCopy single_copy) {
  mapping.CloseFd();
  return std::make_unique<ShmInLink>(std::move(socket), std::move(mapping), pid, proof,
                                     Pulls(single_copy));
}

}  // namespace hlaunch
