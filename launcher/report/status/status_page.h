// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/report/status/status_model.h"

// A job's status as an HTML page that needs nothing else: no other file, no font, no network. All
// foreign data in it is text, never markup. Pure.

namespace hlaunch {

enum class PageKind {
  kServed,    // It reloads itself: by its script, or by a refresh if no script runs.
  kSnapshot,  // It shows one moment for ever. It has no script and carries its own policy.
};

std::string StatusPage(const StatusModel& model, PageKind kind);

// A job in a list of them.
struct ListedJob {
  std::string path;  // The path of its page.
  std::string job = {}, state = {}, nodes = {}, restarts = {}, sentence = {};
  Light light = Light::kIdle;
};

// A page of jobs of a service, which has `total` of them. `told` is the time of the list.
std::string JobsPage(const std::vector<ListedJob>& jobs, int total, const std::string& told);

// The value of the header Content-Security-Policy for these pages.
std::string PagePolicy(PageKind kind);

}  // namespace hlaunch
