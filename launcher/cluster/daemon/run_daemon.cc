// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/run_daemon.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/signal_set.hpp"
#include "launcher/cluster/daemon/daemon_config.h"
#include "launcher/cluster/daemon/daemon_words.h"
#include "launcher/cluster/daemon/local_server.h"
#include "launcher/cluster/daemon/node_daemon.h"
#include "launcher/cluster/task_start/private_tmp.h"
#include "launcher/node/descriptors.h"
#include "launcher/node/service_manager.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/programs.h"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/net/trust/openssl_modules.h"

namespace hlaunch {
namespace {

int Refuse(int exit_code, absl::string_view why) {
  LogError(why);
  return exit_code;
}

// Checks that private-tmp does not hide what a part needs.
absl::Status CheckPlaces(const DaemonOptions& options, const DaemonConfig& config) {
  for (const std::string& path : {options.parts, options.program}) {
    if (!config.private_tmp || !IsHiddenByPrivateTmp(path)) continue;
    return absl::InvalidArgumentError(absl::StrCat(options.config, ": private-tmp = yes hides ",
                                                   path, " from jobs; keep it elsewhere"));
  }
  return absl::OkStatus();
}

int Serve(const DaemonOptions& options, const DaemonConfig& config, UniqueFd listener) {
  asio::io_context loop(1);
  asio::signal_set signals(loop, SIGTERM, SIGINT);
  signals.async_wait([&](std::error_code, int) { loop.stop(); });
  const NotifyPlace place = FindNotifyPlace(Environment::OfThisProcess(), ::getpid(), ::getpid());
  ServiceManager manager(loop, place);
  NodeDaemon daemon(loop, options, config, manager);
  if (const absl::Status begun = daemon.Begin(std::move(listener)); !begun.ok()) {
    return Refuse(kExitNotStarted, begun.message());
  }
  loop.run();
  manager.Stopping("stopping; jobs go on", Duration::zero());
  LogInfo("stopping; the jobs here go on");
  return kExitOk;
}

}  // namespace

int RunDaemon(int argc, char** argv) {
  absl::StatusOr<DaemonOptions> options = ParseDaemonOptions(argc, argv);
  if (!options.ok()) return Refuse(kExitUsage, options.status().message());
  if (options->text_to_print) {
    std::fputs(options->text_to_print->c_str(), stdout);
    return FlushStdout();
  }
  if (::geteuid() != 0) {
    return Refuse(kExitUsage, "hlaunchd starts jobs as the users who ask, so it must be root");
  }
  ::prctl(PR_SET_DUMPABLE, 0);  // It holds the host's key and the jobs' secrets.
  if (options->verbose) SetLogLevel(LogLevel::kDebug);
  DoWithoutOpenSslModules();
  ::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  // Found now, since an update may replace the program's file later.
  if (options->program.empty()) options->program = FindHlaunch(PathOfThisProgram());
  const absl::StatusOr<DaemonConfig> config = ReadDaemonConfig(options->config);
  if (!config.ok()) return Refuse(kExitUsage, config.status().message());
  if (const absl::Status fits = CheckPlaces(*options, *config); !fits.ok()) {
    return Refuse(kExitUsage, fits.message());
  }
  absl::StatusOr<UniqueFd> listener = ListenLocally(options->socket);
  if (!listener.ok()) return Refuse(kExitNotStarted, listener.status().message());
  return Serve(*options, *config, *std::move(listener));
}

}  // namespace hlaunch
