// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/sealed_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/trust/certificate.h"
#include "rendezvous/net/trust/derived_keys.h"

namespace hlaunch {
namespace {

constexpr char kStreamsLabel[] = "store streams";
constexpr size_t kStreamKeyBytes = 32;
constexpr absl::string_view kIdentity = "hlaunch store streams v1";  // It is seen on the wire.
constexpr unsigned char kSuiteNumber[] = {0x13, 0x01};               // The number of kSuite.
constexpr char kSuite[] = "TLS_AES_128_GCM_SHA256";
constexpr size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr size_t kRecordExtra = 64;  // The most that sealing adds to a record.
constexpr size_t kPiece = 4 * kRecord;

using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Connection = std::unique_ptr<SSL, Freed<SSL_free>>;
using Method = std::unique_ptr<BIO_METHOD, Freed<BIO_meth_free>>;

// OpenSSL reads from and writes to these directly, without a copy.
struct Ends {
  absl::string_view in;
  std::string* out = nullptr;
};

Ends& EndsOf(BIO* bio) { return *static_cast<Ends*>(BIO_get_data(bio)); }

int ReadIn(BIO* bio, char* to, int size) {
  absl::string_view& in = EndsOf(bio).in;
  BIO_clear_retry_flags(bio);
  if (in.empty()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const size_t taken = in.copy(to, static_cast<size_t>(size));
  in.remove_prefix(taken);
  return static_cast<int>(taken);
}

int WriteOut(BIO* bio, const char* from, int size) {
  EndsOf(bio).out->append(from, static_cast<size_t>(size));
  return size;
}

long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

Method MakeMethod() {
  Method method(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "hlaunch"));
  if (method == nullptr || !BIO_meth_set_read(method.get(), ReadIn) ||
      !BIO_meth_set_write(method.get(), WriteOut) || !BIO_meth_set_ctrl(method.get(), Control)) {
    return nullptr;
  }
  return method;
}

const std::string& KeyOf(SSL* ssl) { return *static_cast<std::string*>(SSL_get_app_data(ssl)); }

// Returns a session with the key, as OpenSSL wants a pre-shared key; null if OpenSSL refuses.
SSL_SESSION* SessionOfKey(SSL* ssl) {
  const std::string& key = KeyOf(ssl);
  const SSL_CIPHER* suite = SSL_CIPHER_find(ssl, kSuiteNumber);
  SSL_SESSION* session = SSL_SESSION_new();
  if (session == nullptr || suite == nullptr ||
      !SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                   key.size()) ||
      !SSL_SESSION_set_cipher(session, suite) ||
      !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION)) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

int UseKey(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* size,
           SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *size = kIdentity.size();
  *session = SessionOfKey(ssl);
  return *session != nullptr;
}

int FindKey(SSL* ssl, const unsigned char* identity, size_t size, SSL_SESSION** session) {
  const bool known = size == kIdentity.size() && memcmp(identity, kIdentity.data(), size) == 0;
  *session = known ? SessionOfKey(ssl) : nullptr;
  return !known || *session != nullptr;
}

// The server has no certificate and the client trusts no authority, so only a handshake with the
// key is possible.
Context MakeContext(SealedStream::Side side) {
  const bool client = side == SealedStream::Side::kClient;
  Context context(SSL_CTX_new(client ? TLS_client_method() : TLS_server_method()));
  if (context == nullptr || !SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) ||
      !SSL_CTX_set_ciphersuites(context.get(), kSuite) ||
      !SSL_CTX_set_num_tickets(context.get(), 0)) {
    return nullptr;
  }
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  if (client) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_psk_use_session_callback(context.get(), UseKey);
  } else {
    SSL_CTX_set_psk_find_session_callback(context.get(), FindKey);
  }
  return context;
}

}  // namespace

std::string SealingKey(absl::string_view round_secret) {
  return round_secret.empty() ? "" : DeriveBytes(round_secret, kStreamsLabel, kStreamKeyBytes);
}

// The members are freed from the last to the first: each needs those above it.
struct SealedStream::State {
  std::string key;
  Ends ends;
  Method method;
  Context context;
  Connection ssl;
};

