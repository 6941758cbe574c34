// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/observe/http_request.h"
#include "proto/base/clock.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// Who may see status pages. A value.
struct PageRules {
  std::vector<std::string> names;  // Of this host, besides addresses in digits and localhost.
  std::string password;  // Asked of everybody, whatever the user's name; empty: of nobody.
};

// Why a request is not served; unset: it is. A page of another site could ask under a name that it
// lets lead here, so Host is to be an address or a name of this host; and what another page asks
// has an Origin. Pure.
std::optional<HttpAnswer> RefuseVisitor(const HttpQuestion& request, const PageRules& rules);

// The pages of one job or of a service's jobs, as they are served. A page is made at most once a
// second, however many ask for it.
//
// Belongs to the server's thread.
class StatusPages {
 public:
  struct Source {
    // Of one job; unset: it is not known here. Of the only one for an empty id, where `jobs` is
    // null.
    std::function<std::optional<JobStatus>(const std::string& job_id)> job;
    std::function<std::vector<JobStatus>()> jobs = nullptr;
    std::string how_to_ask = {};  // As ModelOf takes it.
    std::string elsewhere = {};   // What is said where the only job is not known.
    // Why no job is known here, in a line; empty: they are. Null: it never says.
    std::function<std::string()> stands_by = nullptr;
  };

  StatusPages(PageRules rules, Source source);

  // `now` is that instant, which people call `wall_ms`.
  HttpAnswer Answer(const HttpQuestion& request, Instant now, int64_t wall_ms);

 private:
  struct Kept {
    Instant made;
    HttpAnswer answer;
  };

  HttpAnswer Make(const std::string& path, int64_t wall_ms) const;
  HttpAnswer JobPage(const std::string& job_id) const;

  const PageRules rules_;
  const Source source_;
  std::map<std::string, Kept> kept_;  // By path; few.
};

}  // namespace hlaunch
