// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/ask.h"

#include "launcher/grpc/link/link_facts.h"
#include "launcher/job/spec/credentials.h"
#include "launcher/text/environment.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/trust/trust.h"

namespace hlaunch {

absl::StatusOr<RendezvousEndpoint> EndpointToAsk(const AskWords& words) {
  HLAUNCH_ASSIGN_OR_RETURN(const Credentials found,
                           FindCredentials({words.token_file, words.certificates, words.tls},
                                           Environment::OfThisProcess(), ReadTokenFile));
  for (const std::string& warning : found.token.warnings) LogWarning(warning);
  HLAUNCH_ASSIGN_OR_RETURN(const Trust trust,
                           Trust::Of(found.token.secret, found.certificates, found.tls));
  return RendezvousEndpoint{words.endpoint.host, words.endpoint.port, trust,
                            PlacesOf(words.other_endpoints)};
}

}  // namespace hlaunch
