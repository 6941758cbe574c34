// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/watch/observe/http_request.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The rules of who may see status pages. A value.
struct PageRules {
  std::vector<std::string> names;  // This host's names; addresses and localhost are allowed anyway.
  std::string password;  // Visitors must give it, with any user name; empty: none is asked for.
};

// Returns why a request is refused; unset if it may be served. The page of another site could make
// a browser ask under a name that resolves to this host. So Host must be an address or a name of
// this host, and a request that comes from another page, which has an Origin, is refused. Pure.
std::optional<HttpAnswer> RefuseVisitor(const HttpQuestion& request, const PageRules& rules);

// The pages of one job, or of a service's jobs, as they are served. A page is made at most once a
// second, however many visitors ask for it.
//
// Belongs to the server's thread.
class StatusPages {
 public:
  struct Source {
    // Returns the status of a job; unset if it is unknown here. If `jobs` is null, the id is empty
    // and means the only job.
    std::function<std::optional<JobStatus>(const std::string& job_id)> job;
    std::function<std::vector<JobStatus>()> jobs = nullptr;
    std::string how_to_ask = {};  // The argument of ModelOf.
    std::string elsewhere = {};   // The text shown if the only job is unknown here.
    // Returns one line that tells why no job is known here; empty if jobs are known. May be null.
    std::function<std::string()> stands_by = nullptr;
  };

  StatusPages(PageRules rules, Source source);

  // `now` and `wall_ms` are the same moment.
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
  std::map<std::string, Kept> kept_;  // By path; a small number.
};

}  // namespace hlaunch
