// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "comm/transport/link.h"
#include "proto/base/unique_fd.h"

// Two ranks on one host. The sender makes a region of memory without a name (a memfd) and passes it
// over a socket of the abstract unix kind; so nothing is left in any file system, whoever is killed
// when, and the end of the socket is the peer's death. The socket also carries news and wakes the
// one who sleeps.
//
//   region:  flags | what the receiver has taken | 256 slots of 64 bytes | 128 KiB for bytes
//
// A message is one slot: small ones lie in it, so they cost the reader one cache line. Larger ones
// take pieces of the byte ring, one slot for each: copied twice, by two cores at once. From
// kPullMin on, where the receiver may read the sender's memory (process_vm_readv; found out by
// trying) and that is faster (found out by measuring), the slot holds an address and the bytes are
// copied once, by the receiver.

namespace hlaunch {

struct ShmRegion;

// When large messages are copied once instead of twice.
enum class SingleCopy {
  kIfFaster,  // Where the kernel's copy is quick enough, which is measured once.
  kAlways,    // Wherever the kernel lets us.
  kNever,
};
inline constexpr char kEnvSingleCopy[] = "HLAUNCH_COMM_SINGLE_COPY";  // auto, always, never
// Errors: InvalidArgument - it says something else.
absl::StatusOr<SingleCopy> SingleCopyFromEnvironment();

// What the receiver must know to read the sender's memory: where a number lies that it can compare,
// so that it never takes the bytes of a stranger who got the pid of a sender that died.
struct PullProof {
  uint64_t address = 0;
  uint64_t value = 0;
};

class ShmMapping {
 public:
  // Makes a region; fd() is to be passed on.
  static absl::StatusOr<ShmMapping> Make();
  // Maps one that was passed.
  //
  // Errors:
  //   InvalidArgument - it is not one, or could be cut short under us.
  static absl::StatusOr<ShmMapping> Map(UniqueFd fd);

  ShmMapping(ShmMapping&& other) noexcept;
  ShmMapping& operator=(ShmMapping&&) = delete;
  ~ShmMapping();

  int fd() const { return fd_.get(); }
  void CloseFd() { fd_.Close(); }
  ShmRegion* operator->() const { return region_; }

 private:
  ShmMapping(UniqueFd fd, ShmRegion* region) : fd_(std::move(fd)), region_(region) {}

  UniqueFd fd_;
  ShmRegion* region_;
};

PullProof MyPullProof();

std::unique_ptr<OutLink> MakeShmOutLink(UniqueFd socket, ShmMapping mapping);

// Tries whether this process may read that of `pid`, as whose the kernel knows the sender, and lets
// the sender know.
std::unique_ptr<InLink> MakeShmInLink(UniqueFd socket, ShmMapping mapping, pid_t pid,
                                      const PullProof& proof, SingleCopy single_copy);

}  // namespace hlaunch
