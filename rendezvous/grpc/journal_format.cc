// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/grpc/journal_format.h"

#include <zlib.h>

#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "hlaunch/v1/journal.pb.h"
#include "proto/base/status_macros.h"
#include "rendezvous/grpc/convert.h"

namespace hlaunch {
namespace {

constexpr char kMagic[] = "hlaunch-job";
constexpr int kFormat = 1;
constexpr size_t kLongestHeader = 64;
constexpr size_t kLongestName = 200;

// Over the version and the length, too.
uint32_t Checksum(int format, absl::string_view payload) {
  const std::string header = absl::StrCat(format, " ", payload.size(), "\n");
  uLong crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size()));
  crc = ::crc32(crc, reinterpret_cast<const Bytef*>(payload.data()),
                static_cast<uInt>(payload.size()));
  return static_cast<uint32_t>(crc);
}

v1::JobRecord RecordToProto(const JobRecord& record) {
  v1::JobRecord out;
  out.set_job_id(record.job_id);
  *out.mutable_policy() = ToProto(record.policy);
  out.set_state(static_cast<v1::JobState>(static_cast<int>(record.state) + 1));
  out.set_round(record.round);
  out.set_restarts(record.restarts);
  for (const MemberRecord& member : record.members) {
    v1::MemberRecord& one = *out.add_members();
    *one.mutable_info() = ToProto(member.info);
    one.set_route_address(member.info.route_address);
    one.set_told(member.told);
    one.set_node_rank(member.node_rank);
    one.set_first_rank(member.first_rank);
    one.set_succeeded(member.succeeded);
    one.set_stopped(member.stopped);
  }
  for (const Ghost& ghost : record.ghosts) {
    v1::GhostRecord& one = *out.add_ghosts();
    one.set_node_id(ghost.node_id);
    one.set_incarnation(ghost.incarnation);
    one.set_host(ghost.host);
    one.set_pid(ghost.pid);
  }
  for (const Incarnation incarnation : record.given_up) out.add_given_up(incarnation);
  for (const auto& [node_id, rank] : record.held_ranks) {
    v1::HeldRank& one = *out.add_held_ranks();
    one.set_node_id(node_id);
    one.set_node_rank(rank);
  }
  out.set_round_nodes(record.round_nodes);
  out.set_succeeded(record.succeeded);
  out.set_stopped(record.stopped);
  out.set_world_size(record.world_size);
  out.set_master_addr(record.master_addr);
  out.set_master_port(record.master_port);
  out.set_coordinator_port(record.coordinator_port);
  out.set_worker_store(record.worker_store);
  out.set_cause(ToUtf8(record.cause, kMaxTextBytes));
  for (const WorkerFailure& failure : record.failures) *out.add_failures() = ToProto(failure);
  out.set_total_failures(record.total_failures);
  for (const PastRound& past : record.history) *out.add_history() = ToProto(past);
  for (const std::string& one : record.excluded) out.add_excluded(ToUtf8(one, kMaxTextBytes));
  out.set_total_excluded(record.total_excluded);
  *out.mutable_outcome() = ToProto(record.outcome);
  return out;
}

absl::StatusOr<MemberRecord> MemberFromProto(const v1::MemberRecord& in) {
  MemberRecord member;
  HLAUNCH_ASSIGN_OR_RETURN(member.info, FromProto(in.info()));
  member.info.route_address = in.route_address();
  member.told = in.told();
  member.node_rank = in.node_rank();
  member.first_rank = in.first_rank();
  member.succeeded = in.succeeded();
  member.stopped = in.stopped();
  return member;
}

absl::StatusOr<JobRecord> RecordFromProto(const v1::JobRecord& in) {
  JobRecord record;
  record.job_id = in.job_id();
  HLAUNCH_ASSIGN_OR_RETURN(record.policy, FromProto(in.policy()));
  if (in.state() < v1::JOB_STATE_FORMING || in.state() > v1::JOB_STATE_OVER) {
    return absl::InvalidArgumentError(absl::StrCat("state is ", in.state()));
  }
  record.state = static_cast<JobState>(in.state() - 1);
  record.round = in.round();
  record.restarts = in.restarts();
  std::set<std::string> ids;
  for (const v1::MemberRecord& one : in.members()) {
    HLAUNCH_ASSIGN_OR_RETURN(MemberRecord member, MemberFromProto(one));
    if (!ids.insert(member.info.node_id).second || member.info.job_id != record.job_id) {
      return absl::InvalidArgumentError("a member is there twice, or of another job");
    }
    record.members.push_back(std::move(member));
  }
  for (const v1::GhostRecord& one : in.ghosts()) {
    record.ghosts.push_back({one.node_id(), one.incarnation(), one.host(), one.pid(), {}});
  }
  record.given_up.assign(in.given_up().begin(), in.given_up().end());
  for (const v1::HeldRank& one : in.held_ranks()) {
    record.held_ranks.emplace(one.node_id(), one.node_rank());
  }
  record.round_nodes = in.round_nodes();
  record.succeeded = in.succeeded();
  record.stopped = in.stopped();
  record.world_size = in.world_size();
  record.master_addr = in.master_addr();
  record.master_port = static_cast<uint16_t>(in.master_port());
  record.coordinator_port = static_cast<uint16_t>(in.coordinator_port());
  record.worker_store = in.worker_store();
  record.cause = in.cause();
  for (const v1::WorkerFailure& one : in.failures()) {
    HLAUNCH_ASSIGN_OR_RETURN(WorkerFailure failure, FromProto(one));
    record.failures.push_back(std::move(failure));
  }
  record.total_failures = in.total_failures();
  for (const v1::PastRound& one : in.history()) {
    HLAUNCH_ASSIGN_OR_RETURN(PastRound past, FromProto(one));
    record.history.push_back(std::move(past));
  }
  record.excluded.assign(in.excluded().begin(), in.excluded().end());
  record.total_excluded = in.total_excluded();
  HLAUNCH_ASSIGN_OR_RETURN(record.outcome, FromProto(in.outcome()));
  return record;
}

std::string HeaderLine(int format, uint32_t checksum, size_t length) {
  return absl::StrFormat("%s %d %08x %d\n", kMagic, format, checksum, length);
}

struct Header {
  int format = 0;
  uint32_t checksum = 0;
  size_t length = 0;
  size_t size = 0;  // Of the line, with its end.
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
  RecordToProto(record).SerializeToString(&payload);
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
  absl::StatusOr<JobRecord> record = RecordFromProto(message);
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
