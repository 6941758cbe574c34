// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/shared_place.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launcher/text/endpoint.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/user_files.h"
#include "rendezvous/failover/etcd/etcd_keeper.h"
#include "rendezvous/net/trust/sealed_text.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;

// A question costs etcd next to nothing. An API server is asked at a third of the lease.
constexpr Duration kAskEtcdAgain = milliseconds(500);

absl::StatusOr<std::string> ReadTextFile(absl::string_view option, const std::string& path) {
  absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (text.ok() && !text->empty()) return text;
  return absl::InvalidArgumentError(absl::StrCat(
      option, " '", path, "': ",
      text.ok() ? "it is empty" : absl::StrCat("cannot read it: ", text.status().message())));
}

// Reads NAME:PASSWORD from the first line of the file.
absl::Status ReadUser(const std::string& path, EtcdCluster* cluster) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string text, ReadTextFile("--state-user-file", path));
  const std::string line = text.substr(0, text.find_first_of("\r\n"));
  const size_t colon = line.find(':');
  if (colon == line.npos || colon == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--state-user-file '", path, "': expected NAME:PASSWORD"));
  }
  cluster->user = line.substr(0, colon);
  cluster->password = line.substr(colon + 1);
  return absl::OkStatus();
}

absl::StatusOr<EtcdKeeper::Options> EtcdOptions(const EtcdState& state) {
  EtcdKeeper::Options options;
  options.prefix = state.prefix;
  EtcdCluster& cluster = options.cluster;
  for (const Endpoint& member : state.members)
    cluster.members.push_back({member.host, member.port});
  cluster.tls = !state.tls.none();
  const auto read = [](absl::string_view option, const std::string& path, std::string* into) {
    if (path.empty()) return absl::OkStatus();
    HLAUNCH_ASSIGN_OR_RETURN(*into, ReadTextFile(option, path));
    return absl::OkStatus();
  };
  HLAUNCH_RETURN_IF_ERROR(read("--state-ca", state.tls.authority, &cluster.authority));
  HLAUNCH_RETURN_IF_ERROR(read("--state-cert", state.tls.certificate, &cluster.certificate));
  HLAUNCH_RETURN_IF_ERROR(read("--state-key", state.tls.key, &cluster.key));
  if (!state.user_file.empty()) HLAUNCH_RETURN_IF_ERROR(ReadUser(state.user_file, &cluster));
  const bool near =
      std::all_of(cluster.members.begin(), cluster.members.end(), [](const EtcdMember& member) {
        return member.host == "localhost" || IsLoopbackLiteral(member.host);
      });
  if (!cluster.user.empty() && !cluster.tls && !near) {
    LogWarning(
        "the password for etcd goes over the network in clear, and who reads it decides for all "
        "jobs: give --state-ca");
  }
  return options;
}

SharedPlace InEtcd(const EtcdKeeper::Options& options) {
  SharedPlace place;
  place.words = Words(options.cluster);
  place.ask_again = kAskEtcdAgain;
  place.candidate = [options](const std::string& name) -> SharedPlace::Attempt {
    EtcdKeeper::Options own = options;
    own.name = name;
    own.client = std::make_shared<EtcdClient>(own.cluster);  // Shared, since it asks often.
    return [own]() -> absl::StatusOr<std::unique_ptr<RecordKeeper>> {
      HLAUNCH_ASSIGN_OR_RETURN(auto keeper, EtcdKeeper::Lead(own));
      return std::unique_ptr<RecordKeeper>(std::move(keeper));
    };
  };
  return place;
}

SharedPlace InKubernetes(const KubernetesCandidate::Options& options) {
  SharedPlace place;
  place.words = absl::StrCat(Words(options.server), ", namespace ", options.place.name_space);
  place.ask_again = options.lease / 3;
  place.candidate = [options](const std::string& name) -> SharedPlace::Attempt {
    KubernetesCandidate::Options own = options;
    own.name = name;
    const auto candidate = std::make_shared<KubernetesCandidate>(own);  // A function is copied.
    return [candidate] { return candidate->Lead(); };
  };
  return place;
}

// Takes the API server from the environment of a pod.
absl::Status FindInPod(const Environment& environment, ApiServer* server) {
  server->host = environment.Get("KUBERNETES_SERVICE_HOST");
  int port = 0;
  if (server->host.empty() ||
      !absl::SimpleAtoi(environment.Get("KUBERNETES_SERVICE_PORT"), &port) || port < 1 ||
      port > 65535) {
    return absl::InvalidArgumentError(
        "--state k8s:// needs an API server, and this is no pod (KUBERNETES_SERVICE_HOST and "
        "KUBERNETES_SERVICE_PORT are not set): give --state-api URL, such as "
        "http://127.0.0.1:8001 of `kubectl proxy`");
  }
  server->port = static_cast<uint16_t>(port);
  return absl::OkStatus();
}

// Takes the files of the pod's service account. They are read again later, so it is enough that
// they exist.
absl::Status FindAccount(const std::string& folder, ApiServer* server) {
  if (server->token_file.empty()) server->token_file = folder + "/token";
  if (server->authority_file.empty()) server->authority_file = folder + "/ca.crt";
  for (const std::string& file : {server->token_file, server->authority_file}) {
    if (::access(file.c_str(), R_OK) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--state k8s:// cannot read ", file, ": ", std::strerror(errno),
                     "; the pod needs a serviceAccountName whose Role lets it keep records, and "
                     "no automountServiceAccountToken: false"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KubernetesCandidate::Options> FindKubernetes(const KubernetesState& state,
                                                            const Environment& environment,
                                                            const std::string& service_account) {
  KubernetesCandidate::Options found;
  ApiServer& server = found.server;
  server.authority_file = state.authority_file;
  server.token_file = state.token_file;
  if (state.api) {
    server.host = state.api->host;
    server.port = state.api->port;
    server.tls = state.tls;
  } else {
    HLAUNCH_RETURN_IF_ERROR(FindInPod(environment, &server));
    HLAUNCH_RETURN_IF_ERROR(FindAccount(service_account, &server));
  }
  found.place.name = state.name;
  found.place.name_space = state.name_space;
  if (!found.place.name_space.empty()) return found;
  const auto own = ReadTextFile("--state k8s://", service_account + "/namespace");
  if (!own.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(own.status().message(), "; name the namespace: --state k8s://NAMESPACE"));
  }
  found.place.name_space = std::string(absl::StripAsciiWhitespace(*own));
  return found;
}

absl::StatusOr<std::optional<SharedPlace>> FindSharedPlace(const ServiceOptions& options,
                                                           const Environment& environment,
                                                           const std::string& token) {
  if (options.etcd) {
    HLAUNCH_ASSIGN_OR_RETURN(const EtcdKeeper::Options etcd, EtcdOptions(*options.etcd));
    return InEtcd(etcd);
  }
  if (options.kubernetes) {
    HLAUNCH_ASSIGN_OR_RETURN(KubernetesCandidate::Options kubernetes,
                             FindKubernetes(*options.kubernetes, environment, kServiceAccount));
    if (!token.empty()) kubernetes.key = RecordKeyOf(token);
    return InKubernetes(kubernetes);
  }
  return std::nullopt;
}

}  // namespace hlaunch
