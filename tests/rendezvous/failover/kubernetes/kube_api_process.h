// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rendezvous/failover/kubernetes/api_client.h"
#include "rendezvous/failover/kubernetes/https_connection.h"
#include "tests/rendezvous/site_certificates.h"

namespace hlaunch {

// The small API server of kube_api.py on a free port of this host, with TLS and one valid token.
class KubeApiProcess {
 public:
  explicit KubeApiProcess(const std::string& name = "kube-api")
      : name_(absl::StrCat(name, "-", ::getpid())) {  // Tests run side by side.
    files_ = SiteAuthority().Write(name_, "localhost");
    WriteFile(TokenFile(), "first\n");
    int ends[2];
    HLAUNCH_CHECK(::pipe(ends) == 0);
    pid_ = ::fork();
    HLAUNCH_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], 1);
      const std::string certificate = "--cert=" + files_.certificate, key = "--key=" + files_.key,
                        tokens = "--tokens=" + TokenFile();
      // argv[0] is the full path: Python looks a bare name up in PATH and uses the library of the
      // Python that it finds there.
      ::execl("/usr/bin/python3", "/usr/bin/python3", HLAUNCH_KUBE_API, certificate.c_str(),
              key.c_str(), tokens.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    FILE* const said = ::fdopen(ends[0], "r");
    HLAUNCH_CHECK(::fscanf(said, "%hu %hu", &port_, &control_) == 2);
    ::fclose(said);
  }
  ~KubeApiProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  KubeApiProcess(const KubeApiProcess&) = delete;

  std::string TokenFile() const { return absl::StrCat(testing::TempDir(), "/", name_, ".token"); }
  ApiServer Server() const {
    return {"localhost", port_, /*tls=*/true, files_.authority, TokenFile()};
  }
  uint16_t port() const { return port_; }

  // Sends a command; kube_api.py describes them.
  void Tell(const std::string& json) const { Ask("POST", json); }
  // All objects of the server and the requests it got.
  std::string Told() const { return Ask("GET", ""); }

 private:
  std::string Ask(const std::string& method, const std::string& body) const {
    HttpsPeer peer;
    peer.literal = peer.host = "127.0.0.1";
    peer.port = control_;
    const Instant deadline = MonotonicClock().Now() + std::chrono::seconds(60);
    const auto connection = HttpsConnection::Open(peer, deadline);
    EXPECT_TRUE(connection.ok()) << connection.status();
    if (!connection.ok()) return "";
    const auto answer = (*connection)->Ask({method, "/", "", body}, deadline);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->body : "";
  }

  const std::string name_;
  CertificateFiles files_;
  uint16_t port_ = 0, control_ = 0;
  pid_t pid_ = -1;
};

}  // namespace hlaunch
