// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/cluster_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <string>

#include "rendezvous/net/trust/certificate.h"
#include "tests/rendezvous/certificate_time.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

constexpr std::time_t kUntil = kNow + kCertificateLife;

const Authority& OurAuthority() {
  static const Authority authority = *MakeAuthority(kNow);
  return authority;
}

std::string SignedFor(const std::string& host) {
  const auto request = MakeHostRequest(host);
  const auto made = SignHostRequest(OurAuthority(), request->request, host, kNow, kUntil);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.value_or("");
}

// OpenSSL's verdict on `certificate` at `now`, as TLS asks for it; "ok" if it is valid.
std::string Judged(const std::string& certificate_pem, const std::string& authority_pem,
                   int purpose, std::time_t now = kNow) {
  const Certificate certificate = CertificateIn(certificate_pem);
  const Certificate authority = CertificateIn(authority_pem);
  const std::unique_ptr<X509_STORE, Freed<X509_STORE_free>> store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), authority.get());
  const std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  X509_STORE_CTX_set_time(context.get(), 0, now);
  X509_verify_cert(context.get());
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

std::string RequestOf(EVP_PKEY* key, EVP_PKEY* signer) {
  const std::unique_ptr<X509_REQ, Freed<X509_REQ_free>> request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), key);
  X509_REQ_sign(request.get(), signer, EVP_sha256());
  const std::unique_ptr<BIO, Freed<BIO_free_all>> memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_REQ(memory.get(), request.get());
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

// Why this request gets no certificate.
std::string Refusal(const std::string& request) {
  const auto made = SignHostRequest(OurAuthority(), request, "node1", kNow, kUntil);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(made.status().message());
}

