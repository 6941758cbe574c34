// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Prints a manual page at build time: hlaunch_man hlaunch | hlaunch-status | hlaunch-rendezvous.

#include <cstdio>
#include <string>

#include "launcher/command/service_options.h"
#include "launcher/options/help_text.h"
#include "launcher/report/status_text.h"
#include "launcher/words/man_page.h"

namespace hlaunch {
namespace {

std::string Page(const std::string& name) {
  if (name == "hlaunch") {
    return ManPage(name, "start a distributed job and keep it alive", HelpText("hlaunch"));
  }
  if (name == "hlaunch-status") {
    const char* const words[] = {"hlaunch", "status", "--help"};
    return ManPage(name, "say where a job stands and why",
                   ParseStatusOptions(3, words)->text_to_print.value_or(""));
  }
  if (name == "hlaunch-rendezvous") {
    const char* const words[] = {"hlaunch-rendezvous", "--help"};
    return ManPage(name, "the rendezvous of many jobs as a service",
                   ParseServiceOptions(2, words)->text_to_print.value_or(""));
  }
  return "";
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) {
  const std::string page = hlaunch::Page(argc == 2 ? argv[1] : "");
  std::fputs(page.c_str(), stdout);
  return page.empty() || std::fflush(stdout) != 0 ? 1 : 0;
}
