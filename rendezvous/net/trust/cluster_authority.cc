// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/cluster_authority.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "rendezvous/net/trust/certificate.h"

namespace hlaunch {
namespace {

constexpr char kAuthorityName[] = "hlaunch cluster";
constexpr char kHeadUri[] = "hlaunch-head";
constexpr char kHostUriPrefix[] = "hlaunch-host:";
constexpr char kHeadName[] = "head.hlaunch";
constexpr char kForever[] = "99991231235959Z";
constexpr size_t kMaxCommonName = 64;  // X.520's ub-common-name.
constexpr size_t kPinBytes = 16;

// In DER a P-256 public key is these bytes and the point's two numbers, whatever program made it.
constexpr char kPublicKeyHead[] = "3059301306072a8648ce3d020106082a8648ce3d03010703420004";
constexpr size_t kPublicKeyBytes = 91;

using Request = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free_all>>;

absl::Status Refused(absl::string_view why) { return absl::InvalidArgumentError(why); }

// Returns a date in OpenSSL's form: "20261123060000Z".
std::string DateText(std::time_t time) {
  std::tm parts = {};
  std::array<char, 32> text{};
  ::gmtime_r(&time, &parts);
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y%m%d%H%M%SZ", &parts));
}

// Returns seconds since 1970; 0 if the date cannot be read.
std::time_t TimeOf(const ASN1_TIME* date) {
  std::tm parts = {};
  if (date == nullptr || ::ASN1_TIME_to_tm(date, &parts) != 1) return 0;
  return ::timegm(&parts);
}

// The authority as objects of OpenSSL. A value that cannot be copied.
struct Signer {
  Certificate certificate;
  Key key;
};

absl::StatusOr<Signer> SignerOf(const Authority& authority) {
  Signer signer = {CertificateIn(authority.certificate), KeyIn(authority.key)};
  if (signer.certificate == nullptr || signer.key == nullptr ||
      X509_check_private_key(signer.certificate.get(), signer.key.get()) != 1) {
    ERR_clear_error();
    return Refused("the cluster's authority is not whole: its key is not that of its certificate");
  }
  return signer;
}

absl::StatusOr<std::string> SignFor(const Signer& signer, EVP_PKEY* subject, CertificateText text,
                                    std::time_t now, std::time_t until) {
  text.usage = "critical,digitalSignature";
  text.not_before = DateText(now - kClockTolerance);
  text.not_after = DateText(until);
  const Certificate made = Sign(subject, text, signer.certificate.get(), signer.key.get());
  if (made == nullptr) return OpenSslRefused("sign a certificate");
  return PemOf(made.get());
}

bool IsPublicKeyOfP256(EVP_PKEY* key) {
  const std::string der = DerOfPublic(key);
  return der.size() == kPublicKeyBytes &&
         absl::StartsWith(der, absl::HexStringToBytes(kPublicKeyHead));
}

// Returns the key that `request_pem` asks to certify, if that key has signed the request.
absl::StatusOr<Key> KeyOfRequest(const std::string& request_pem) {
  if (request_pem.size() > kMaxRequestBytes) {
    return Refused("the request for a certificate is too long");
  }
  const Memory memory(BIO_new_mem_buf(request_pem.data(), static_cast<int>(request_pem.size())));
  const Request request(PEM_read_bio_X509_REQ(memory.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (request == nullptr) return Refused("the request for a certificate cannot be read");
  Key key(X509_REQ_get_pubkey(request.get()));
  // This comes before the signature, which another kind of key could make expensive to check.
  const bool fits = key != nullptr && IsPublicKeyOfP256(key.get());
  const bool is_signed = fits && X509_REQ_verify(request.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) return Refused("the request for a certificate has a key that is not of P-256");
  if (!is_signed) return Refused("the request for a certificate is not signed by its own key");
  return key;
}

std::vector<std::string> UrisOf(const X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

}  // namespace

absl::StatusOr<Authority> MakeAuthority(std::time_t now) {
  const Key key = NewKey();
  if (key == nullptr) return OpenSslRefused("make a key");
  CertificateText text = {kAuthorityName, "critical,keyCertSign", ""};
  text.not_before = DateText(now - kClockTolerance);
  text.not_after = kForever;
  const Certificate made = Sign(key.get(), text, nullptr, key.get());
  if (made == nullptr) return OpenSslRefused("sign a certificate");
  return Authority{PemOf(made.get()), PemOf(key.get())};
}

absl::StatusOr<HostIdentity> MakeHeadIdentity(const Authority& authority, std::time_t now) {
  HLAUNCH_ASSIGN_OR_RETURN(const Signer signer, SignerOf(authority));
  const Key key = NewKey();
  if (key == nullptr) return OpenSslRefused("make a key");
  CertificateText text = {"hlaunch head", "", kHeadName, "serverAuth"};
  text.uri = kHeadUri;
  HostIdentity made = {authority.certificate, "", PemOf(key.get())};
  HLAUNCH_ASSIGN_OR_RETURN(made.certificate,
                           SignFor(signer, key.get(), text, now, now + kCertificateLife));
  return made;
}

absl::StatusOr<HostRequest> MakeHostRequest(const std::string& host) {
  const Key key = NewKey();
  const Request request(X509_REQ_new());
  if (key == nullptr || request == nullptr) return OpenSslRefused("make a key");
  const std::string name = host.substr(0, kMaxCommonName);
  const bool made = X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
                    X509_NAME_add_entry_by_txt(
                        X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_ASC,
                        reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1 &&
                    X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
                    X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0;
  const Memory memory(BIO_new(BIO_s_mem()));
  if (!made || memory == nullptr || PEM_write_bio_X509_REQ(memory.get(), request.get()) != 1) {
    return OpenSslRefused("make a request for a certificate");
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return HostRequest{std::string(text, static_cast<size_t>(size)), PemOf(key.get())};
}

absl::StatusOr<std::string> SignHostRequest(const Authority& authority,
                                            const std::string& request_pem, const std::string& host,
                                            std::time_t now, std::time_t until) {
  if (!IsClusterHostName(host)) return Refused("that is not a host's name");
  HLAUNCH_ASSIGN_OR_RETURN(const Signer signer, SignerOf(authority));
  HLAUNCH_ASSIGN_OR_RETURN(const Key key, KeyOfRequest(request_pem));
  CertificateText text = {host.substr(0, kMaxCommonName), "", host, "clientAuth"};
  text.uri = absl::StrCat(kHostUriPrefix, host);
  return SignFor(signer, key.get(), text, now, until);
}

absl::StatusOr<CertifiedHost> ReadHostCertificate(const X509* certificate) {
  const std::vector<std::string> uris = UrisOf(certificate);
  absl::string_view host = uris.size() == 1 ? absl::string_view(uris[0]) : "";
  if (!absl::ConsumePrefix(&host, kHostUriPrefix) || !IsClusterHostName(std::string(host))) {
    return Refused("the certificate is not that of a host of a cluster");
  }
  const std::time_t from = TimeOf(X509_get0_notBefore(certificate));
  const std::time_t until = TimeOf(X509_get0_notAfter(certificate));
  if (from == 0 || until == 0) return Refused("the certificate's dates cannot be read");
  return CertifiedHost{std::string(host), from + kClockTolerance, until};
}

absl::StatusOr<CertifiedHost> ReadHostCertificate(const std::string& certificate_pem) {
  const Certificate certificate = CertificateIn(certificate_pem);
  if (certificate == nullptr) return Refused("there is no certificate in PEM");
  return ReadHostCertificate(certificate.get());
}

bool KeyFits(const std::string& key_pem, const std::string& certificate_pem) {
  const Certificate certificate = CertificateIn(certificate_pem);
  const Key key = KeyIn(key_pem);
  const bool fits = certificate != nullptr && key != nullptr &&
                    X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return fits;
}

absl::StatusOr<CertifiedHost> CheckHostIdentity(const HostIdentity& identity) {
  const Certificate authority = CertificateIn(identity.authority);
  const Certificate certificate = CertificateIn(identity.certificate);
  const bool fits = authority != nullptr && KeyFits(identity.key, identity.certificate) &&
                    X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  if (!fits) return Refused("the authority, the certificate and the key do not fit together");
  return ReadHostCertificate(certificate.get());
}

bool IsHeadCertificate(const X509* certificate) {
  const std::vector<std::string> uris = UrisOf(certificate);
  return uris.size() == 1 && uris[0] == kHeadUri;
}

std::string KeyPinOf(const X509* authority) {
  const std::string der = DerOfPublic(X509_get0_pubkey(authority));
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  if (der.empty() ||
      EVP_Digest(der.data(), der.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    return "";
  }
  return absl::BytesToHexString({reinterpret_cast<const char*>(hash.data()), kPinBytes});
}

std::string KeyPinOf(const std::string& authority_pem) {
  const Certificate authority = CertificateIn(authority_pem);
  return authority == nullptr ? "" : KeyPinOf(authority.get());
}

}  // namespace hlaunch
