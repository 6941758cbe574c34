// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// Knows for which job each connection in clear has proved that it may speak. gRPC identifies a
// connection to this host only by the address and port of its other end. Two connections that live
// at the same time with the same other end, but to different addresses of this host, must therefore
// belong to the same job.
//
// Thread-safe. Holds no descriptor: it recognizes a socket by its cookie, as TrafficWatch does.
class PeerJobs {
 public:
  // The connected socket `fd` belongs to job `job_id` only; an empty `job_id` means all jobs.
  // Returns whether it may be handed on: not while another socket with the same other end lives and
  // belongs to another job.
  bool Add(int fd, const std::string& job_id);

  // Returns the job of the connection from `port` at the literal `address`, as Add was told; unset
  // if there was none.
  std::optional<std::string> JobOf(const std::string& address, uint16_t port) const;

 private:
  struct Known {
    int fd;
    uint64_t cookie;
    std::string job_id;
  };

  void ForgetGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  // By address and port of the other end.
  absl::flat_hash_map<std::string, Known> known_ ABSL_GUARDED_BY(mu_);
  size_t look_at_ ABSL_GUARDED_BY(mu_) = 1024;  // At this size, sockets that are gone are removed.
};

}  // namespace hlaunch
