// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// All threads of ours start here (Asio and gRPC start theirs). Each has a name of at most 15 bytes,
// which is what the kernel keeps of it: `ps -L`, gdb and perf show it.

namespace hlaunch {

// A thread that its owner joins. Belongs to one thread, which is not itself.
class Thread {
 public:
  Thread() = default;  // There is no thread.
  // Throws std::system_error if the system refuses a thread: where the process cannot do without,
  // that ends it with a sentence (see SayWhatIsLacking). Who can do without calls Start.
  Thread(std::string name, std::function<void()> run);
  ~Thread() { Join(); }
  Thread(Thread&&) = default;
  Thread& operator=(Thread&& other) noexcept;

  // Errors:
  //   ResourceExhausted - the system refuses a thread; the message is NoThreadWords.
  static absl::StatusOr<Thread> Start(std::string name, std::function<void()> run);

  bool joinable() const { return thread_.joinable(); }
  // Waits until it has ended; does nothing if there is none.
  void Join();

 private:
  std::thread thread_;
};

// Runs `run` in a thread that nobody waits for, because it is in a call that nobody can stop: of
// the resolver, of a driver, of a file system that hangs. So `run` refers to nothing that ends
// before it does. Such threads are joined once they have ended, when the next one starts or the
// process exits; one that still runs then ends with the process. Thread-safe.
//
// Errors: as Thread::Start.
absl::Status StartUnawaited(std::string name, std::function<void()> run);

// The names of those that have not ended, sorted. Thread-safe.
std::vector<std::string> UnawaitedThreads();

// The reason and the way out if a thread or a process cannot be started because of `error`, an
// errno. Pure.
std::string NoThreadWords(int error);

}  // namespace hlaunch
