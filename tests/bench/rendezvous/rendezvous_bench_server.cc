// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/rpc/rendezvous_server.h"

// The real rendezvous of a job of AGENTS nodes on a free port of loopback. Prints the port, then
// for every line on its standard input one line of JSON with its costs so far. Ends with its
// input. With a token in HLAUNCH_TOKEN it uses TLS, or with HLAUNCH_TLS=off it demands a greeting
// in clear text.

namespace hlaunch {
namespace {

double CpuMillis() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto millis = [](const timeval& t) { return t.tv_sec * 1e3 + t.tv_usec / 1e3; };
  return millis(usage.ru_utime) + millis(usage.ru_stime);
}

int64_t ResidentKib() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * (::sysconf(_SC_PAGESIZE) / 1024);
}

struct Traffic {
  uint64_t in = 0;
  uint64_t out = 0;
};

// The payload of all open TCP connections.
Traffic CountTraffic(int max_fd) {
  Traffic traffic;
  for (int fd = 0; fd < max_fd; ++fd) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    traffic.in += info.tcpi_bytes_received;
    traffic.out += info.tcpi_bytes_sent;
  }
  return traffic;
}

int Main(int agents, bool preflight) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);

  JobRules rules;
  rules.job_id = "bench";
  rules.policy.min_nodes = rules.policy.max_nodes = agents;
  rules.policy.preflight = preflight ? Preflight::kQuick : Preflight::kOff;
  JobRendezvous rendezvous(rules, MonotonicClock());
  const std::unique_ptr<Jobs> jobs = MakeOneJob(rules.job_id, rendezvous);
  ListeningSocket socket = Listen("127.0.0.1", 0).value();
  RendezvousServer::Options options;
  options.listener = std::move(socket.fd);
  const char* token = std::getenv("HLAUNCH_TOKEN");
  const char* tls = std::getenv("HLAUNCH_TLS");
  const bool in_clear = tls != nullptr && std::string(tls) == "off";
  options.trust = Trust::Of(token == nullptr ? "" : token, {}, !in_clear).value();
  const auto server = RendezvousServer::Start(std::move(options), *jobs).value();
  std::cout << socket.port << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const double cpu = CpuMillis();  // Taken before the counting below.
    const Traffic traffic = CountTraffic(static_cast<int>(files.rlim_cur));
    std::cout << absl::StrCat("{\"cpu_ms\": ", cpu, ", \"rss_kib\": ", ResidentKib(),
                              ", \"streams\": ", server->open_streams(),
                              ", \"bytes_in\": ", traffic.in, ", \"bytes_out\": ", traffic.out, "}")
              << std::endl;
  }
  server->Shutdown(Duration::zero());
  return 0;
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) {
  int agents = 0;
  const absl::string_view preflight = argc == 3 ? argv[2] : "";
  if ((preflight != "quick" && preflight != "off") || !absl::SimpleAtoi(argv[1], &agents) ||
      agents < 1) {
    std::cerr << "usage: rendezvous_bench_server AGENTS quick|off\n";
    return 2;
  }
  return hlaunch::Main(agents, preflight == "quick");
}
