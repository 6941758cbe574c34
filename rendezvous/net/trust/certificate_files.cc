// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/certificate_files.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/base/user_files.h"
#include "rendezvous/net/trust/certificate.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

absl::Status Refused(absl::string_view option, const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(option, " ", path, ": ", why));
}

// A group may read a file of root: PostgreSQL has the same rule.
bool OthersCanRead(const struct stat& file) {
  const mode_t closed = file.st_uid == 0 ? S_IRWXO | S_IWGRP | S_IXGRP : S_IRWXO | S_IRWXG;
  return (file.st_mode & closed) != 0;
}

absl::StatusOr<std::string> ReadFile(absl::string_view option, const std::string& path,
                                     struct stat* found) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is missing: --tls-cert, --tls-key and --tls-ca are given together"));
  }
  const UniqueFd file = OpenToRead(path);
  if (!file.valid() || ::fstat(file.get(), found) != 0) {
    return Refused(option, path, absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  if (!S_ISREG(found->st_mode)) return Refused(option, path, "is no file");
  absl::StatusOr<std::string> content = ReadOpened(file, path, kMaxBytes);
  if (absl::IsResourceExhausted(content.status())) {
    return Refused(option, path, "is longer than a mebibyte");
  }
  if (!content.ok()) {
    return Refused(option, path, absl::StrCat("cannot be read: ", content.status().message()));
  }
  return content;
}

// "2026-11-23 06:00:00 UTC".
std::string Text(const ASN1_TIME* time) {
  std::tm parts = {};
  std::array<char, 32> text{};
  if (::ASN1_TIME_to_tm(time, &parts) != 1) return "a date that cannot be read";
  return std::string(text.data(),
                     std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts));
}

absl::Status CheckDates(const CertificateFiles& files, const X509* certificate, std::time_t now) {
  if (X509_cmp_time(X509_get0_notAfter(certificate), &now) < 0) {
    return Refused("--tls-cert", files.certificate,
                   absl::StrCat("the certificate expired on ",
                                Text(X509_get0_notAfter(certificate)), "; put a new one there"));
  }
  if (X509_cmp_time(X509_get0_notBefore(certificate), &now) > 0) {
    return Refused(
        "--tls-cert", files.certificate,
        absl::StrCat("the certificate is not valid before ", Text(X509_get0_notBefore(certificate)),
                     "; is this host's clock right?"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Certificates> ReadCertificates(const CertificateFiles& files, std::time_t now) {
  Certificates read;
  struct stat facts = {};
  HLAUNCH_ASSIGN_OR_RETURN(read.certificate, ReadFile("--tls-cert", files.certificate, &facts));
  HLAUNCH_ASSIGN_OR_RETURN(read.authority, ReadFile("--tls-ca", files.authority, &facts));
  HLAUNCH_ASSIGN_OR_RETURN(read.key, ReadFile("--tls-key", files.key, &facts));
  if (OthersCanRead(facts)) {
    read.warning = absl::StrCat("--tls-key ", files.key,
                                ": can be read by other users; run: chmod 600 ", files.key);
  }
  constexpr char kNoCertificate[] = "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)";
  const Certificate certificate = CertificateIn(read.certificate);
  if (certificate == nullptr) return Refused("--tls-cert", files.certificate, kNoCertificate);
  const Key key = KeyIn(read.key);
  if (key == nullptr) {
    return Refused("--tls-key", files.key,
                   "holds no private key in PEM (-----BEGIN PRIVATE KEY-----), or one that asks "
                   "for a pass phrase");
  }
  if (CertificateIn(read.authority) == nullptr) {
    return Refused("--tls-ca", files.authority, kNoCertificate);
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return Refused("--tls-key", files.key,
                   absl::StrCat("is not the key of the certificate in ", files.certificate));
  }
  HLAUNCH_RETURN_IF_ERROR(CheckDates(files, certificate.get(), now));
  return read;
}

std::string MarkOf(const CertificateFiles& files) {
  std::string mark;
  for (const std::string& path : {files.certificate, files.key, files.authority}) {
    struct stat facts = {};
    if (::stat(path.c_str(), &facts) != 0) facts = {};
    absl::StrAppend(&mark, facts.st_dev, " ", facts.st_ino, " ", facts.st_size, " ",
                    facts.st_ctim.tv_sec, " ", facts.st_ctim.tv_nsec, "\n");
  }
  return mark;
}

}  // namespace hlaunch
