// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/credentials.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

constexpr char kOn[] = "on";
constexpr char kOff[] = "off";

struct Part {
  const char* option;
  const char* variable;
  std::string CertificateFiles::*file;
};

const std::array<Part, 3> kParts = {{
    {"--tls-cert", kEnvTlsCert, &CertificateFiles::certificate},
    {"--tls-key", kEnvTlsKey, &CertificateFiles::key},
    {"--tls-ca", kEnvTlsCa, &CertificateFiles::authority},
}};

// Returns the option or variable that names a token, or null if there is none. `option` is the
// value of --token-file.
const char* NamedToken(const std::string& option, const Environment& environment) {
  if (!option.empty()) return option == kNoTokenFile ? nullptr : "--token-file";
  const std::string file = environment.Get(kEnvTokenFile);
  if (!file.empty()) return file == kNoTokenFile ? nullptr : kEnvTokenFile;
  return environment.Get(kEnvToken).empty() ? nullptr : kEnvToken;
}

absl::StatusOr<bool> FindTls(const std::string& option, const Environment& environment) {
  const std::string variable = environment.Get(kEnvTls);
  const std::string& given = option.empty() ? variable : option;
  if (given.empty()) return true;
  absl::StatusOr<bool> tls = ParseTls(given);
  if (tls.ok()) return tls;
  return absl::InvalidArgumentError(absl::StrCat(option.empty() ? kEnvTls : "--tls", " '",
                                                 PrintableLine(given),
                                                 "': ", tls.status().message()));
}

// Checks that the certificates are complete, and that TLS and the token do not contradict them.
absl::Status CheckCertificates(const Credentials& found, const std::string& token_file,
                               const Environment& environment) {
  for (const Part& part : kParts) {
    if ((found.certificates.*part.file).empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(part.option, " (", part.variable,
                       ") is missing: --tls-cert, --tls-key and --tls-ca are given together"));
    }
  }
  if (!found.tls) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls off (", kEnvTls, ") and certificates (--tls-cert ", found.certificates.certificate,
        ") contradict each other: they are shown in TLS alone; leave one of them out"));
  }
  if (const char* const token = NamedToken(token_file, environment); token != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificates (--tls-cert ", found.certificates.certificate,
                     ") stand in the place of a token, and ", token,
                     " names one; leave one of them out (--token-file none)"));
  }
  return absl::OkStatus();
}

}  // namespace

CertificateFiles CertificateFilesIn(const Environment& environment) {
  CertificateFiles files;
  for (const Part& part : kParts) files.*part.file = environment.Get(part.variable);
  return files;
}

bool TlsIn(const Environment& environment) { return environment.Get(kEnvTls) != kOff; }

std::vector<std::string> EnvironmentOf(const CertificateFiles& files, bool tls) {
  std::vector<std::string> variables = {absl::StrCat(kEnvTls, "=", tls ? kOn : kOff)};
  for (const Part& part : kParts) {
    if (const std::string& file = files.*part.file; !file.empty()) {
      variables.push_back(absl::StrCat(part.variable, "=", file));
    }
  }
  return variables;
}

absl::StatusOr<bool> ParseTls(absl::string_view text) {
  if (text == kOn || text == kOff) return text == kOn;
  return absl::InvalidArgumentError("expected on or off");
}

absl::StatusOr<Credentials> FindCredentials(const CredentialWords& words,
                                            const Environment& environment,
                                            const ReadTokenFileFn& read_token_file) {
  Credentials found;
  found.certificates = CertificateFilesIn(environment);
  for (const Part& part : kParts) {
    if (const std::string& file = words.files.*part.file; !file.empty()) {
      found.certificates.*part.file = file;
    }
  }
  HLAUNCH_ASSIGN_OR_RETURN(found.tls, FindTls(words.tls, environment));
  if (found.certificates.none()) {
    HLAUNCH_ASSIGN_OR_RETURN(found.token,
                             FindToken(words.token_file, environment, read_token_file));
    if (words.tls == kOff && found.token.secret.empty()) {
      found.token.warnings.push_back(
          "--tls off changes nothing here: without a token nothing is encrypted, and nobody proves "
          "that he belongs to the job (see hlaunch token)");
    }
    return found;
  }
  HLAUNCH_RETURN_IF_ERROR(CheckCertificates(found, words.token_file, environment));
  return found;
}

}  // namespace hlaunch
