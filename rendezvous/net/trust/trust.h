// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/net/trust/certificate_files.h"

namespace hlaunch {

// What a process needs to prove to others that it holds a job's token, and to check that they do:
// mutual TLS without files. Every holder derives the same certificate authority's key from the
// token (HKDF-SHA256, RFC 5869, to a P-256 key) and signs its own certificate with it, whose key is
// random. All holders are equal: this proves membership, never identity. A Trust may also hold a
// site's own certificates, from files, for the same mutual TLS; or a token without TLS.
//
// A value that is shared, not copied; immutable, thread-safe.
class Trust {
 public:
  // Makes a Trust that is none(): connections are in clear, and any peer may connect.
  Trust() = default;

  // Returns none if `token` is empty. Else the call takes about a millisecond. The token may be one
  // for a single job, see MakeJobToken.
  //
  // Errors:
  //   InvalidArgument - as CheckTokenText.
  //   Internal - OpenSSL refuses, as under a policy without P-256 or SHA-256; the message has its
  //       words.
  static absl::StatusOr<Trust> OfToken(absl::string_view token);

  // Makes a Trust of what `files` hold. Logs a warning if other users can read the key.
  //
  // Errors: as ReadCertificates.
  static absl::StatusOr<Trust> OfFiles(const CertificateFiles& files);

  // Returns none if `token` is empty. Else the Trust is for connections in clear.
  //
  // Errors: as OfToken.
  static absl::StatusOr<Trust> OfTokenInClear(absl::string_view token);

  // Calls OfFiles if any file is named, else OfToken or, without `tls`, OfTokenInClear.
  //
  // Errors: as theirs.
  //   InvalidArgument - files are named, and `tls` is false.
  static absl::StatusOr<Trust> Of(absl::string_view token, const CertificateFiles& files, bool tls);

  bool none() const { return identity_ == nullptr; }
  // True if this was made of a token: each connection begins with a greeting in which both ends
  // show that they hold it (see token_greeting.h). So nobody else costs a server a TLS handshake.
  bool greets() const;
  // True if connections are not encrypted after the greeting.
  bool in_clear() const;

  // If this Trust was made of files, returns one of what they hold now; if that is not usable, logs
  // it and returns the former content. Otherwise returns this Trust. Make each call on the result
  // of the last one: then it costs next to nothing while no file has changed.
  Trust Renewed() const;

  // The rest requires !none().

  // The only job that this Trust gives access to, at a service that has the whole token; it cannot
  // be used to serve others. Unset: all jobs.
  const std::optional<std::string>& job() const;

  // They are none() if this was made of a token.
  const CertificateFiles& files() const;

  // The name that a client asks for and that a server's certificate holds. It is derived from the
  // token and visible on the wire, so it proves nothing. Empty with files: then a client asks for
  // the host.
  const std::string& server_name() const;
  // Eight hex digits that tell two tokens apart in logs; empty with files.
  const std::string& fingerprint() const;
  // In PEM: the authority's certificate, this process' certificate and its key. With files: what
  // they held when this was made. Empty in clear.
  const std::string& authority() const;
  const std::string& certificate() const;
  const std::string& key() const;

  // Returns the key that proves a greeting between holders of the token for job `job_id`; an empty
  // id means the token for all jobs. Requires greets(), and that job() is unset or this job.
  std::string GreetingKeyFor(absl::string_view job_id) const;

 private:
  struct Identity;
  static absl::StatusOr<Trust> OfJobToken(absl::string_view token);
  explicit Trust(std::shared_ptr<const Identity> identity);
  std::shared_ptr<const Identity> identity_;
};

}  // namespace hlaunch
