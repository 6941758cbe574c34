// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "grpc/grpc_security.h"
#include "grpcpp/security/server_credentials.h"
#include "proto/base/mutex.h"
#include "rendezvous/net/trust/trust.h"

namespace hlaunch {

// The credentials of a server with a site's own certificates. gRPC asks for them at each connection
// and gets what the files hold at that time. Files that cannot be used are logged once per change,
// and the former certificates stay in use.
//
// Thread-safe. gRPC's C++ interface has only a thread that rereads the files now and then, and it
// may pass on a key without its certificate. So this class wraps gRPC's C interface.
class FileCredentials final : public grpc::ServerCredentials {
 public:
  // Requires: `trust` was made of files. The object must outlive the server.
  explicit FileCredentials(Trust trust);
  ~FileCredentials() override;

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) override;

 private:
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);
  grpc_ssl_certificate_config_reload_status Renew(grpc_ssl_server_certificate_config** config);
  int AddPortToServer(const std::string& address, grpc_server* server) override;

  Mutex mu_;
  Trust trust_ ABSL_GUARDED_BY(mu_);
  std::string given_ ABSL_GUARDED_BY(mu_);  // The certificate and authorities that gRPC has.
  grpc_server_credentials* made_;
};

}  // namespace hlaunch
