// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/trust.h"

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/trust/certificate.h"
#include "rendezvous/net/trust/derived_keys.h"
#include "rendezvous/net/trust/job_token.h"
#include "rendezvous/net/trust/token_text.h"

namespace hlaunch {
namespace {

absl::Status NoGreetingKey() { return OpenSslRefused("derive keys (HKDF with SHA-256)"); }

}  // namespace

struct Trust::Identity {
  std::string server_name;
  std::string fingerprint;
  std::string authority;
  std::string certificate;
  std::string key;
  std::optional<std::string> job;
  bool in_clear = false;
  std::string greeting_key;    // Set only for a token.
  std::string secret_of_jobs;  // Set only for the token of all jobs.
  CertificateFiles files;
  std::string mark;  // MarkOf the files when they were read.
};

Trust::Trust(std::shared_ptr<const Identity> identity) : identity_(std::move(identity)) {}

absl::StatusOr<Trust> Trust::OfToken(absl::string_view token) {
  if (token.empty()) return Trust();
  HLAUNCH_RETURN_IF_ERROR(CheckTokenText(token));
  if (IsJobToken(token)) return OfJobToken(token);
  HLAUNCH_ASSIGN_OR_RETURN(DerivedKeys derived, DeriveKeys(token));
  Identity made;
  made.server_name = std::move(derived.server_name);
  made.fingerprint = std::move(derived.fingerprint);
  made.greeting_key = GreetingKeyOf(token);
  made.secret_of_jobs = SecretOfJobs(token);
  if (made.greeting_key.empty()) return NoGreetingKey();
  EVP_PKEY* const signer = derived.authority.get();
  const Certificate authority = AuthorityCertificate(signer, signer);
  const Key own = NewKey();
  if (authority == nullptr || own == nullptr) return OpenSslRefused("make a certificate");
  const Certificate certificate =
      Sign(own.get(), {"hlaunch", "critical,digitalSignature", made.server_name}, authority.get(),
           signer);
  if (certificate == nullptr) return OpenSslRefused("sign a certificate");
  made.authority = PemOf(authority.get());
  made.certificate = PemOf(certificate.get());
  made.key = PemOf(own.get());
  if (made.authority.empty() || made.certificate.empty() || made.key.empty()) {
    return OpenSslRefused("write a certificate as PEM");
  }
  return Trust(std::make_shared<const Identity>(std::move(made)));
}

absl::StatusOr<Trust> Trust::OfJobToken(absl::string_view token) {
  HLAUNCH_ASSIGN_OR_RETURN(JobToken read, ReadJobToken(token));
  Identity made;
  made.server_name = std::move(read.server_name);
  made.fingerprint = std::move(read.fingerprint);
  made.job = std::move(read.job_id);
  made.authority = std::move(read.authority);
  made.certificate = std::move(read.certificate);
  made.key = std::move(read.key);
  made.greeting_key = std::move(read.greeting_key);
  return Trust(std::make_shared<const Identity>(std::move(made)));
}

absl::StatusOr<Trust> Trust::OfFiles(const CertificateFiles& files) {
  Identity made;
  made.mark = MarkOf(files);  // Read first: a later change is noticed.
  HLAUNCH_ASSIGN_OR_RETURN(Certificates read, ReadCertificates(files, std::time(nullptr)));
  if (!read.warning.empty()) LogWarning(read.warning);
  made.authority = std::move(read.authority);
  made.certificate = std::move(read.certificate);
  made.key = std::move(read.key);
  made.files = files;
  return Trust(std::make_shared<const Identity>(std::move(made)));
}

absl::StatusOr<Trust> Trust::OfTokenInClear(absl::string_view token) {
  if (token.empty()) return Trust();
  HLAUNCH_RETURN_IF_ERROR(CheckTokenText(token));
  Identity made;
  made.in_clear = true;
  if (IsJobToken(token)) {
    HLAUNCH_ASSIGN_OR_RETURN(JobToken read, ReadJobToken(token));
    made.server_name = std::move(read.server_name);
    made.fingerprint = std::move(read.fingerprint);
    made.job = std::move(read.job_id);
    made.greeting_key = std::move(read.greeting_key);
  } else {
    HLAUNCH_ASSIGN_OR_RETURN(DerivedKeys derived, DeriveKeys(token));
    made.server_name = std::move(derived.server_name);
    made.fingerprint = std::move(derived.fingerprint);
    made.greeting_key = GreetingKeyOf(token);
    made.secret_of_jobs = SecretOfJobs(token);
  }
  if (made.greeting_key.empty()) return NoGreetingKey();
  return Trust(std::make_shared<const Identity>(std::move(made)));
}

absl::StatusOr<Trust> Trust::Of(absl::string_view token, const CertificateFiles& files, bool tls) {
  if (files.none()) return tls ? OfToken(token) : OfTokenInClear(token);
  if (tls) return OfFiles(files);
  return absl::InvalidArgumentError("certificates are shown in TLS alone, and it is off");
}

bool Trust::greets() const { return !none() && !identity_->greeting_key.empty(); }
bool Trust::in_clear() const { return !none() && identity_->in_clear; }

std::string Trust::GreetingKeyFor(absl::string_view job_id) const {
  const bool own = job_id == identity_->job.value_or("");
  if (own) return identity_->greeting_key;
  if (identity_->job) return "";
  return GreetingKeyOf(SecretOfJob(identity_->secret_of_jobs, job_id));
}

Trust Trust::Renewed() const {
  if (none() || files().none()) return *this;
  std::string mark = MarkOf(files());
  if (mark == identity_->mark) return *this;
  absl::StatusOr<Trust> renewed = OfFiles(files());
  if (renewed.ok()) return *std::move(renewed);
  LogWarning(absl::StrCat(renewed.status().message(), "; going on with what was there before"));
  Identity kept = *identity_;
  kept.mark = std::move(mark);  // So this is logged once for each change.
  return Trust(std::make_shared<const Identity>(std::move(kept)));
}

const CertificateFiles& Trust::files() const { return identity_->files; }
const std::optional<std::string>& Trust::job() const { return identity_->job; }
const std::string& Trust::server_name() const { return identity_->server_name; }
const std::string& Trust::fingerprint() const { return identity_->fingerprint; }
const std::string& Trust::authority() const { return identity_->authority; }
const std::string& Trust::certificate() const { return identity_->certificate; }
const std::string& Trust::key() const { return identity_->key; }

}  // namespace hlaunch
