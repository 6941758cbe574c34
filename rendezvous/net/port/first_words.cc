// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/first_words.h"

#include <optional>
#include <utility>

#include "rendezvous/net/trust/token_greeting.h"

namespace hlaunch {
namespace {

constexpr char kHandshakeRecord = 0x16;
constexpr size_t kRecordHead = 5;  // Type, version, length.
constexpr size_t kClientHello = 1;
constexpr size_t kVersionAndRandom = 2 + 32;
constexpr size_t kServerNameExtension = 0;
constexpr size_t kHostName = 0;

// Takes bytes off the front. If too few are left, all further results are empty or 0.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  absl::string_view Take(size_t size) {
    if (size > bytes_.size()) {
      bytes_ = {};
      failed_ = true;
      return {};
    }
    const absl::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  // Returns a number of `size` bytes, the highest byte first.
  size_t Number(size_t size) {
    size_t number = 0;
    for (const char byte : Take(size)) number = number << 8 | static_cast<unsigned char>(byte);
    return number;
  }

  // Returns a vector, which follows its own length; the length has `size` bytes.
  absl::string_view Vector(size_t size) { return Take(Number(size)); }

  bool empty() const { return bytes_.empty(); }
  bool failed() const { return failed_; }

 private:
  absl::string_view bytes_;
  bool failed_ = false;
};

std::string HostNameOf(absl::string_view server_name_extension) {
  Reader list(Reader(server_name_extension).Vector(2));
  while (!list.empty()) {
    const size_t kind = list.Number(1);
    const absl::string_view name = list.Vector(2);
    if (kind == kHostName) return std::string(name);
  }
  return "";
}

// Returns the server name in the first handshake message of a record; nothing if that is not a
// whole ClientHello.
std::optional<std::string> ServerNameOf(absl::string_view record) {
  Reader message(record);
  if (message.Number(1) != kClientHello) return std::nullopt;
  Reader hello(message.Vector(3));
  hello.Take(kVersionAndRandom);
  hello.Vector(1);  // Session.
  hello.Vector(2);  // Cipher suites.
  hello.Vector(1);  // Compression methods.
  if (message.failed() || hello.failed()) return std::nullopt;
  Reader extensions(hello.empty() ? absl::string_view() : hello.Vector(2));
  while (!extensions.empty()) {
    const size_t kind = extensions.Number(2);
    const absl::string_view content = extensions.Vector(2);
    if (kind == kServerNameExtension) return HostNameOf(content);
  }
  return "";
}

}  // namespace

FirstWords ReadFirstWords(absl::string_view bytes) {
  FirstWords words;
  if (bytes.empty()) return words;
  if (TokenHello hello = ReadHello(bytes); hello.kind != TokenHello::Kind::kNone) {
    const bool whole = hello.kind == TokenHello::Kind::kWhole;
    return {whole ? FirstWords::Kind::kGreeting : FirstWords::Kind::kMore, hello.size,
            std::move(hello.server_name), hello.encrypts};
  }
  words.kind = bytes[0] == 'P' ? FirstWords::Kind::kHttp2 : FirstWords::Kind::kOther;
  if (bytes[0] != kHandshakeRecord) return words;
  Reader head(bytes.substr(0, kRecordHead));
  head.Take(3);
  words.needed = bytes.size() < kRecordHead ? kRecordHead : kRecordHead + head.Number(2);
  if (words.needed > kMaxFirstWords) return words;
  if (bytes.size() < words.needed) {
    words.kind = FirstWords::Kind::kMore;
    return words;
  }
  const auto name = ServerNameOf(bytes.substr(kRecordHead, words.needed - kRecordHead));
  if (!name) return words;
  words.kind = FirstWords::Kind::kTls;
  words.server_name = *name;
  return words;
}

}  // namespace hlaunch
