// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/job/spec/token.h"
#include "launcher/text/environment.h"
#include "rendezvous/net/trust/certificate_files.h"

namespace hlaunch {

// How a process proves that it belongs to the job: with a token, with a site's certificates, or not
// at all. A value.
struct Credentials {
  Token token;
  CertificateFiles certificates;
  bool tls = true;  // False: a token is proved in clear, and nothing is encrypted.
};

// The credentials on a command line. Empty: not given.
struct CredentialWords {
  std::string token_file;  // --token-file.
  CertificateFiles files;  // --tls-cert, --tls-key, --tls-ca.
  std::string tls;         // --tls.
};

// Return the files that HLAUNCH_TLS_CERT, HLAUNCH_TLS_KEY and HLAUNCH_TLS_CA name; whether
// HLAUNCH_TLS leaves TLS on; and the variables that say both.
CertificateFiles CertificateFilesIn(const Environment& environment);
bool TlsIn(const Environment& environment);
std::vector<std::string> EnvironmentOf(const CertificateFiles& files, bool tls);

// Returns whether `text` is "on"; else it must be "off".
//
// Errors:
//   InvalidArgument - `text` is neither; the message says what was expected.
absl::StatusOr<bool> ParseTls(absl::string_view text);

// Takes certificates from `words`, else from the environment; if there are none, a token as
// FindToken does. TLS is as `words` say, else as HLAUNCH_TLS says, else on. --tls off without a
// token and certificates is a warning. With certificates, the user's own token file does not count.
// But a token that is named as well is an error, so that no user believes that both are required.
//
// Errors:
//   InvalidArgument - as FindToken and ParseTls; one of the three files is not named; certificates
//       were given together with a token, or without TLS.
absl::StatusOr<Credentials> FindCredentials(const CredentialWords& words,
                                            const Environment& environment,
                                            const ReadTokenFileFn& read_token_file);

}  // namespace hlaunch
