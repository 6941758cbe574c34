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
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rendezvous/failover/kubernetes/api_client.h"
#include "rendezvous/net/socket/listen.h"
#include "tests/rendezvous/failover/etcd/etcd_process.h"
#include "tests/rendezvous/site_certificates.h"

namespace hlaunch {

// A real kube-apiserver with an etcd of its own. Its user `hlaunch` has the Role of the manifests
// in the namespace `default`; its user `nobody` has none. Opt-in: HLAUNCH_KUBE_BIN is its folder.
class RealApiProcess {
 public:
  static std::string Program() {
    const char* const folder = ::getenv("HLAUNCH_KUBE_BIN");
    return folder == nullptr ? "" : absl::StrCat(folder, "/kube-apiserver");
  }
  static bool CanRun() { return EtcdProcess::CanRun() && std::filesystem::exists(Program()); }

  RealApiProcess() {
    files_ = SiteAuthority().Write("real-api", "localhost");
    WriteFile(File("tokens"),
              "top,admin,admin,system:masters\nmine,hlaunch,hlaunch\nno,nobody,nobody\n");
    WriteFile(File("hlaunch"), "mine");
    WriteFile(File("nobody"), "no");
    WriteFile(File("admin"), "top");
    port_ = Listen("127.0.0.1", 0)->port;
    std::vector<std::string> words = {
        Program(),
        absl::StrCat("--etcd-servers=http://127.0.0.1:", etcd_.port()),
        "--bind-address=127.0.0.1",
        absl::StrCat("--secure-port=", port_),
        "--insecure-port=0",
        "--tls-cert-file=" + files_.certificate,
        "--tls-private-key-file=" + files_.key,
        "--service-cluster-ip-range=10.96.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-signing-key-file=" + files_.key,
        "--service-account-key-file=" + files_.certificate,
        "--token-auth-file=" + File("tokens"),
        "--authorization-mode=RBAC",
        "--endpoint-reconciler-type=none"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    HLAUNCH_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)!::freopen(File("log").c_str(), "w", stderr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    GiveRole();
  }
  ~RealApiProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  RealApiProcess(const RealApiProcess&) = delete;

  ApiServer ServerFor(const std::string& user) const {
    return {"localhost", port_, /*tls=*/true, files_.authority, File(user)};
  }

 private:
  static std::string File(const std::string& name) {
    return absl::StrCat(testing::TempDir(), "real-api.", ::getpid(), ".", name);
  }

  // Retries until the server has started and has made its namespaces and roles.
  void Make(const std::string& path, const std::string& body) const {
    ApiClient client(ServerFor("admin"));
    const Instant deadline = MonotonicClock().Now() + std::chrono::seconds(60);
    absl::Status last;
    while (MonotonicClock().Now() < deadline) {
      const auto answer = client.Call({"POST", path, "", body}, deadline);
      if (answer.ok() && answer->status != 404) return;
      last = answer.status();
      ::usleep(100'000);
    }
    ADD_FAILURE() << path << ": " << last;
  }

  void GiveRole() const {
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/";
    Make(rbac + "roles", R"({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
      "metadata": {"name": "hlaunch"}, "rules": [
      {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
       "verbs": ["get", "create", "update"]},
      {"apiGroups": [""], "resources": ["configmaps"],
       "verbs": ["get", "list", "create", "update", "delete"]}]})");
    Make(rbac + "rolebindings", R"({"apiVersion": "rbac.authorization.k8s.io/v1",
      "kind": "RoleBinding", "metadata": {"name": "hlaunch"},
      "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "hlaunch"},
      "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "hlaunch"}]})");
    // A role binding takes effect a moment later.
    ApiClient client(ServerFor("hlaunch"));
    const Instant deadline = MonotonicClock().Now() + std::chrono::seconds(60);
    while (MonotonicClock().Now() < deadline &&
           !client.Call({"GET", "/api/v1/namespaces/default/configmaps", "", ""}, deadline).ok()) {
      ::usleep(100'000);
    }
  }

  const EtcdProcess etcd_;
  CertificateFiles files_;
  uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace hlaunch
