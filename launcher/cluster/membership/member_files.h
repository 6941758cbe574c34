// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/cluster/membership/trust_folder.h"

// The files that make a host a member of a cluster, or its head.

namespace hlaunch {

// The folders and files of a host's membership. A value.
struct ClusterPaths {
  std::string host = "/var/lib/hlaunchd";      // The folder of hlaunchd.
  std::string head = "/var/lib/hlaunch-head";  // The folder of the head.
  std::string passwd = "/etc/passwd";          // Where the head's user is listed.
  std::string units = "/etc/systemd/system";   // The units of this host's administrator.
};

inline constexpr char kHeadUser[] = "hlaunch-head";

// Whether this host has a certificate, or is a head, respectively.
bool IsMember(const ClusterPaths& paths);
bool IsHead(const ClusterPaths& paths);

// Where this host's head is; empty if that is unknown or this user may not see it.
std::string HeadOf(const ClusterPaths& paths);

// This host's name in its certificate, and the pin of its cluster's authority; empty likewise.
std::string NameOf(const ClusterPaths& paths);
std::string PinOf(const ClusterPaths& paths);

// Writes the files that make this host a member of the cluster whose head is at `head`.
//
// Errors: those of TrustFolder::Make and Replace.
absl::Status KeepMember(const ClusterPaths& paths, const HostIdentity& identity,
                        const std::string& head);

// Remove the files that make this host a member, or the head. A missing file is no error.
//
// Errors: those of TrustFolder::Open and Remove.
absl::Status RemoveMember(const ClusterPaths& paths);
absl::Status RemoveHead(const ClusterPaths& paths);

}  // namespace hlaunch
