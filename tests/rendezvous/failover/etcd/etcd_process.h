// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/status_macros.h"
#include "tests/fakes/free_port.h"

namespace hlaunch {

// A real etcd of one member on a free port of this host, with its data in a folder of its own.
class EtcdProcess {
 public:
  static bool CanRun() { return std::filesystem::exists("/usr/bin/etcd"); }

  // With `tls`, clients speak TLS with the certificates that `options` name.
  explicit EtcdProcess(std::vector<std::string> options = {}, bool tls = false) {
    std::string path = testing::TempDir() + "/hlaunch-etcd-XXXXXX";
    folder_ = ::mkdtemp(path.data());
    const uint16_t ports[] = {FreePort(), FreePort()};
    port_ = ports[0];
    const std::string client = absl::StrCat(tls ? "https" : "http", "://127.0.0.1:", ports[0]);
    const std::string peer = absl::StrCat("http://127.0.0.1:", ports[1]);
    std::vector<std::string> words = {"etcd",
                                      "--name=a",
                                      "--data-dir=" + folder_ + "/data",
                                      "--listen-client-urls=" + client,
                                      "--advertise-client-urls=" + client,
                                      "--listen-peer-urls=" + peer,
                                      "--initial-advertise-peer-urls=" + peer,
                                      "--initial-cluster=a=" + peer,
                                      "--unsafe-no-fsync",
                                      "--logger=zap",
                                      "--log-level=error",
                                      "--log-outputs=" + folder_ + "/log"};
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    HLAUNCH_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execv("/usr/bin/etcd", argv.data());
      ::_exit(127);
    }
  }
  ~EtcdProcess() {
    Signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }
  EtcdProcess(const EtcdProcess&) = delete;

  void Signal(int signal) const { ::kill(pid_, signal); }
  uint16_t port() const { return port_; }

 private:
  std::string folder_;
  uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace hlaunch
