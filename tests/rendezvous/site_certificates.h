// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "rendezvous/net/trust/certificate.h"
#include "rendezvous/net/trust/certificate_files.h"

namespace hlaunch {

// Replaces the file by a rename, as programs that renew certificates do.
inline void WriteFile(const std::string& path, const std::string& content, mode_t mode = 0600) {
  const std::string fresh = path + ".new";
  std::ofstream(fresh) << content;
  EXPECT_EQ(::chmod(fresh.c_str(), mode), 0);
  EXPECT_EQ(std::rename(fresh.c_str(), path.c_str()), 0);
}

// A site's authority, which signs certificates and writes them to files. A value.
class SiteAuthority {
 public:
  SiteAuthority()
      : key_(NewKey()),
        certificate_(
            Sign(key_.get(), {"a site", "critical,keyCertSign", ""}, nullptr, key_.get())) {}

  // Files for `host`, in the temporary folder, whose names begin with `name`.
  CertificateFiles Write(const std::string& name, const std::string& host = "localhost") const {
    return Write(name, {"a host", "critical,digitalSignature", host});
  }

  CertificateFiles Write(const std::string& name, const CertificateText& text) const {
    const std::string path = absl::StrCat(testing::TempDir(), name, ".", ::getpid());
    const Key own = NewKey();
    WriteFile(path + ".crt", PemOf(Sign(own.get(), text, certificate_.get(), key_.get()).get()));
    WriteFile(path + ".key", PemOf(own.get()));
    WriteFile(path + ".ca", PemOf(certificate_.get()));
    return {path + ".crt", path + ".key", path + ".ca"};
  }

 private:
  Key key_;
  Certificate certificate_;
};

}  // namespace hlaunch
