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

// Which job each connection in clear has proved its part in. gRPC tells a connection of ours by the
// address and port of its other end alone, so two that live at once at the same of these, by
// different addresses of this host, must be of the same job.
//
// Thread-safe. Holds no descriptor: it knows a socket again by its cookie, as TrafficWatch.
class PeerJobs {
 public:
  // The connected socket `fd` is of job `job_id` alone; empty: of all. Returns whether it may be
  // handed on: not while another at the same place lives and is of another job.
  bool Add(int fd, const std::string& job_id);

  // What the connection from `port` at the literal `address` is of, as Add was told; unset: nobody
  // came from there.
  std::optional<std::string> JobOf(const std::string& address, uint16_t port) const;

 private:
  struct Known {
    int fd;
    uint64_t cookie;
    std::string job_id;
  };

  void ForgetGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  absl::flat_hash_map<std::string, Known> known_ ABSL_GUARDED_BY(mu_);  // By place.
  size_t look_at_ ABSL_GUARDED_BY(mu_) = 1024;  // So many are too many if half have gone.
};

}  // namespace hlaunch
