// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/may_ask.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

enum class Right {
  kAnybody,
  kOwner,       // The job's user and admins.
  kAdmin,       // On any host.
  kRootOnHead,  // Changes of trust: root there could read the authority's key anyway.
};

const Right* RightOf(absl::string_view verb) {
  static const auto* const rights = new std::map<absl::string_view, Right>{
      {"submit", Right::kAnybody}, {"jobs", Right::kAnybody},     {"job", Right::kAnybody},
      {"nodes", Right::kAnybody},  {"stop", Right::kOwner},       {"kill", Right::kOwner},
      {"log", Right::kOwner},      {"meeting", Right::kOwner},    {"drain", Right::kAdmin},
      {"undrain", Right::kAdmin},  {"token", Right::kRootOnHead}, {"throw_out", Right::kRootOnHead},
  };
  const auto found = rights->find(verb);
  return found == rights->end() ? nullptr : &found->second;
}

}  // namespace

bool IsOwn(const HeadJob& job, const ClusterUser& user) {
  return job.uid == user.uid && job.user == user.name;
}

bool MaySeeWords(const HeadJob& job, const ClusterUser& user) {
  return user.admin || IsOwn(job, user);
}

absl::Status MayAsk(absl::string_view verb, const ClusterUser& user, const HeadJob* job) {
  const Right* right = RightOf(verb);
  if (right == nullptr) return absl::UnimplementedError(absl::StrCat("no question \"", verb, "\""));
  if (*right == Right::kRootOnHead && !(user.uid == 0 && user.on_head)) {
    return absl::PermissionDeniedError("only root on the head's own host may do that");
  }
  if (*right == Right::kAdmin && !user.admin) {
    return absl::PermissionDeniedError("only an administrator of this cluster may do that");
  }
  if (*right == Right::kOwner && job != nullptr && !user.admin && !IsOwn(*job, user)) {
    return absl::PermissionDeniedError(absl::StrCat("job ", job->number, " is ", job->user,
                                                    "'s; only its user and administrators may"));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
