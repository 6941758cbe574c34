// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/sealed_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>

#include "rendezvous/net/trust/certificate.h"

namespace hlaunch {
namespace {

using Side = SealedStream::Side;
using testing::HasSubstr;
using testing::Not;

const std::string& OurKey() {
  static const std::string key = SealingKey(std::string(64, 'a'));
  return key;
}

// One end of a stream, with what it has sent and what it was told.
struct End {
  explicit End(Side side, absl::string_view key = OurKey())
      : stream(*SealedStream::Make(side, key)) {
    if (side == Side::kClient) Take("");
  }

  void Take(absl::string_view bytes) {
    if (!status.ok()) return;
    status = stream->Take(bytes, &wire, [this](absl::string_view piece) {
      heard.append(piece.data(), piece.size());
      return absl::OkStatus();
    });
  }
  void Put(absl::string_view plain) { ASSERT_TRUE(stream->Put(plain, &wire).ok()); }

  std::unique_ptr<SealedStream> stream;
  std::string wire = {};
  std::string heard = {};
  absl::Status status = absl::OkStatus();
};

// Carries the bytes of both ends in pieces of `size` until none are left. Returns all of them.
std::string Carry(End& one, End& other, size_t size = 1 << 20) {
  std::string seen;
  const auto move = [&](End& from, End& to) {
    const std::string bytes = std::exchange(from.wire, "");
    for (size_t i = 0; i < bytes.size(); i += size)
      to.Take(absl::string_view(bytes).substr(i, size));
    seen += bytes;
  };
  while (!one.wire.empty() || !other.wire.empty()) {
    move(one, other);
    move(other, one);
  }
  return seen;
}

TEST(SealingKey, DependsOnTheRoundsSecretAndIsNotIt) {
  EXPECT_EQ(SealingKey(""), "");
  EXPECT_EQ(OurKey().size(), 32);
  EXPECT_EQ(SealingKey(std::string(64, 'a')), OurKey());
  EXPECT_NE(SealingKey(std::string(64, 'b')), OurKey());
}

TEST(SealedStream, CarriesBytesThatNobodyReadsOnTheWay) {
  for (const size_t size : {size_t{1}, size_t{7}, size_t{1} << 20}) {
    End client(Side::kClient), server(Side::kServer);
    Carry(client, server, size);
    ASSERT_TRUE(client.stream->established() && server.stream->established()) << client.status;
    client.Put("a key of ours");
    server.Put("a value of ours");
    server.Put(std::string(100'000, 'x'));
    const std::string seen = Carry(client, server, size);
    EXPECT_EQ(server.heard, "a key of ours");
    EXPECT_EQ(client.heard, "a value of ours" + std::string(100'000, 'x'));
    EXPECT_THAT(seen, Not(HasSubstr("of ours")));
    EXPECT_THAT(seen, Not(HasSubstr("xxxxxxxx")));
  }
}

TEST(SealedStream, RefusesAnotherKeyAndBothSidesSayWhy) {
  End client(Side::kClient), server(Side::kServer, SealingKey("another"));
  Carry(client, server);
  for (const End* end : {&client, &server}) {
    EXPECT_FALSE(end->stream->established());
    EXPECT_TRUE(absl::IsPermissionDenied(end->status));
    EXPECT_THAT(std::string(end->status.message()),
                HasSubstr("it has not the secret of this round"));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(SealedStream::Make(Side::kClient, "").status()));
}

TEST(SealedStream, TakesNothingThatWasRecorded) {
  End client(Side::kClient), server(Side::kServer);
  std::string recorded = client.wire;
  server.Take(std::exchange(client.wire, ""));
  client.Take(std::exchange(server.wire, ""));
  client.Put("once");
  recorded += client.wire;
  End other(Side::kServer);
  other.Take(recorded);
  EXPECT_FALSE(other.stream->established());
  EXPECT_TRUE(absl::IsPermissionDenied(other.status)) << other.status;
  EXPECT_EQ(other.heard, "");
}

TEST(SealedStream, TakesNothingThatItSentItself) {
  End client(Side::kClient);
  client.Take(std::exchange(client.wire, ""));
  EXPECT_TRUE(absl::IsPermissionDenied(client.status)) << client.status;
}

TEST(SealedStream, EndsWhereAByteWasAltered) {
  End client(Side::kClient), server(Side::kServer);
  Carry(client, server);
  client.Put("first");
  client.wire.back() ^= 1;
  Carry(client, server);
  EXPECT_TRUE(absl::IsPermissionDenied(server.status)) << server.status;
  EXPECT_EQ(server.heard, "");
}

TEST(SealedStream, RefusesWhatIsNoTls) {
  End server(Side::kServer);
  server.Take("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::IsPermissionDenied(server.status)) << server.status;
}

// A peer that speaks TLS but does not know the key. `context` is its own, with or without a
// certificate.
struct Stranger {
  Stranger(SSL_CTX* context, Side side) : ssl(SSL_new(context)) {
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    side == Side::kClient ? SSL_set_connect_state(ssl) : SSL_set_accept_state(ssl);
  }
  ~Stranger() { SSL_free(ssl); }

  std::string Answer(absl::string_view bytes) {
    BIO_write(SSL_get_rbio(ssl), bytes.data(), static_cast<int>(bytes.size()));
    SSL_do_handshake(ssl);
    char* sent = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &sent);
    std::string answer(sent, static_cast<size_t>(size));
    BIO_reset(SSL_get_wbio(ssl));
    return answer;
  }

  SSL* ssl;
};

TEST(SealedStream, AClientBelievesNoServerThatHasACertificateInsteadOfTheKey) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  const Key key = NewKey();
  const Certificate certificate =
      Sign(key.get(), {"hlaunch", "critical,keyCertSign", ""}, nullptr, key.get());
  SSL_CTX_use_certificate(context, certificate.get());
  SSL_CTX_use_PrivateKey(context, key.get());
  {
    End client(Side::kClient);
    Stranger server(context, Side::kServer);
    for (int i = 0; i < 4; ++i) client.Take(server.Answer(std::exchange(client.wire, "")));
    EXPECT_FALSE(client.stream->established());
    EXPECT_TRUE(absl::IsPermissionDenied(client.status)) << client.status;
  }
  SSL_CTX_free(context);
}

TEST(SealedStream, AServerTakesNoClientWithoutTheKey) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  {
    End server(Side::kServer);
    Stranger client(context, Side::kClient);
    for (int i = 0; i < 4; ++i) server.Take(client.Answer(std::exchange(server.wire, "")));
    EXPECT_FALSE(server.stream->established());
    EXPECT_TRUE(absl::IsPermissionDenied(server.status)) << server.status;
  }
  SSL_CTX_free(context);
}

}  // namespace
}  // namespace hlaunch
