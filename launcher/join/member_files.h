// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/joining/trust_folder.h"

// What says that a host belongs to a cluster, and that it is the head.

namespace hlaunch {

// A value.
struct ClusterPaths {
  std::string host = "/var/lib/hlaunchd";      // Of hlaunchd.
  std::string head = "/var/lib/hlaunch-head";  // Of the head.
  std::string passwd = "/etc/passwd";          // Who the head's user is.
  std::string units = "/etc/systemd/system";   // Of this host's administrator.
};

inline constexpr char kHeadUser[] = "hlaunch-head";

// Whether this host has a certificate, or is a head.
bool IsMember(const ClusterPaths& paths);
bool IsHead(const ClusterPaths& paths);

// Where this host's head is; empty: nothing says so, or this user may not see.
std::string HeadOf(const ClusterPaths& paths);

// Its name by its certificate, and the pin of its cluster's authority; likewise.
std::string NameOf(const ClusterPaths& paths);
std::string PinOf(const ClusterPaths& paths);

// Keeps what makes this host one of the cluster whose head is at `head`.
//
// Errors: as of TrustFolder::Make and Replace.
absl::Status KeepMember(const ClusterPaths& paths, const HostIdentity& identity,
                        const std::string& head);

// Removes it, and what makes it the head. What is not there is no error.
//
// Errors: as of TrustFolder::Open and Remove.
absl::Status RemoveMember(const ClusterPaths& paths);
absl::Status RemoveHead(const ClusterPaths& paths);

}  // namespace hlaunch
