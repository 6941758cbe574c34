// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/cluster_wire/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/error.hpp"
#include "asio/ssl/error.hpp"
#include "asio/ssl/verify_context.hpp"
#include "proto/base/status_macros.h"
#include "rendezvous/net/trust/certificate.h"

namespace hlaunch {
namespace {

constexpr long kMostCertificates = 32 << 10;  // Bytes that the peer may show.
constexpr int kDepth = 1;                     // The authority signs each certificate itself.

using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;

absl::StatusOr<TlsContext> Bare(asio::ssl::context::method method) {
  try {
    auto context = std::make_shared<asio::ssl::context>(method);
    SSL_CTX* tls = context->native_handle();
    if (SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set1_groups_list(tls, "P-256") != 1 || SSL_CTX_set_num_tickets(tls, 0) != 1) {
      return OpenSslRefused("set up TLS 1.3");
    }
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(tls, kMostCertificates);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify_depth(tls, kDepth);
    return context;
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("OpenSSL: ", error.what()));
  }
}

absl::Status Show(const HostIdentity& identity, SSL_CTX* tls) {
  const Certificate certificate = CertificateIn(identity.certificate);
  const Key key = KeyIn(identity.key);
  if (certificate != nullptr && key != nullptr &&
      SSL_CTX_use_certificate(tls, certificate.get()) == 1 &&
      SSL_CTX_use_PrivateKey(tls, key.get()) == 1 && SSL_CTX_check_private_key(tls) == 1) {
    return absl::OkStatus();
  }
  ERR_clear_error();
  return absl::InvalidArgumentError("the certificate and its key are not whole");
}

absl::Status Believe(X509* authority, X509_STORE* store) {
  if (authority != nullptr && X509_STORE_add_cert(store, authority) == 1) return absl::OkStatus();
  ERR_clear_error();
  return absl::InvalidArgumentError("the authority's certificate is not whole");
}

bool IsHead(bool is_believed, asio::ssl::verify_context& context) {
  X509_STORE_CTX* chain = context.native_handle();
  if (!is_believed || X509_STORE_CTX_get_error_depth(chain) > 0) return is_believed;
  if (IsHeadCertificate(X509_STORE_CTX_get_current_cert(chain))) return true;
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return false;
}

// Returns OpenSSL's verdict, except that `forgives` may accept a host's expired certificate.
bool IsBelieved(bool is_believed, asio::ssl::verify_context& context, const Forgives& forgives) {
  X509_STORE_CTX* chain = context.native_handle();
  const bool is_only_old = !is_believed && X509_STORE_CTX_get_error_depth(chain) == 0 &&
                           X509_STORE_CTX_get_error(chain) == X509_V_ERR_CERT_HAS_EXPIRED;
  if (!is_only_old || !forgives) return is_believed;
  const auto certified = ReadHostCertificate(X509_STORE_CTX_get_current_cert(chain));
  if (!certified.ok() || !forgives(*certified)) return false;
  X509_STORE_CTX_set_error(chain, X509_V_OK);
  return true;
}

// Returns the certificate with this pin among those that the peer has shown, or null.
X509* AuthorityWithPin(X509_STORE_CTX* shown, const std::string& pin) {
  STACK_OF(X509)* certificates = X509_STORE_CTX_get0_untrusted(shown);
  for (int i = 0; i < sk_X509_num(certificates); ++i) {
    X509* certificate = sk_X509_value(certificates, i);
    if (KeyPinOf(certificate) == pin) return certificate;
  }
  return nullptr;
}

bool IsSignedBy(X509* authority, X509_STORE_CTX* shown) {
  const Store store(X509_STORE_new());
  if (store == nullptr || !Believe(authority, store.get()).ok()) return false;
  const std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  if (context == nullptr || X509_STORE_CTX_init(context.get(), store.get(),
                                                X509_STORE_CTX_get0_cert(shown), nullptr) != 1) {
    return false;
  }
  X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_depth(X509_STORE_CTX_get0_param(context.get()), kDepth);
  const bool is_signed = X509_verify_cert(context.get()) == 1;
  X509_STORE_CTX_set_error(shown, X509_STORE_CTX_get_error(context.get()));
  return is_signed;
}

// For SSL_CTX_set_cert_verify_callback; `pin` is a std::string of the context.
int IsHeadWithPin(X509_STORE_CTX* shown, void* pin) {
  X509* authority = AuthorityWithPin(shown, *static_cast<const std::string*>(pin));
  if (authority == nullptr) {
    X509_STORE_CTX_set_error(shown, X509_V_ERR_CERT_REJECTED);
    return 0;
  }
  if (!IsSignedBy(authority, shown)) return 0;
  if (IsHeadCertificate(X509_STORE_CTX_get0_cert(shown))) return 1;
  X509_STORE_CTX_set_error(shown, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

}  // namespace

absl::StatusOr<TlsContext> TlsOfServer(const HostIdentity& identity, Forgives forgives) {
  HLAUNCH_ASSIGN_OR_RETURN(TlsContext context, Bare(asio::ssl::context::tls_server));
  SSL_CTX* tls = context->native_handle();
  HLAUNCH_RETURN_IF_ERROR(Show(identity, tls));
  const Certificate authority = CertificateIn(identity.authority);
  HLAUNCH_RETURN_IF_ERROR(Believe(authority.get(), SSL_CTX_get_cert_store(tls)));
  if (SSL_CTX_add1_chain_cert(tls, authority.get()) != 1) return OpenSslRefused("show a chain");
  context->set_verify_mode(asio::ssl::verify_peer);
  context->set_verify_callback(
      [forgives = std::move(forgives)](bool is_believed, asio::ssl::verify_context& chain) {
        return IsBelieved(is_believed, chain, forgives);
      });
  return context;
}

absl::StatusOr<TlsContext> TlsOfHost(const HostIdentity& identity) {
  HLAUNCH_ASSIGN_OR_RETURN(TlsContext context, Bare(asio::ssl::context::tls_client));
  SSL_CTX* tls = context->native_handle();
  HLAUNCH_RETURN_IF_ERROR(Show(identity, tls));
  const Certificate authority = CertificateIn(identity.authority);
  HLAUNCH_RETURN_IF_ERROR(Believe(authority.get(), SSL_CTX_get_cert_store(tls)));
  context->set_verify_mode(asio::ssl::verify_peer);
  context->set_verify_callback(IsHead);
  return context;
}

absl::StatusOr<TlsContext> TlsOfStranger(const std::string& pin) {
  struct Pinned {
    std::string pin;
    TlsContext context;
  };
  HLAUNCH_ASSIGN_OR_RETURN(TlsContext context, Bare(asio::ssl::context::tls_client));
  auto pinned = std::make_shared<Pinned>(Pinned{pin, std::move(context)});
  pinned->context->set_verify_mode(asio::ssl::verify_peer);
  SSL_CTX_set_cert_verify_callback(pinned->context->native_handle(), IsHeadWithPin, &pinned->pin);
  return TlsContext(pinned, pinned->context.get());
}

std::string WhyNoTls(SSL* tls, const asio::error_code& error) {
  const long verdict = SSL_get_verify_result(tls);
  if (verdict == X509_V_ERR_APPLICATION_VERIFICATION) {
    return "its certificate is another host's, not the head's";
  }
  if (verdict == X509_V_ERR_CERT_REJECTED) {
    return "it is the head of another cluster than the one of the token";
  }
  if (verdict != X509_V_OK) {
    return absl::StrCat("its certificate is not believed: ",
                        X509_verify_cert_error_string(verdict));
  }
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated ||
      error == asio::error::connection_reset || error == asio::error::broken_pipe) {
    return "it closed the connection";
  }
  if (error.category() != asio::error::get_ssl_category()) return error.message();
  const char* reason = ERR_reason_error_string(static_cast<unsigned long>(error.value()));
  return absl::StrCat("TLS: ", reason == nullptr ? error.message() : reason);
}

}  // namespace hlaunch
