// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/derived_keys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// One label for each use; a new way of deriving gets a new label.
constexpr char kSalt[] = "hlaunch token v1";
constexpr char kAuthorityLabel[] = "authority p-256";
constexpr char kNameLabel[] = "server name";
constexpr char kFingerprintLabel[] = "fingerprint";
constexpr char kJobsLabel[] = "jobs";
constexpr char kJobLabel[] = "job ";  // The job's id follows.
constexpr char kGreetingLabel[] = "greeting in clear";
constexpr size_t kSecretBytes = 32;
constexpr size_t kPointBytes = 65;  // Uncompressed.

using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_clear_free>>;
using NumberContext = std::unique_ptr<BN_CTX, Freed<BN_CTX_free>>;
using Group = std::unique_ptr<EC_GROUP, Freed<EC_GROUP_free>>;
using Point = std::unique_ptr<EC_POINT, Freed<EC_POINT_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;

}  // namespace

std::string DeriveBytes(absl::string_view secret, absl::string_view label, size_t size) {
  const KeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
  std::string out(size, '\0');
  const auto bytes = [](absl::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  const absl::string_view salt = kSalt;
  const bool derived =
      context != nullptr && EVP_PKEY_derive_init(context.get()) > 0 &&
      EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) > 0 &&
      EVP_PKEY_CTX_set1_hkdf_salt(context.get(), bytes(salt), static_cast<int>(salt.size())) > 0 &&
      EVP_PKEY_CTX_set1_hkdf_key(context.get(), bytes(secret), static_cast<int>(secret.size())) >
          0 &&
      EVP_PKEY_CTX_add1_hkdf_info(context.get(), bytes(label), static_cast<int>(label.size())) >
          0 &&
      EVP_PKEY_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size) > 0;
  return derived ? out : "";
}

std::string SecretOfJobs(absl::string_view token) {
  return DeriveBytes(token, kJobsLabel, kSecretBytes);
}

std::string SecretOfJob(absl::string_view secret_of_jobs, absl::string_view job_id) {
  return DeriveBytes(secret_of_jobs, absl::StrCat(kJobLabel, job_id), kSeedBytes);
}

std::string GreetingKeyOf(absl::string_view secret) {
  return DeriveBytes(secret, kGreetingLabel, kSecretBytes);
}

Key KeyOfSeed(absl::string_view seed) {
  const Group group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  const NumberContext work(BN_CTX_secure_new());
  if (group == nullptr || work == nullptr || seed.empty()) return nullptr;
  const Number d(BN_bin2bn(reinterpret_cast<const unsigned char*>(seed.data()),
                           static_cast<int>(seed.size()), nullptr));
  const Number last(BN_dup(EC_GROUP_get0_order(group.get())));
  const Point q(EC_POINT_new(group.get()));
  std::array<unsigned char, kPointBytes> point{};
  if (d == nullptr || last == nullptr || q == nullptr || !BN_sub_word(last.get(), 1) ||
      !BN_mod(d.get(), d.get(), last.get(), work.get()) || !BN_add_word(d.get(), 1)) {
    return nullptr;
  }
  BN_set_flags(d.get(), BN_FLG_CONSTTIME);
  if (!EC_POINT_mul(group.get(), q.get(), d.get(), nullptr, nullptr, work.get()) ||
      EC_POINT_point2oct(group.get(), q.get(), POINT_CONVERSION_UNCOMPRESSED, point.data(),
                         point.size(), work.get()) != point.size()) {
    return nullptr;
  }
  const Builder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      !OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME,
                                       SN_X9_62_prime256v1, 0) ||
      !OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, d.get()) ||
      !OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                        point.size())) {
    return nullptr;
  }
  const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) <= 0 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, params.get()) <= 0) {
    return nullptr;
  }
  return Key(key);
}

absl::StatusOr<DerivedKeys> DeriveKeys(absl::string_view token) {
  DerivedKeys made;
  const std::string name = DeriveBytes(token, kNameLabel, kNameBytes);
  if (name.empty()) return OpenSslRefused("derive keys (HKDF with SHA-256)");
  made.server_name = absl::StrCat(absl::BytesToHexString(name), ".hlaunch");
  made.fingerprint =
      absl::BytesToHexString(DeriveBytes(token, kFingerprintLabel, kFingerprintBytes));
  // The seed has 128 bits more than the order of P-256, so the remainder has next to no bias.
  std::string seed = DeriveBytes(token, kAuthorityLabel, kSeedBytes);
  made.authority = KeyOfSeed(seed);
  OPENSSL_cleanse(seed.data(), seed.size());
  if (made.authority == nullptr) return OpenSslRefused("make a key of P-256");
  return made;
}

Certificate AuthorityCertificate(EVP_PKEY* authority, EVP_PKEY* signer) {
  return Sign(authority, {"hlaunch job", "critical,keyCertSign", ""}, nullptr, signer);
}

}  // namespace hlaunch
