// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/found_cluster.h"

#include <pwd.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "rendezvous/cluster/membership/join_registrar.h"

namespace hlaunch {
namespace {

struct Owner {
  uid_t user = 0;
  gid_t group = 0;
};

// A system user is in the file itself. A static program cannot ask for others.
absl::StatusOr<Owner> FindHeadUser(const std::string& passwd) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(passwd.c_str(), "re"), std::fclose);
  while (const struct passwd* const entry = file ? ::fgetpwent(file.get()) : nullptr) {
    if (absl::string_view(entry->pw_name) == kHeadUser) return Owner{entry->pw_uid, entry->pw_gid};
  }
  return absl::NotFoundError(absl::StrCat(
      "the head runs as the user ", kHeadUser, ", whom ", passwd, " does not have; packages of ",
      "hlaunch make it, else run: useradd --system --user-group --no-create-home --home-dir ",
      "/var/lib/hlaunch-head --shell /usr/sbin/nologin ", kHeadUser));
}

absl::Status CheckNew(const ClusterPaths& paths) {
  if (IsHead(paths)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "this host is the head of a cluster already (", paths.head,
        "); `hlaunch cluster token` lets further hosts in, `hlaunch cluster leave --end-cluster` ",
        "ends that cluster"));
  }
  if (!IsMember(paths)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("this host belongs to the cluster of ", HeadOf(paths),
                   " already; to leave that one: hlaunch cluster leave"));
}

// Makes all of it and writes it.
absl::StatusOr<FoundedCluster> MakeAll(const ClusterPaths& paths, const Owner& owner,
                                       const std::string& host, const std::string& head,
                                       std::time_t now) {
  HLAUNCH_ASSIGN_OR_RETURN(const Authority authority, MakeAuthority(now));
  HLAUNCH_ASSIGN_OR_RETURN(const HostIdentity of_head, MakeHeadIdentity(authority, now));
  HLAUNCH_ASSIGN_OR_RETURN(const HostRequest request, MakeHostRequest(host));
  JoinRegistrar registrar(authority);
  HLAUNCH_ASSIGN_OR_RETURN(std::string certificate, registrar.Certify(host, request.request, now));
  FoundedCluster made = {head, TextOf(registrar.MakeToken(now)), now + kTokenLife};
  HLAUNCH_ASSIGN_OR_RETURN(const TrustFolder folder,
                           TrustFolder::Make(paths.head, owner.user, owner.group));
  HLAUNCH_RETURN_IF_ERROR(KeepJoinRegistrar(folder, registrar));
  HLAUNCH_RETURN_IF_ERROR(folder.Replace(kJoinAtFile, absl::StrCat(head, "\n")));
  HLAUNCH_RETURN_IF_ERROR(KeepIdentity(folder, kOfHead, of_head));
  HLAUNCH_RETURN_IF_ERROR(KeepAuthority(folder, authority));
  HLAUNCH_RETURN_IF_ERROR(
      KeepMember(paths, {authority.certificate, std::move(certificate), request.key}, head));
  return made;
}

}  // namespace

absl::StatusOr<FoundedCluster> FoundCluster(const ClusterPaths& paths, const std::string& host,
                                            const std::string& head, std::time_t now) {
  HLAUNCH_RETURN_IF_ERROR(CheckNew(paths));
  if (!IsClusterHostName(host)) {
    return absl::InvalidArgumentError(
        "this host's name cannot be used in a cluster; choose another one with --name");
  }
  HLAUNCH_ASSIGN_OR_RETURN(const Owner owner, FindHeadUser(paths.passwd));
  absl::StatusOr<FoundedCluster> made = MakeAll(paths, owner, host, head, now);
  if (!made.ok()) {  // None of these files existed before.
    RemoveMember(paths).IgnoreError();
    RemoveHead(paths).IgnoreError();
  }
  return made;
}

}  // namespace hlaunch
