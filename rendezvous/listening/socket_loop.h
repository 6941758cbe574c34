// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/rare_log.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/listening/listen.h"
#include "rendezvous/listening/send_buffer.h"

namespace hlaunch {

class SocketLoop;

// A connected socket on a SocketLoop; its owner derives what it knows of the connection from it.
// Belongs to the loop's thread once it has joined the loop, and may be destroyed within any of its
// own calls; then the connection is closed and nothing more is called.
class LoopSocket {
 public:
  explicit LoopSocket(UniqueFd fd, size_t* sum = nullptr) : fd_(std::move(fd)), out_(sum) {}
  virtual ~LoopSocket();
  LoopSocket(const LoopSocket&) = delete;
  LoopSocket& operator=(const LoopSocket&) = delete;

  // These are called by the loop.
  //
  // Bytes have come, in this order. The loop goes on to read while AwaitBytes(true) holds.
  virtual void OnBytes(absl::string_view bytes) = 0;
  // The socket has taken some or all of out() after it had not.
  virtual void OnRoom() = 0;
  // The other end has closed the connection (0), or it broke (errno).
  virtual void OnEnd(int error) = 0;
  // The connection broke while no bytes were awaited; some may have come before.
  virtual void OnReset() = 0;

  // Begins: what the kernel tells of the socket comes to the calls above. Bytes are awaited if
  // `reads`.
  //
  // Errors:
  //   ResourceExhausted - the kernel watches no socket more.
  absl::Status Join(SocketLoop& loop, bool reads);
  // As Join, for a socket that has begun to connect: OnRoom is called once that has ended, and
  // SO_ERROR says how. Bytes are awaited.
  absl::Status JoinConnecting(SocketLoop& loop);

  // Leaves the loop, which calls it no more, and hands the descriptor over.
  UniqueFd Leave();

  // What is to be sent. Nothing is sent before Send.
  SendBuffer& out() { return out_; }
  const SendBuffer& out() const { return out_; }

  // Sends what the socket takes. Returns false, with the reason in errno, if the other end is gone.
  // After that AwaitBytes must be called, which has the rest sent once there is room.
  bool Send() { return out_.SendTo(fd_.get()); }

  // Says whether bytes are read from now on. An owner that says no while too much of out() is
  // unsent bounds what a slow peer costs.
  void AwaitBytes(bool reads);

  // Gives the bytes that are there to OnBytes though none are awaited: for OnReset.
  void ReadRest();

  int fd() const { return fd_.get(); }
  std::string PeerName() const;  // "10.0.0.7 port 40112", for messages.

 private:
  friend class SocketLoop;

  absl::Status Watch(SocketLoop& loop, uint32_t interest);

  UniqueFd fd_;
  SendBuffer out_;
  SocketLoop* loop_ = nullptr;  // Null: it has not joined one.
  uint64_t id_ = 0;             // In the loop; never used twice.
  uint32_t interest_ = 0;       // What the kernel has been asked to tell.
};

// A thread that serves sockets: accepts connections, reads them, sends what their buffers hold,
// and stops accepting for a while when the process is out of descriptors.
//
// Not Asio's loop: that asks the kernel anew for each message of each connection, which is a third
// of what one costs. This one is told of a socket once for each change (EPOLLET), reads until a
// read returns fewer bytes than there was room for, and changes what it asks for only where that
// changes.
class SocketLoop {
 public:
  // What a loop's owner does, on the loop's thread. It outlives the running loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    // A connection to the listener: close-on-exec, not blocking, sends at once (TCP_NODELAY).
    virtual void OnAccepted(UniqueFd fd) = 0;
    // Called at the end of each turn, when all that the kernel has told is done. Returns when it is
    // to be called again at the latest: Instant() at once, Instant::max() only after an event.
    virtual Instant OnTurnEnd() = 0;
  };

  struct Options {
    std::string name;         // What its warnings begin with.
    std::string thread_name;  // At most 15 bytes.
    // How often a socket is read before the others have their turn, 256 KiB at most each time.
    int reads_per_turn = 1;
  };

  // Serves what connects to `listener`, or only sockets that join.
  SocketLoop(Owner& owner, std::optional<ListeningSocket> listener, Options options);
  ~SocketLoop();  // As Stop. No socket may be on it any more.
  SocketLoop(const SocketLoop&) = delete;
  SocketLoop& operator=(const SocketLoop&) = delete;

  // Starts the thread.
  //
  // Errors:
  //   ResourceExhausted - out of descriptors or threads; what it lacks is the message.
  absl::Status Start();

  // Joins the thread: afterwards nothing more is called. Thread-safe before that.
  void Stop();

  // Has `call` run on the loop's thread. Thread-safe.
  void Post(std::function<void()> call);

  uint16_t port() const { return port_; }  // Where it listens; 0 if it does not.

  // The rest is for the loop's thread.

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
  Instant next_;                         // As OnTurnEnd said.
  uint64_t last_id_;
  absl::flat_hash_map<uint64_t, LoopSocket*> sockets_;
  std::string buffer_;  // For what is read: idle sockets have none of their own.
  RareLog warnings_;
  std::thread thread_;
};

}  // namespace hlaunch
