// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/rare_log.h"
#include "proto/base/thread.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/socket/send_buffer.h"

namespace hlaunch {

class SocketLoop;

// A connected socket on a SocketLoop. Its owner derives a class with the connection's state from
// it. Belongs to the loop's thread once it has joined the loop. Any of its own calls may destroy
// it; then the connection is closed and nothing more is called.
class LoopSocket {
 public:
  explicit LoopSocket(UniqueFd fd, size_t* sum = nullptr) : fd_(std::move(fd)), out_(sum) {}
  virtual ~LoopSocket();
  LoopSocket(const LoopSocket&) = delete;
  LoopSocket& operator=(const LoopSocket&) = delete;

  // The loop calls these.
  //
  // Bytes have come, in this order. The loop keeps reading while AwaitBytes(true) holds.
  virtual void OnBytes(absl::string_view bytes) = 0;
  // The socket has taken some or all of out(), after it had been full.
  virtual void OnRoom() = 0;
  // The other end has closed the connection (0), or it broke (errno).
  virtual void OnEnd(int error) = 0;
  // The connection broke while no bytes were awaited; some may have come before.
  virtual void OnReset() = 0;

  // Joins the loop, which from then on turns the kernel's events into the calls above. Bytes are
  // awaited if `reads` is true.
  //
  // Errors:
  //   ResourceExhausted - the kernel cannot watch another socket.
  absl::Status Join(SocketLoop& loop, bool reads);
  // Like Join, for a socket that is connecting: OnRoom is called once that has ended, and SO_ERROR
  // holds the outcome. Bytes are awaited.
  absl::Status JoinConnecting(SocketLoop& loop);

  // Leaves the loop, which then makes no more calls, and returns the descriptor.
  UniqueFd Leave();

  // What is to be sent. Nothing is sent before Send.
  SendBuffer& out() { return out_; }
  const SendBuffer& out() const { return out_; }

  // Sends what the socket takes. Returns false, with the reason in errno, if the other end is gone.
  // Call AwaitBytes afterwards: it makes the loop send the rest once there is room.
  bool Send() { return out_.SendTo(fd_.get()); }

  // Sets whether bytes are read from now on. An owner that stops reading while too much of out() is
  // unsent bounds the cost of a slow peer.
  void AwaitBytes(bool reads);

  // Gives the bytes that are there to OnBytes, although none are awaited. For use in OnReset.
  void ReadRest();

  int fd() const { return fd_.get(); }
  std::string PeerName() const;  // "10.0.0.7 port 40112", for messages.

 private:
  friend class SocketLoop;

  absl::Status Watch(SocketLoop& loop, uint32_t interest);

  UniqueFd fd_;
  SendBuffer out_;
  SocketLoop* loop_ = nullptr;  // Null if it has not joined a loop.
  uint64_t id_ = 0;             // In the loop; never used twice.
  uint32_t interest_ = 0;       // The events that the kernel was asked for.
};

// A thread that serves sockets: accepts connections, reads them, sends what their buffers hold,
// and stops accepting for a while when the process is out of descriptors.
//
// It is not Asio's loop, which calls the kernel again for each message of each connection: that is
// a third of a message's cost. This loop hears of a socket once for each change (EPOLLET), reads
// until a read returns fewer bytes than there was room for, and calls the kernel only when the
// events that it wants change.
class SocketLoop {
 public:
  // The calls to a loop's owner, on the loop's thread. The owner must outlive the running loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    // A connection to the listener: close-on-exec, non-blocking, sends at once (TCP_NODELAY).
    virtual void OnAccepted(UniqueFd fd) = 0;
    // Called at the end of each turn, after all events of the kernel. Returns the latest time of
    // the next call: Instant() means at once, Instant::max() only after an event.
    virtual Instant OnTurnEnd() = 0;
  };

  struct Options {
    std::string name;         // What its warnings begin with.
    std::string thread_name;  // At most 15 bytes.
    // How often a socket is read before the others have their turn, 256 KiB at most each time.
    int reads_per_turn = 1;
  };

  // Serves the connections to `listener`; without one, only sockets that join.
  SocketLoop(Owner& owner, std::optional<ListeningSocket> listener, Options options);
  ~SocketLoop();  // As Stop. No socket may be on it any more.
  SocketLoop(const SocketLoop&) = delete;
  SocketLoop& operator=(const SocketLoop&) = delete;

  // Starts the thread.
  //
  // Errors:
  //   ResourceExhausted - out of descriptors or threads; the message is the system's.
  absl::Status Start();

  // Joins the thread: afterwards nothing more is called. Thread-safe before that.
  void Stop();

  // Runs `call` later on the loop's thread. Thread-safe.
  void Post(std::function<void()> call);

  uint16_t port() const { return port_; }  // The port where it listens; 0 if it does not listen.

  // Only the loop's thread may call the rest.

  // Closes all connections that wait to be accepted.
  void DropUnaccepted();

  // Logs a warning that strangers can cause, at most one in ten seconds.
  void Warn(const std::string& line);

 private:
  friend class LoopSocket;

  absl::Status Open();
  void Turn();
  int Patience() const;
  void Dispatch(uint64_t id, uint32_t events);
  void Read(LoopSocket& socket, bool hung_up, bool awaited);
  bool Ask(int operation, int fd, uint64_t id, uint32_t interest);
  LoopSocket* Find(uint64_t id) const;
  void RunCalls();
  void Accept();
  void PauseAccepting(int error);
  void EndPause();

  Owner& owner_;
  const Options options_;
  const uint16_t port_;
  UniqueFd listener_;
  UniqueFd events_;
  UniqueFd called_;
  Mutex mu_;
  std::vector<std::function<void()>> calls_ ABSL_GUARDED_BY(mu_);
  bool stopped_ = false;
  std::optional<Instant> accept_again_;  // Set while it does not accept.
  Instant next_;                         // As OnTurnEnd returned it.
  uint64_t last_id_;
  absl::flat_hash_map<uint64_t, LoopSocket*> sockets_;
  std::string buffer_;  // All reads use it: idle sockets have no buffer of their own.
  RareLog warnings_;
  Thread thread_;
};

}  // namespace hlaunch
