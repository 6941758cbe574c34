// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/job/token.h"
#include "launcher/words/environment.h"
#include "rendezvous/trust/certificate_files.h"

namespace hlaunch {

// What a process proves with that it belongs to the job: a token, a site's certificates, or
// nothing. A value.
struct Credentials {
  Token token;
  CertificateFiles certificates;
  bool tls = true;  // Without, a token is proved in clear, and nothing is encrypted.
};

// What a command line says of them; empty: nothing.
struct CredentialWords {
  std::string token_file;  // --token-file.
  CertificateFiles files;  // --tls-cert, --tls-key, --tls-ca.
  std::string tls;         // --tls.
};

// The files that HLAUNCH_TLS_CERT, HLAUNCH_TLS_KEY and HLAUNCH_TLS_CA name, and whether HLAUNCH_TLS
// leaves TLS on. The same as variables.
CertificateFiles CertificateFilesIn(const Environment& environment);
bool TlsIn(const Environment& environment);
std::vector<std::string> EnvironmentOf(const CertificateFiles& files, bool tls);

// "on" or "off".
//
// Errors:
//   InvalidArgument - it is neither; what was expected.
absl::StatusOr<bool> ParseTls(absl::string_view text);

// Certificates by `words` and else by the environment; if there are none, a token as FindToken.
// TLS as `words` say, else HLAUNCH_TLS, else on; without a token and certificates --tls off is a
// warning. The user's own token file does not count where certificates
// are named, but one that is named is a contradiction: nobody shall believe that both are demanded.
//
// Errors:
//   InvalidArgument - as FindToken and ParseTls; one of the three files is not named; both were
//       given, or certificates without TLS.
absl::StatusOr<Credentials> FindCredentials(const CredentialWords& words,
                                            const Environment& environment,
                                            const ReadTokenFileFn& read_token_file);

}  // namespace hlaunch
