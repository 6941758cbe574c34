// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "comm/transport/link.h"
#include "comm/transport/meeting.h"
#include "comm/transport/transport.h"
#include "comm/transport/wait_plan.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

// Of a large message over TCP; see tcp_link.h.
inline constexpr int kTcpStreams = 4;

struct ProcessTransportOptions {
  std::string name = "default";                    // Of the group: its keys in the store.
  std::string address;                             // A literal of this host that the others reach.
  bool shared_memory = true;                       // Else TCP inside a host, too.
  SingleCopy single_copy = SingleCopy::kIfFaster;  // Of large messages inside a host; shm_link.h.
  int streams = kTcpStreams;                       // TCP connections for a large message.
  int local_ranks = 1;  // Ranks of this host as far as known; more are found out.
};

// Ranks that are processes: shared memory to those on the same host, TCP to the others. Ways to
// other ranks are made when the first message goes there or is waited for, one for each direction;
// the store is asked where a rank is. Has no thread of its own.
//
// A failure is written to the store, too, so that who finds a rank gone can say why it went; and so
// is whom a rank waited for when its time was up, so that the end of the chain is named. Keys in
// the store, behind "hlaunch/comm/" and the group's name: each rank's number, "failure", "waits".
class ProcessTransport : public Transport {
 public:
  // Does not wait for the other ranks. `store` outlives the transport; no group of the same name
  // may have used it.
  //
  // Errors:
  //   InvalidArgument - `address` is not a literal of this host.
  //   Unavailable, ResourceExhausted - as Store::Set; or no descriptors.
  static absl::StatusOr<std::unique_ptr<ProcessTransport>> Create(
      Store& store, Rank rank, int size, const ProcessTransportOptions& options);

  // Says goodbye: what others then wait for from this rank is an error to them.
  ~ProcessTransport() override;

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  void Start(Outgoing* message) override;
  void Start(Incoming* message) override;
  void Enter(const Call& call, uint64_t number) override;
  absl::Status Progress(const Message& message, Instant until) override;
  absl::Status End(Failure why) override { return Found(std::move(why)); }
  absl::Status GiveUp(const Message& message) override;
  void Poke() override;
  std::string host() const override { return host_; }
  const Failure* failure() const override { return failure_.status.ok() ? nullptr : &failure_; }
  void Abort(const std::string& why) override;

 private:
  // A message that came before it was asked for.
  struct Early {
    FrameHead head;
    std::vector<std::byte> bytes;
  };
  struct Peer {
    Rank rank;
    std::string host;  // Empty until known.
    std::unique_ptr<OutLink> out;
    std::unique_ptr<InLink> in;
    size_t sides_watched = 0;          // Of out.
    std::deque<Outgoing*> sending;     // Not handed over yet.
    std::vector<Incoming*> receiving;  // Not done.
    std::deque<Early> early;
    bool busy = false;   // In busy_.
    bool hoped = false;  // In hoping_.
    // It said goodbye: on the way to us, so nothing comes after it; or on the way to it.
    bool left_in = false, left_out = false;
    bool out_gone = false;  // The way to it broke or could not be made; the way to us says why.
    bool sends = true;      // With left_out: what it sent us may still be on its way.
    // Where the message in front goes: neither while it belongs to nothing.
    Incoming* taking = nullptr;
    bool taking_early = false;
  };

  ProcessTransport(Store& store, Rank rank, int size, const ProcessTransportOptions& options,
                   Door door, UniqueFd epoll, UniqueFd poke_event);

  Peer& At(Rank rank);
  std::string Name(const Peer& peer) const;
  std::string Key(absl::string_view what) const;
  void Watch(int fd, uint32_t events, uint64_t tag);

  bool TakeEarly(Peer& peer, Incoming* message);
  Incoming* Asked(Peer& peer, const FrameHead& head);
  bool IsMismatch(Peer& peer, const FrameHead& head);
  bool Matches(Peer& peer, const Incoming& message, const FrameHead& head);
  void Hope(Peer& peer);
  bool Receive(Peer& peer);
  bool ReceiveFromAll();
  bool Send(Peer& peer);
  bool SendAll();
  bool Move(const Message& message);
  absl::Status Connect(Peer& peer, const Message& missed, Instant until);
  absl::StatusOr<std::optional<MeetingPoint>> Find(Peer& peer, Instant until);
  absl::Status Sleep(const Message& message, Instant until);
  bool ArmAll();
  int HandleEvents(int millis);
  void FindMismatch();
  void HearPoke();
  void LetIn();
  bool HasLeft(const Peer& peer, const Message& message) const;
  bool AllHaveLeft() const;
  bool Heard(Peer& peer, const std::vector<News>& heard, bool* left);
  void HearOut(Peer& peer);
  void HearIn(Peer& peer);
  absl::Status Found(Failure failure);
  Failure EndOfChain(const absl::Status& mine, Rank awaited);
  void Fail(Failure failure);

  Store& store_;
  const Rank rank_;
  const ProcessTransportOptions options_;
  const std::string host_;
  Door door_;
  const UniqueFd epoll_;
  const UniqueFd poke_event_;
  const int cores_;
  WaitPlan plan_;
  int local_peers_ = 0;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Caller> early_sides_;  // Whose links have not come yet.
  std::vector<Incoming*> any_;       // What anybody may send.
  std::vector<Peer*> hoping_;        // Who has messages to be received.
  std::vector<Peer*> busy_;          // Who has messages to be sent that are not done.
  bool moved_ = false;               // Anything, since Progress began.
  const Message* missed_ = nullptr;  // What Wait waits for.
  size_t early_count_ = 0;           // Of all peers.
  Message entered_;                  // The collective this rank is in; kSend before the first.
  Failure failure_;

  std::atomic<bool> poked_{false};
  Mutex mu_;
  std::optional<std::string> abort_reason_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