absl::StatusOr<std::unique_ptr<SealedStream>> SealedStream::Make(Side side, absl::string_view key) {
  if (key.size() != kStreamKeyBytes) {
    return absl::InvalidArgumentError("there is no key to seal with");
  }
  auto state = std::make_unique<State>();
  state->key = std::string(key);
  state->method = MakeMethod();
  state->context = MakeContext(side);
  if (state->context != nullptr) state->ssl.reset(SSL_new(state->context.get()));
  BIO* bio = state->method != nullptr ? BIO_new(state->method.get()) : nullptr;
  if (state->ssl == nullptr || bio == nullptr) {
    BIO_free(bio);
    return OpenSslRefused("begin a sealed stream (TLS 1.3)");
  }
  BIO_set_data(bio, &state->ends);
  BIO_set_init(bio, 1);
  SSL_set_bio(state->ssl.get(), bio, bio);  // `ssl` owns `bio` from now on.
  SSL_set_app_data(state->ssl.get(), &state->key);
  if (side == Side::kClient) {
    SSL_set_connect_state(state->ssl.get());
  } else {
    SSL_set_accept_state(state->ssl.get());
  }
  return std::unique_ptr<SealedStream>(new SealedStream(std::move(state)));
}

SealedStream::SealedStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
SealedStream::~SealedStream() = default;

// Returns the error of a call that returned `result`; OK if more bytes are needed.
absl::Status SealedStream::Failure(int result) const {
  switch (SSL_get_error(state_->ssl.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return absl::OkStatus();
    case SSL_ERROR_ZERO_RETURN:
      return absl::UnavailableError("it ended the stream");
    default:
      break;
  }
  const absl::Status refused = OpenSslRefused("go on");
  return absl::PermissionDeniedError(
      absl::StrCat(established_ ? "what it sent is not whole or not its own: "
                                : "it has not the secret of this round, or does not encrypt: ",
                   refused.message()));
}

absl::Status SealedStream::Handshake() {
  const int done = SSL_do_handshake(state_->ssl.get());
  if (done != 1) return Failure(done);
  if (!SSL_session_reused(state_->ssl.get())) {  // The key was not used.
    return absl::PermissionDeniedError("it does not encrypt with the secret of this round");
  }
  established_ = true;
  return absl::OkStatus();
}

absl::Status SealedStream::Take(absl::string_view bytes, std::string* wire,
                                absl::FunctionRef<absl::Status(absl::string_view piece)> take) {
  ERR_clear_error();
  state_->ends = {bytes, wire};
  if (!established_) {
    const absl::Status status = Handshake();
    if (!status.ok() || !established_) return status;
  }
  std::array<char, kPiece> piece;
  while (true) {
    size_t size = 0;
    const absl::Status status = Fill(piece.data(), piece.size(), &size);
    if (size > 0) HLAUNCH_RETURN_IF_ERROR(take(absl::string_view(piece.data(), size)));
    if (!status.ok() || size < piece.size()) return status;
    state_->ends.out = wire;  // `take` may have called Put.
  }
}

// Reads several records into one piece: each piece costs the receiver more than its bytes.
absl::Status SealedStream::Fill(char* to, size_t room, size_t* size) {
  while (*size < room) {
    const int got = SSL_read(state_->ssl.get(), to + *size, static_cast<int>(room - *size));
    if (got <= 0) return Failure(got);
    *size += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status SealedStream::Put(absl::string_view plain, std::string* wire) {
  ERR_clear_error();
  state_->ends.out = wire;
  const size_t needed = wire->size() + plain.size() + (plain.size() / kRecord + 1) * kRecordExtra;
  if (needed > wire->capacity()) wire->reserve(std::max(needed, 2 * wire->capacity()));
  size_t put = 0;
  if (plain.empty() || SSL_write_ex(state_->ssl.get(), plain.data(), plain.size(), &put) == 1) {
    return absl::OkStatus();
  }
  return OpenSslRefused("seal what is to be sent");
}

}  // namespace hlaunch
