// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/run_head.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent/watch/observe/metrics_server.h"
#include "asio/io_context.hpp"
#include "asio/signal_set.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/cluster/head/head_options.h"
#include "launcher/cluster/head/head_service.h"
#include "launcher/node/descriptors.h"
#include "launcher/node/service_manager.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/cluster/membership/trust_folder.h"
#include "rendezvous/net/socket/find_host.h"
#include "rendezvous/net/socket/listen_at.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/net/trust/openssl_modules.h"

namespace hlaunch {
namespace {

int Refuse(int exit_code, absl::string_view why) {
  LogError(why);
  return exit_code;
}

// Returns `told`, else what `hlaunch cluster init` has kept, else `otherwise`.
std::string Known(const std::string& told, const TrustFolder& folder, const char* file,
                  const std::string& otherwise) {
  if (!told.empty()) return told;
  const absl::StatusOr<std::string> kept = folder.Read(file);
  return kept.ok() ? std::string(absl::StripAsciiWhitespace(*kept)) : otherwise;
}

// The head's loop with all that runs in it besides the service, until a signal comes.
class HeadLoop {
 public:
  HeadLoop()
      : signals_(loop_, SIGTERM, SIGINT),
        second_(loop_),
        manager_(loop_, FindNotifyPlace(Environment::OfThisProcess(), ::getpid(), ::getpid())) {
    signals_.async_wait([this](const asio::error_code&, int) { loop_.stop(); });
  }

  absl::Status Begin(const HeadOptions& options, ListeningSocket listening, TrustFolder folder) {
    HeadService::Options serving;
    const std::string host = absl::AsciiStrToLower(HostName());
    const std::string name = options.listen.host.empty() ? host : options.listen.host;
    serving.join_at = Known(options.join_at, folder, kJoinAtFile, HostPort(name, listening.port));
    serving.limits = options.limits;
    serving.failed = [this](const absl::Status& why) {
      failed_ = why;
      loop_.stop();
    };
    HLAUNCH_ASSIGN_OR_RETURN(service_, HeadService::Start(loop_, std::move(listening.fd),
                                                          std::move(folder), std::move(serving)));
    if (options.metrics) ServeMetrics(*options.metrics);
    return absl::OkStatus();
  }

  int Run() {
    said_ = service_->Status();
    manager_.Ready(said_);
    ShowStatus();
    loop_.run();
    manager_.Stopping("stopping; jobs go on", Duration::zero());
    if (!failed_.ok()) {
      return Refuse(kExitInternal, absl::StrCat("the head ends, since it cannot keep what it "
                                                "decides; jobs go on: ",
                                                failed_.message()));
    }
    LogInfo("stopping; jobs go on");
    return kExitOk;
  }

 private:
  // If metrics cannot be served, that is a warning, and the head goes on.
  void ServeMetrics(const Endpoint& place) {
    auto started = MetricsServer::Start(
        loop_, place.host, place.port,
        {[this] { return service_->Metrics(); }, [] { return std::string(); }});
    if (!started.ok()) {
      return LogWarning(absl::StrCat(started.status().message(), "; the head goes on without"));
    }
    metrics_ = std::move(started).value();
    LogInfo(
        absl::StrCat("metrics are at http://", HostPort(place.host, metrics_->port()), "/metrics"));
  }

  void ShowStatus() {
    const std::string status = service_->Status();
    if (status != std::exchange(said_, status)) manager_.Status(status);
    second_.expires_after(std::chrono::seconds(1));
    second_.async_wait([this](const asio::error_code& error) {
      if (!error) ShowStatus();
    });
  }

  asio::io_context loop_{1};
  asio::signal_set signals_;
  asio::steady_timer second_;
  ServiceManager manager_;
  std::unique_ptr<HeadService> service_;
  std::unique_ptr<MetricsServer> metrics_;  // Null: no metrics are served.
  std::string said_;                        // The status that the service manager shows.
  absl::Status failed_;
};

int Serve(const HeadOptions& options) {
  absl::StatusOr<TrustFolder> folder = TrustFolder::Open(options.folder);
  if (!folder.ok()) return Refuse(kExitUsage, folder.status().message());
  absl::StatusOr<ListeningSocket> listening = ListenAt(options.listen.host, options.listen.port);
  if (!listening.ok()) {
    const bool taken = absl::IsAlreadyExists(listening.status());
    return Refuse(taken ? kExitPortInUse : kExitBadEndpoint, listening.status().message());
  }
  const std::string place = HostPort(listening->address, listening->port);
  HeadLoop loop;
  const absl::Status begun = loop.Begin(options, std::move(*listening), std::move(*folder));
  if (!begun.ok()) {
    const bool may_pass = absl::IsUnavailable(begun) || absl::IsResourceExhausted(begun);
    return Refuse(may_pass ? kExitNoResources : kExitUsage, begun.message());
  }
  LogInfo(absl::StrCat("listening on ", place, "; keeps ", options.folder));
  return loop.Run();
}

}  // namespace

int RunHead(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  ChooseNameServices();
  DoWithoutOpenSslModules();
  ::prctl(PR_SET_DUMPABLE, 0);  // It holds the authority's key.
  SetLogName("head");
  const absl::StatusOr<HeadOptions> options = ParseHeadOptions(argc, argv);
  if (!options.ok()) return Refuse(kExitUsage, options.status().message());
  if (options->text_to_print) {
    std::fputs(options->text_to_print->c_str(), stdout);
    return FlushStdout();
  }
  if (options->verbose) SetLogLevel(LogLevel::kDebug);
  RaiseDescriptorLimit();
  return Serve(*options);
}

}  // namespace hlaunch
