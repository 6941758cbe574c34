// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/file_credentials.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"

namespace hlaunch {

FileCredentials::FileCredentials(Trust trust)
    : trust_(std::move(trust)),
      made_(::grpc_ssl_server_credentials_create_with_options(
          ::grpc_ssl_server_credentials_create_options_using_config_fetcher(
              GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, Fetch, this))) {}

FileCredentials::~FileCredentials() { ::grpc_server_credentials_release(made_); }

// Does nothing: no server here has a metadata processor.
void FileCredentials::SetAuthMetadataProcessor(
    const std::shared_ptr<grpc::AuthMetadataProcessor>&) {}

grpc_ssl_certificate_config_reload_status FileCredentials::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  return static_cast<FileCredentials*>(self)->Renew(config);
}

grpc_ssl_certificate_config_reload_status FileCredentials::Renew(
    grpc_ssl_server_certificate_config** config) {
  MutexLock lock(&mu_);
  trust_ = trust_.Renewed();
  std::string offered = absl::StrCat(trust_.certificate(), trust_.authority());
  if (offered == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair = {trust_.key().c_str(), trust_.certificate().c_str()};
  *config = ::grpc_ssl_server_certificate_config_create(trust_.authority().c_str(), &pair, 1);
  given_ = std::move(offered);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

int FileCredentials::AddPortToServer(const std::string& address, grpc_server* server) {
  return ::grpc_server_add_http2_port(server, address.c_str(), made_);
}

}  // namespace hlaunch
