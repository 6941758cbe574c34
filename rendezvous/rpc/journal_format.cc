// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/journal_format.h"

#include <zlib.h>

#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"
#include "rendezvous/rpc/record_convert.h"

namespace hlaunch {
namespace {

constexpr char kMagic[] = "hlaunch-job";
constexpr int kFormat = 1;
constexpr size_t kLongestHeader = 64;
constexpr size_t kLongestName = 200;

// The checksum covers the version and the length, too.
uint32_t Checksum(int format, absl::string_view payload) {
  const std::string header = absl::StrCat(format, " ", payload.size(), "\n");
  uLong crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size()));
  crc = ::crc32(crc, reinterpret_cast<const Bytef*>(payload.data()),
                static_cast<uInt>(payload.size()));
  return static_cast<uint32_t>(crc);
}

std::string HeaderLine(int format, uint32_t checksum, size_t length) {
  return absl::StrFormat("%s %d %08x %d\n", kMagic, format, checksum, length);
}

struct Header {
  int format = 0;
  uint32_t checksum = 0;
  size_t length = 0;
  size_t size = 0;  // The size of the line with its newline.
};

absl::StatusOr<Header> ParseHeader(absl::string_view content) {
  const size_t end = content.substr(0, kLongestHeader).find('\n');
  if (end == absl::string_view::npos) return absl::DataLossError("it has no header");
  const std::vector<absl::string_view> words = absl::StrSplit(content.substr(0, end), ' ');
  Header header;
  header.size = end + 1;
  if (words.size() != 4 || words[0] != kMagic || !absl::SimpleAtoi(words[1], &header.format) ||
      words[2].size() != 8 || !absl::SimpleHexAtoi(words[2], &header.checksum) ||
      !absl::SimpleAtoi(words[3], &header.length)) {
    return absl::DataLossError("it does not begin like a record of hlaunch");
  }
  if (content.substr(0, header.size) !=
      HeaderLine(header.format, header.checksum, header.length)) {  // "0A" for "0a" is damage, too.
    return absl::DataLossError("its header is not as hlaunch writes it");
  }
  return header;
}

}  // namespace

std::string EncodeRecord(const JobRecord& record) {
  std::string payload;
  ToProto(record).SerializeToString(&payload);
  return absl::StrCat(HeaderLine(kFormat, Checksum(kFormat, payload), payload.size()), payload);
}

absl::StatusOr<JobRecord> DecodeRecord(absl::string_view content) {
  HLAUNCH_ASSIGN_OR_RETURN(const Header header, ParseHeader(content));
  const absl::string_view payload = content.substr(header.size);
  if (payload.size() != header.length) {
    return absl::DataLossError(
        absl::StrCat("it has ", payload.size(), " bytes and should have ", header.length));
  }
  if (Checksum(header.format, payload) != header.checksum) {
    return absl::DataLossError("its checksum is wrong");
  }
  if (header.format != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it has format ", header.format, ", and this version of hlaunch knows ", kFormat));
  }
  v1::JobRecord message;
  if (!message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return absl::DataLossError("it cannot be parsed");
  }
  absl::StatusOr<JobRecord> record = FromProto(message);
  if (record.ok() || absl::IsFailedPrecondition(record.status())) return record;
  return absl::DataLossError(record.status().message());
}

std::string RecordFileName(absl::string_view job_id) {
  std::string name;
  uint64_t hash = 14695981039346656037u;  // FNV-1a.
  for (const char c : job_id) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
                       (c == '.' && !name.empty());
    if (plain) {
      name += c;
    } else {
      absl::StrAppendFormat(&name, "%%%02x", static_cast<unsigned char>(c));
    }
  }
  if (name.size() > kLongestName) {
    name = absl::StrFormat("%s~%016x", name.substr(0, kLongestName - 17), hash);
  }
  return absl::StrCat(name, kRecordSuffix);
}

}  // namespace hlaunch