TEST(SignHostRequest, NamesTheHostAndItsDates) {
  const auto read = ReadHostCertificate(SignedFor("node-1.example_2"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->host, "node-1.example_2");
  EXPECT_EQ(read->issued, kNow);
  EXPECT_EQ(read->expires, kUntil);
}

TEST(SignHostRequest, TakesNamesThatAreTooLongForACommonName) {
  const std::string host(253, 'n');
  EXPECT_EQ(ReadHostCertificate(SignedFor(host))->host, host);
}

TEST(SignHostRequest, IsBelievedOfAClientOfThisClusterAlone) {
  const std::string made = SignedFor("node1");
  const std::string& ours = OurAuthority().certificate;
  EXPECT_EQ(Judged(made, ours, X509_PURPOSE_SSL_CLIENT), "ok");
  EXPECT_THAT(Judged(made, ours, X509_PURPOSE_SSL_SERVER), HasSubstr("purpose"));
  EXPECT_THAT(Judged(made, ours, X509_PURPOSE_SSL_CLIENT, kUntil + 1), HasSubstr("expired"));
  EXPECT_EQ(Judged(made, ours, X509_PURPOSE_SSL_CLIENT, kNow - kClockTolerance + 1), "ok");
  EXPECT_NE(Judged(made, MakeAuthority(kNow)->certificate, X509_PURPOSE_SSL_CLIENT), "ok");
}

TEST(SignHostRequest, TakesTheKeyAndNotTheNameOfTheRequest) {
  const auto request = MakeHostRequest("somebody-else");
  const auto made = SignHostRequest(OurAuthority(), request->request, "node1", kNow, kUntil);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(ReadHostCertificate(*made)->host, "node1");
  EXPECT_EQ(X509_check_private_key(CertificateIn(*made).get(), KeyIn(request->key).get()), 1);
}

TEST(SignHostRequest, RefusesWhatIsNotSignedByItsOwnKey) {
  EXPECT_THAT(Refusal(RequestOf(NewKey().get(), NewKey().get())), HasSubstr("not signed"));
}

TEST(SignHostRequest, RefusesOtherKindsOfKeys) {
  const Key rsa(EVP_RSA_gen(2048));
  EXPECT_THAT(Refusal(RequestOf(rsa.get(), rsa.get())), HasSubstr("not of P-256"));
  const Key other_curve(EVP_EC_gen("secp384r1"));
  EXPECT_THAT(Refusal(RequestOf(other_curve.get(), other_curve.get())), HasSubstr("not of P-256"));
}

TEST(SignHostRequest, RefusesWhatIsNoRequest) {
  EXPECT_THAT(Refusal(""), HasSubstr("cannot be read"));
  EXPECT_THAT(Refusal("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n"), HasSubstr("cannot be read"));
  EXPECT_THAT(Refusal(OurAuthority().certificate), HasSubstr("cannot be read"));
  EXPECT_THAT(Refusal(std::string(kMaxRequestBytes + 1, 'A')), HasSubstr("too long"));
}

TEST(SignHostRequest, RefusesNamesThatAreNoHosts) {
  const auto request = MakeHostRequest("node1");
  for (const char* host : {"", "-a", ".a", "Node", "a,URI:hlaunch-head", "a b", "a/b", "a\n"}) {
    EXPECT_EQ(SignHostRequest(OurAuthority(), request->request, host, kNow, kUntil).status().code(),
              absl::StatusCode::kInvalidArgument)
        << host;
  }
}

TEST(SignHostRequest, RefusesAnAuthorityThatIsNotWhole) {
  const Authority mixed = {OurAuthority().certificate, MakeAuthority(kNow)->key};
  const auto request = MakeHostRequest("node1");
  EXPECT_THAT(
      std::string(
          SignHostRequest(mixed, request->request, "node1", kNow, kUntil).status().message()),
      HasSubstr("not whole"));
}

TEST(MakeHeadIdentity, IsAServersAndNoHosts) {
  const auto head = MakeHeadIdentity(OurAuthority(), kNow);
  ASSERT_TRUE(head.ok()) << head.status();
  const std::string& ours = OurAuthority().certificate;
  EXPECT_EQ(Judged(head->certificate, ours, X509_PURPOSE_SSL_SERVER), "ok");
  EXPECT_NE(Judged(head->certificate, ours, X509_PURPOSE_SSL_CLIENT), "ok");
  EXPECT_TRUE(IsHeadCertificate(CertificateIn(head->certificate).get()));
  EXPECT_FALSE(ReadHostCertificate(head->certificate).ok());
}

TEST(IsHeadCertificate, NoStolenHostsCertificateIs) {
  EXPECT_FALSE(IsHeadCertificate(CertificateIn(SignedFor("node1")).get()));
  EXPECT_FALSE(IsHeadCertificate(CertificateIn(SignedFor("head.hlaunch")).get()));
  EXPECT_FALSE(IsHeadCertificate(CertificateIn(OurAuthority().certificate).get()));
}

TEST(ReadHostCertificate, RefusesOthers) {
  EXPECT_FALSE(ReadHostCertificate("").ok());
  EXPECT_FALSE(ReadHostCertificate(OurAuthority().certificate).ok());
  const Key key = NewKey();
  CertificateText text = {"a host", "critical,digitalSignature", "node1"};
  for (const char* uri : {"", "hlaunch-host:", "hlaunch-host:Node", "hlaunch-job:node1",
                          "hlaunch-host:a,URI:hlaunch-head", "hlaunch-host:a,URI:hlaunch-host:b"}) {
    text.uri = uri;
    const Certificate made = Sign(key.get(), text, nullptr, key.get());
    ASSERT_NE(made, nullptr);
    EXPECT_FALSE(ReadHostCertificate(made.get()).ok()) << uri;
    EXPECT_FALSE(IsHeadCertificate(made.get())) << uri;
  }
}

TEST(CheckHostIdentity, TakesWhatFitsTogetherAlone) {
  const auto request = MakeHostRequest("node1");
  const auto made = SignHostRequest(OurAuthority(), request->request, "node1", kNow, kUntil);
  const HostIdentity good = {OurAuthority().certificate, *made, request->key};
  EXPECT_EQ(CheckHostIdentity(good)->host, "node1");
  HostIdentity wrong = good;
  wrong.authority = MakeAuthority(kNow)->certificate;
  EXPECT_FALSE(CheckHostIdentity(wrong).ok());
  wrong = good;
  wrong.key = MakeHostRequest("node1")->key;
  EXPECT_FALSE(CheckHostIdentity(wrong).ok());
  wrong = *MakeHeadIdentity(OurAuthority(), kNow);
  EXPECT_FALSE(CheckHostIdentity(wrong).ok());
  EXPECT_FALSE(CheckHostIdentity({}).ok());
}

TEST(KeyPinOf, IsTheAuthoritysAlone) {
  const std::string pin = KeyPinOf(OurAuthority().certificate);
  EXPECT_THAT(pin, testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(pin, KeyPinOf(CertificateIn(OurAuthority().certificate).get()));
  EXPECT_NE(pin, KeyPinOf(MakeAuthority(kNow)->certificate));
  EXPECT_EQ(KeyPinOf("nothing"), "");
}

}  // namespace
}  // namespace hlaunch
