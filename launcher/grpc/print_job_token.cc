// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/print_job_token.h"

#include <sys/prctl.h>

#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/command/make_token.h"
#include "launcher/job/spec/token.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/net/trust/job_token.h"
#include "rendezvous/net/trust/page_password.h"

namespace hlaunch {
namespace {

absl::StatusOr<std::string> Make(int argc, char** argv) {
  HLAUNCH_ASSIGN_OR_RETURN(const TokenOptions options, ParseTokenOptions(argc, argv));
  HLAUNCH_ASSIGN_OR_RETURN(
      const Token token,
      FindToken(options.token_file, Environment::OfThisProcess(), ReadTokenFile));
  for (const std::string& warning : token.warnings) LogWarning(warning);
  if (token.secret.empty()) {
    return absl::InvalidArgumentError(
        "there is no token here to make one from; run this where the service has its own, or name "
        "its file with --token-file");
  }
  if (!options.for_page) return MakeJobToken(token.secret, options.job_id);
  std::string password = PagePassword(token.secret);
  if (password.empty()) return absl::InternalError("OpenSSL makes no password");
  return password;
}

}  // namespace

int PrintJobToken(int argc, char** argv) {
  ::prctl(PR_SET_DUMPABLE, 0);
  const absl::StatusOr<std::string> token = Make(argc, argv);
  if (!token.ok()) {
    LogError(token.status().message());
    return kExitUsage;
  }
  std::puts(token->c_str());
  return FlushStdout();
}

}  // namespace hlaunch
