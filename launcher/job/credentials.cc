// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/credentials.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

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

// What names a token beside `option`; null: nothing does.
const char* NamedToken(const std::string& option, const Environment& environment) {
  if (!option.empty()) return option == kNoTokenFile ? nullptr : "--token-file";
  const std::string file = environment.Get(kEnvTokenFile);
  if (!file.empty()) return file == kNoTokenFile ? nullptr : kEnvTokenFile;
  return environment.Get(kEnvToken).empty() ? nullptr : kEnvToken;
}

}  // namespace

CertificateFiles CertificateFilesIn(const Environment& environment) {
  CertificateFiles files;
  for (const Part& part : kParts) files.*part.file = environment.Get(part.variable);
  return files;
}

std::vector<std::string> EnvironmentOf(const CertificateFiles& files) {
  std::vector<std::string> variables;
  for (const Part& part : kParts) {
    if (const std::string& file = files.*part.file; !file.empty()) {
      variables.push_back(absl::StrCat(part.variable, "=", file));
    }
  }
  return variables;
}

absl::StatusOr<Credentials> FindCredentials(const std::string& token_file,
                                            const CertificateFiles& files,
                                            const Environment& environment,
                                            const ReadTokenFileFn& read_token_file) {
  Credentials found;
  found.certificates = CertificateFilesIn(environment);
  for (const Part& part : kParts) {
    if (const std::string& file = files.*part.file; !file.empty()) {
      found.certificates.*part.file = file;
    }
  }
  if (found.certificates.none()) {
    HLAUNCH_ASSIGN_OR_RETURN(found.token, FindToken(token_file, environment, read_token_file));
    return found;
  }
  for (const Part& part : kParts) {
    if ((found.certificates.*part.file).empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(part.option, " (", part.variable,
                       ") is missing: --tls-cert, --tls-key and --tls-ca are given together"));
    }
  }
  if (const char* const token = NamedToken(token_file, environment); token != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificates (--tls-cert ", found.certificates.certificate,
                     ") stand in the place of a token, and ", token,
                     " names one; leave one of them out (--token-file none)"));
  }
  return found;
}

}  // namespace hlaunch
