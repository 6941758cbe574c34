// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/status/status_model.h"

// A job's status as an HTML page that needs nothing besides: no other file, no font, no network.
// All that comes from elsewhere is text in it, never markup. Pure.

namespace hlaunch {

enum class PageKind {
  kServed,    // It fetches itself anew: by its script, or by a refresh where there is none.
  kSnapshot,  // It shows one moment, for ever; it has no script and carries its own policy.
};

std::string StatusPage(const StatusModel& model, PageKind kind);

// A job in a list of them.
struct ListedJob {
  std::string path;  // Of its page.
  std::string job = {}, state = {}, nodes = {}, restarts = {}, sentence = {};
  Light light = Light::kIdle;
};

// All jobs of a service, of which there are `total`; `told` is when.
std::string JobsPage(const std::vector<ListedJob>& jobs, int total, const std::string& told);

// The value of the header Content-Security-Policy for such pages.
std::string PagePolicy(PageKind kind);

}  // namespace hlaunch
