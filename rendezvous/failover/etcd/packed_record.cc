// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/etcd/packed_record.h"

#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"
#include "rendezvous/rpc/journal_format.h"

namespace hlaunch {
namespace {

constexpr char kMagic[] = "hlaunch-packed";
constexpr int kFormat = 1;
constexpr size_t kLongestHeader = 64;
constexpr size_t kMostBytes = size_t{64} << 20;  // The most, whatever a damaged header says.

bool IsOfLastRound(const MemberRecord& member, const JobRecord& record) {
  return member.told == record.round && record.round > 0;
}

// Returns true if each member of the last round holds the rank that it has in that round, so that
// the rank need not be stored twice. Half of a large record are node ids, which do not compress.
bool MembersHoldTheirRanks(const JobRecord& record) {
  return std::all_of(record.members.begin(), record.members.end(), [&](const auto& member) {
    const auto held = record.held_ranks.find(member.info.node_id);
    return !IsOfLastRound(member, record) ||
           (held != record.held_ranks.end() && held->second == member.node_rank);
  });
}

JobRecord WithoutRanksOfMembers(JobRecord record) {
  for (const MemberRecord& member : record.members) {
    if (IsOfLastRound(member, record)) record.held_ranks.erase(member.info.node_id);
  }
  return record;
}

void AddRanksOfMembers(JobRecord& record) {
  for (const MemberRecord& member : record.members) {
    if (IsOfLastRound(member, record)) record.held_ranks[member.info.node_id] = member.node_rank;
  }
}

}  // namespace

std::string PackRecord(const JobRecord& record) {
  const bool once = MembersHoldTheirRanks(record);
  const std::string plain = EncodeRecord(once ? WithoutRanksOfMembers(record) : record);
  std::string packed =
      absl::StrCat(kMagic, " ", kFormat, " ", plain.size(), once ? " once" : " twice", "\n");
  const size_t header = packed.size();
  uLongf size = ::compressBound(plain.size());
  packed.resize(header + size);
  const int done =
      ::compress2(reinterpret_cast<Bytef*>(packed.data() + header), &size,
                  reinterpret_cast<const Bytef*>(plain.data()), plain.size(), Z_BEST_SPEED);
  HLAUNCH_CHECK(done == Z_OK);
  packed.resize(header + size);
  return packed;
}

absl::StatusOr<JobRecord> UnpackRecord(absl::string_view packed) {
  const size_t end = packed.substr(0, kLongestHeader).find('\n');
  if (end == packed.npos) return absl::DataLossError("it has no header");
  const std::vector<absl::string_view> words = absl::StrSplit(packed.substr(0, end), ' ');
  int format = 0;
  uLongf size = 0;
  if (words.size() < 2 || words[0] != kMagic || !absl::SimpleAtoi(words[1], &format)) {
    return absl::DataLossError("it does not begin like a record of hlaunch");
  }
  if (format != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has format ", format, ", and this hlaunch ", "reads ", kFormat));
  }
  const bool once = words.back() == "once";
  if (words.size() != 4 || !absl::SimpleAtoi(words[2], &size) || size > kMostBytes ||
      !(once || words[3] == "twice")) {
    return absl::DataLossError("its header is damaged");
  }
  const absl::string_view rest = packed.substr(end + 1);
  std::string plain(size, '\0');
  uLongf got = size;
  const int done = ::uncompress(reinterpret_cast<Bytef*>(plain.data()), &got,
                                reinterpret_cast<const Bytef*>(rest.data()), rest.size());
  if (done != Z_OK || got != size) return absl::DataLossError("it is damaged");
  HLAUNCH_ASSIGN_OR_RETURN(JobRecord record, DecodeRecord(plain));
  if (once) AddRanksOfMembers(record);
  return record;
}

}  // namespace hlaunch
