// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Prints a page that is made from the option tables: at build time a manual page (hlaunch_man
// hlaunch | hlaunch-COMMAND | hlaunchd | hlaunch-rendezvous), or a page of the manual (hlaunch_man
// options.md | mpirun-words.md). The latter are in launcher/manual, and a test compares them with
// this output.

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/pages/mpirun_page.h"
#include "launcher/cli/pages/options_page.h"
#include "launcher/cluster/commands/cluster_words.h"
#include "launcher/cluster/daemon/daemon_words.h"
#include "launcher/cluster/membership/membership_options.h"
#include "launcher/command/adopt/adopt.h"
#include "launcher/command/make_token.h"
#include "launcher/command/service_options.h"
#include "launcher/remote/detached/detached_words.h"
#include "launcher/report/job/check_text.h"
#include "launcher/report/job/devices_text.h"
#include "launcher/report/job/doctor.h"
#include "launcher/report/job/status_text.h"
#include "launcher/report/query/ask_options.h"
#include "launcher/report/query/drain_options.h"
#include "launcher/text/man_page.h"

namespace hlaunch {
namespace {

constexpr char kSeeAlso[] =
    ".SH SEE ALSO\n"
    "The manual has a page for each task, from\n.I start.md\non, in\n"
    ".I share/doc/hlaunch/manual\n"
    "below the folder that hlaunch was installed into, such as\n.I /usr/local.\n";

// Returns what `hlaunch COMMAND --help` prints; empty if the command has no help of its own.
std::string CommandHelp(const std::string& command) {
  const char* const words[] = {"hlaunch", command.c_str(), "--help"};
  if (command == "status") return ParseStatusOptions(3, words)->text_to_print.value_or("");
  if (command == "why") return ParseWhyOptions(3, words)->text_to_print.value_or("");
  if (command == "stacks") return ParseStacksOptions(3, words)->text_to_print.value_or("");
  if (command == "drain") return ParseDrainOptions(3, words)->text_to_print.value_or("");
  if (command == "undrain") return ParseDrainOptions(3, words)->text_to_print.value_or("");
  if (command == "attach") return ParseAttachOptions(3, words)->text_to_print.value_or("");
  if (command == "logs") return ParseLogsOptions(3, words)->text_to_print.value_or("");
  if (command == "stop") return ParseStopOptions(3, words)->text_to_print.value_or("");
  if (command == "kill") return ParseKillOptions(3, words)->text_to_print.value_or("");
  if (command == "ps") return ParsePsOptions(3, words)->text_to_print.value_or("");
  if (command == "nodes") return ParseNodesOptions(3, words)->text_to_print.value_or("");
  if (command == "top") return ParseTopOptions(3, words)->text_to_print.value_or("");
  if (command == "devices") return ParseDevicesOptions(3, words)->text_to_print.value_or("");
  if (command == "check") return ParseCheckOptions(3, words)->text_to_print.value_or("");
  if (command == "token") return ParseTokenOptions(3, words)->text_to_print.value_or("");
  if (command == "cluster") return ParseMembershipOptions(3, words)->text_to_print.value_or("");
  if (command == "run") return ParseRunOptions(3, words)->text_to_print.value_or("");
  if (command == "adopt") return ParseAdoptOptions(3, words)->text_to_print.value_or("");
  return command == "doctor" ? DoctorHelp() : "";
}

std::string ServiceHelp() {
  const char* const words[] = {"hlaunch-rendezvous", "--help"};
  return ParseServiceOptions(2, words)->text_to_print.value_or("");
}

std::string Page(const std::string& name) {
  if (name == "hlaunch") {
    return ManPage(name, "start a distributed job and keep it alive", HelpText("hlaunch"));
  }
  for (const CommandRow& row : CommandTable()) {
    if (name == absl::StrCat("hlaunch-", row.word)) {
      return ManPage(name, row.summary, CommandHelp(row.word));
    }
  }
  if (name == "hlaunchd") {
    const char* const words[] = {"hlaunchd", "--help"};
    return ManPage(name, "the node daemon of your own cluster",
                   ParseDaemonOptions(2, words)->text_to_print.value_or(""));
  }
  if (name == "hlaunch-rendezvous") {
    return ManPage(name, "the rendezvous of many jobs as a service", ServiceHelp());
  }
  if (name == "options.md") {
    return OptionsPage(
        {{"hlaunch status", CommandHelp("status")},   {"hlaunch why", CommandHelp("why")},
         {"hlaunch stacks", CommandHelp("stacks")},   {"hlaunch drain", CommandHelp("drain")},
         {"hlaunch undrain", CommandHelp("undrain")}, {"hlaunch attach", CommandHelp("attach")},
         {"hlaunch logs", CommandHelp("logs")},       {"hlaunch stop", CommandHelp("stop")},
         {"hlaunch kill", CommandHelp("kill")},       {"hlaunch ps", CommandHelp("ps")},
         {"hlaunch nodes", CommandHelp("nodes")},     {"hlaunch top", CommandHelp("top")},
         {"hlaunch devices", CommandHelp("devices")}, {"hlaunch check", CommandHelp("check")},
         {"hlaunch doctor", CommandHelp("doctor")},   {"hlaunch token", CommandHelp("token")},
         {"hlaunch cluster", CommandHelp("cluster")}, {"hlaunch run", CommandHelp("run")},
         {"hlaunch adopt", CommandHelp("adopt")},     {"hlaunch-rendezvous", ServiceHelp()}});
  }
  return name == "mpirun-words.md" ? MpirunPage() : "";
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  std::string page = hlaunch::Page(name);
  const bool is_manual_page = name.find('.') != std::string::npos;
  if (!page.empty() && !is_manual_page) page += hlaunch::kSeeAlso;
  std::fputs(page.c_str(), stdout);
  return page.empty() || std::fflush(stdout) != 0 ? 1 : 0;
}
