// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/trust/certificate_files.h"

namespace hlaunch {

// What a process needs to prove to others that it holds a job's token, and to see that they do:
// mutual TLS without files. Every holder derives the same certificate authority's key from the
// token (HKDF-SHA256, RFC 5869, to a P-256 key) and signs a certificate of its own with it, whose
// key is random. All holders are equal: this proves membership, never who somebody is. Or it is a
// site's own certificates, from files, for the same mutual TLS; or a token without TLS.
//
// A value that is shared, not copied; immutable, thread-safe.
class Trust {
 public:
  // None: connections are in clear and anybody may come.
  Trust() = default;

  // None if `token` is empty. Else it takes about a millisecond. The token may be one for a job
  // alone, see MakeJobToken.
  //
  // Errors:
  //   InvalidArgument - as CheckTokenText.
  //   Internal - OpenSSL refuses, as under a policy without P-256 or SHA-256; the message has its
  //       words.
  static absl::StatusOr<Trust> OfToken(absl::string_view token);

  // What `files` hold. A key that others can read is logged.
  //
  // Errors: as ReadCertificates.
  static absl::StatusOr<Trust> OfFiles(const CertificateFiles& files);

  // None if `token` is empty. Else for connections in clear, each of which begins with a greeting
  // in which both ends show that they hold the token: see token_greeting.h.
  //
  // Errors: as OfToken.
  static absl::StatusOr<Trust> OfTokenInClear(absl::string_view token);

  // OfFiles if any is named, else OfToken or, without `tls`, OfTokenInClear.
  //
  // Errors: as theirs.
  //   InvalidArgument - there are files, and no `tls`.
  static absl::StatusOr<Trust> Of(absl::string_view token, const CertificateFiles& files, bool tls);

  bool none() const { return identity_ == nullptr; }
  // Whether connections begin with a greeting and are not encrypted.
  bool in_clear() const;

  // What the files hold by now, for one that was made of files; this one otherwise, and what was
  // there before where they hold nothing that can be used, which is logged. It costs next to
  // nothing while no file has changed, if the next call is made on what this one returned.
  Trust Renewed() const;

  // The rest requires !none().

  // The only job that this gives a part in, of a service that has the whole token; it cannot serve
  // others. Unset: all jobs.
  const std::optional<std::string>& job() const;

  // None if this was made of a token.
  const CertificateFiles& files() const;

  // What a client asks for and a server's certificate says: derived from the token, so who does not
  // hold it cannot ask. It is seen on the wire. Empty with files: a client asks for the host.
  const std::string& server_name() const;
  // Eight hex digits that tell two tokens apart in logs; empty with files.
  const std::string& fingerprint() const;
  // PEM: the authority's certificate, this process' certificate and its key. With files: when this
  // was made. Empty in clear.
  const std::string& authority() const;
  const std::string& certificate() const;
  const std::string& key() const;

  // What a greeting between holders of the token for job `job_id` is proved with; empty: of that
  // for all jobs. Requires in_clear(), and that job() is unset or this job.
  std::string GreetingKeyFor(absl::string_view job_id) const;

 private:
  struct Identity;
  static absl::StatusOr<Trust> OfJobToken(absl::string_view token);
  explicit Trust(std::shared_ptr<const Identity> identity);
  std::shared_ptr<const Identity> identity_;
};

}  // namespace hlaunch
