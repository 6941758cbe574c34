// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/job/token.h"
#include "launcher/words/environment.h"
#include "rendezvous/trust/certificate_files.h"

namespace hlaunch {

// What a process proves with that it belongs to the job: a token, a site's certificates, or
// nothing. A value.
struct Credentials {
  Token token;
  CertificateFiles certificates;
};

// The files that HLAUNCH_TLS_CERT, HLAUNCH_TLS_KEY and HLAUNCH_TLS_CA name. The same as variables.
CertificateFiles CertificateFilesIn(const Environment& environment);
std::vector<std::string> EnvironmentOf(const CertificateFiles& files);

// Certificates by `files` (of --tls-cert, --tls-key, --tls-ca) and else by the environment; if
// there are none, a token as FindToken. The user's own token file does not count where certificates
// are named, but one that is named is a contradiction: nobody shall believe that both are demanded.
//
// Errors:
//   InvalidArgument - as FindToken; one of the three files is not named; or both were given.
absl::StatusOr<Credentials> FindCredentials(const std::string& token_file,
                                            const CertificateFiles& files,
                                            const Environment& environment,
                                            const ReadTokenFileFn& read_token_file);

}  // namespace hlaunch
