// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/job_token.h"

#include <openssl/crypto.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/trust/certificate.h"
#include "rendezvous/net/trust/derived_keys.h"
#include "rendezvous/net/trust/token_text.h"

namespace hlaunch {
namespace {

constexpr char kPrefix[] = "hlaunch-job-1.";  // A new form gets a new number.
constexpr char kUriPrefix[] = "hlaunch-job:";
constexpr char kOwnName[] = "job.hlaunch";  // No client asks for it.
constexpr char kServerSuffix[] = ".hlaunch";
constexpr size_t kMaxJobIdBytes = 256;

// After the prefix, in base64url: these parts, and then the certificate in DER.
constexpr size_t kPublicBytes = 91;
constexpr size_t kFixedBytes = kNameBytes + kFingerprintBytes + kSeedBytes + kPublicBytes;

using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

// Returns the job that `certificate` names; empty if there is none.
std::string JobIn(X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    const auto text = reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri));
    const auto job = JobOfUri({text, static_cast<size_t>(ASN1_STRING_length(uri))});
    if (job) return *job;
  }
  return "";
}

absl::Status NotWhole() {
  return absl::InvalidArgumentError(
      "a token for one job is not whole; make it again: hlaunch token --for-job ID");
}

}  // namespace

bool IsJobToken(absl::string_view token) { return absl::StartsWith(token, kPrefix); }

absl::StatusOr<std::string> MakeJobToken(absl::string_view token, absl::string_view job_id) {
  HLAUNCH_RETURN_IF_ERROR(CheckTokenText(token));
  if (IsJobToken(token)) {
    return absl::InvalidArgumentError(
        "the token here is for one job itself; only the service's own token makes others");
  }
  if (job_id.empty() || job_id.size() > kMaxJobIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job's id has 1 to ", kMaxJobIdBytes, " bytes"));
  }
  HLAUNCH_ASSIGN_OR_RETURN(const DerivedKeys derived, DeriveKeys(token));
  std::string secret_of_jobs = SecretOfJobs(token);
  std::string seed = SecretOfJob(secret_of_jobs, job_id);
  OPENSSL_cleanse(secret_of_jobs.data(), secret_of_jobs.size());
  EVP_PKEY* const signer = derived.authority.get();
  const Key own = KeyOfSeed(seed);
  const Certificate authority = AuthorityCertificate(signer, signer);
  CertificateText text = {"hlaunch", "critical,digitalSignature", kOwnName, "clientAuth"};
  text.uri = UriOfJob(job_id);
  if (own == nullptr || authority == nullptr) return OpenSslRefused("make a certificate");
  const Certificate certificate = Sign(own.get(), text, authority.get(), signer);
  if (certificate == nullptr) return OpenSslRefused("sign a certificate");
  const absl::string_view name = absl::StripSuffix(derived.server_name, kServerSuffix);
  std::string whole =
      absl::StrCat(absl::HexStringToBytes(name), absl::HexStringToBytes(derived.fingerprint), seed,
                   DerOfPublic(signer), DerOf(certificate.get()));
  std::string made = absl::WebSafeBase64Escape(whole);
  while (!made.empty() && made.back() == '=') made.pop_back();
  OPENSSL_cleanse(seed.data(), seed.size());
  OPENSSL_cleanse(whole.data(), whole.size());
  return absl::StrCat(kPrefix, made);
}

absl::StatusOr<JobToken> ReadJobToken(absl::string_view token) {
  std::string whole;
  if (!absl::ConsumePrefix(&token, kPrefix) || !absl::WebSafeBase64Unescape(token, &whole) ||
      whole.size() <= kFixedBytes) {
    return NotWhole();
  }
  absl::string_view left = whole;
  const auto take = [&left](size_t size) {
    const absl::string_view part = left.substr(0, size);
    left.remove_prefix(size);
    return part;
  };
  JobToken read;
  read.server_name = absl::StrCat(absl::BytesToHexString(take(kNameBytes)), kServerSuffix);
  read.fingerprint = absl::BytesToHexString(take(kFingerprintBytes));
  const absl::string_view seed = take(kSeedBytes);
  const Key own = KeyOfSeed(seed);
  read.greeting_key = GreetingKeyOf(seed);
  const Key service = PublicKeyOfDer(take(kPublicBytes));
  const Certificate certificate = CertificateOfDer(left);
  OPENSSL_cleanse(whole.data(), whole.size());
  if (own == nullptr || service == nullptr || certificate == nullptr ||
      X509_check_private_key(certificate.get(), own.get()) != 1 ||
      X509_verify(certificate.get(), service.get()) != 1) {
    return NotWhole();
  }
  read.job_id = JobIn(certificate.get());
  if (read.job_id.empty()) return NotWhole();
  // No peer checks who has signed the certificate of a trusted authority, so the job's key does it.
  const Certificate authority = AuthorityCertificate(service.get(), own.get());
  if (authority == nullptr) return OpenSslRefused("make a certificate");
  read.authority = PemOf(authority.get());
  read.certificate = PemOf(certificate.get());
  read.key = PemOf(own.get());
  return read;
}

// Escapes by RFC 3986, and also the characters that separate names in OpenSSL's own language.
std::string UriOfJob(absl::string_view job_id) {
  std::string uri = kUriPrefix;
  for (const char c : job_id) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_') {
      uri += c;
    } else {
      absl::StrAppend(&uri, "%", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
    }
  }
  return uri;
}

std::optional<std::string> JobOfUri(absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, kUriPrefix)) return std::nullopt;
  std::string job_id;
  for (size_t i = 0; i < uri.size(); ++i) {
    if (uri[i] != '%') {
      job_id += uri[i];
      continue;
    }
    const absl::string_view digits = uri.substr(i + 1, 2);
    if (digits.size() != 2 || !absl::ascii_isxdigit(static_cast<unsigned char>(digits[0])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(digits[1]))) {
      return std::nullopt;
    }
    job_id += absl::HexStringToBytes(digits);
    i += 2;
  }
  return job_id;
}

}  // namespace hlaunch
