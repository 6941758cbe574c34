// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/convert.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "proto/base/address.h"
#include "proto/base/release.h"
#include "proto/base/status_macros.h"
#include "proto/contract/rank_list.h"
#include "rendezvous/round/cause/traceback.h"

namespace hlaunch {

absl::Status InRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  if (low <= value && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", must be ", low, " to ", high));
}

namespace {

using google::protobuf::util::TimeUtil;

absl::Status NotLonger(absl::string_view field, absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has ", text.size(), " bytes, at most ", max_bytes, " are allowed"));
}

// Accepts one line that may be shown to a person as it is: without control characters, which could
// forge further lines or control the terminal.
absl::Status OneLine(absl::string_view field, absl::string_view text, size_t max_bytes) {
  HLAUNCH_RETURN_IF_ERROR(NotLonger(field, text, max_bytes));
  if (std::none_of(text.begin(), text.end(), absl::ascii_iscntrl)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " holds control characters"));
}

absl::Status Name(absl::string_view field, absl::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError(absl::StrCat(field, " is empty"));
  return OneLine(field, text, kMaxNameBytes);
}

absl::Status Literal(absl::string_view field, absl::string_view text) {
  HLAUNCH_RETURN_IF_ERROR(NotLonger(field, text, kMaxNameBytes));
  if (IsAddressLiteral(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is not an IP address: '", text, "'"));
}

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMaxRound = std::numeric_limits<int64_t>::max();
constexpr int64_t kYear9999 = 253402300799999;

}  // namespace

google::protobuf::Duration DurationToProto(Duration duration) {
  return TimeUtil::NanosecondsToDuration(
      std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
}

absl::StatusOr<Duration> DurationFromProto(absl::string_view field,
                                           const google::protobuf::Duration& in) {
  constexpr int64_t kYear = 366 * 24 * 3600;
  HLAUNCH_RETURN_IF_ERROR(InRange(absl::StrCat(field, " in seconds"), in.seconds(), 0, kYear));
  HLAUNCH_RETURN_IF_ERROR(
      InRange(absl::StrCat(field, " in nanoseconds"), in.nanos(), 0, 999999999));
  return std::chrono::seconds(in.seconds()) + std::chrono::nanoseconds(in.nanos());
}

namespace {

// Reads a time limit, which must not be 0.
absl::StatusOr<Duration> LimitFromProto(absl::string_view field,
                                        const google::protobuf::Duration& in) {
  HLAUNCH_ASSIGN_OR_RETURN(const Duration duration, DurationFromProto(field, in));
  if (duration > Duration::zero()) return duration;
  return absl::InvalidArgumentError(absl::StrCat(field, " is 0"));
}

}  // namespace

static_assert(static_cast<int>(FailureKind::kOther) + 1 == v1::FAILURE_KIND_OTHER);
static_assert(static_cast<int>(FailureKind::kStalled) + 1 == v1::FAILURE_KIND_STALLED);
static_assert(static_cast<int>(FailureKind::kStalledWaiting) + 1 ==
              v1::FAILURE_KIND_STALLED_WAITING);
static_assert(static_cast<int>(FailureKind::kHangs) + 1 == v1::FAILURE_KIND_HANGS);
static_assert(static_cast<int>(FailureKind::kSilent) + 1 == v1::FAILURE_KIND_SILENT);
static_assert(static_cast<int>(FailureKind::kWroteLine) + 1 == v1::FAILURE_KIND_WROTE_LINE);
static_assert(static_cast<int>(FailureKind::kKernelAssertion) + 1 ==
              v1::FAILURE_KIND_KERNEL_ASSERTION);
static_assert(static_cast<int>(FailureKind::kImportFailed) + 1 == v1::FAILURE_KIND_IMPORT_FAILED);
static_assert(static_cast<int>(FailureKind::kMpiPeerLost) + 1 == v1::FAILURE_KIND_MPI_PEER_LOST);
static_assert(static_cast<int>(FailureKind::kWarnedBefore) + 1 == v1::FAILURE_KIND_WARNED_BEFORE);

v1::WorkerFailure ToProto(const WorkerFailure& failure) {
  v1::WorkerFailure out;
  out.set_rank(failure.rank);
  out.set_local_rank(failure.local_rank);
  out.set_node_rank(failure.node_rank);
  out.set_host(ToUtf8(failure.host, kMaxNameBytes));
  out.set_pid(failure.pid);
  out.set_exit_code(failure.exit_code);
  out.set_signal(failure.signal);
  *out.mutable_seen() =
      TimeUtil::MillisecondsToTimestamp(std::clamp<int64_t>(failure.wall_ms, 0, kYear9999));
  out.set_message(ToUtf8(failure.message, kMaxTextBytes));
  const size_t cut = failure.log_tail.size() - std::min(failure.log_tail.size(), kMaxTailBytes);
  out.set_log_tail(failure.log_tail.substr(cut));
  out.set_traceback(LastLines(failure.traceback, kMaxTracebackBytes));
  out.set_out_of_memory(failure.out_of_memory);
  out.set_evidence(ToUtf8(failure.evidence, kMaxTextBytes));
  out.set_log_file(ToUtf8(failure.log_file, kMaxTextBytes));
  out.set_no_restart(failure.no_restart);
  out.set_hung(failure.hung);
  out.set_kind(static_cast<v1::FailureKind>(static_cast<int>(failure.kind) + 1));
  out.set_spawned(ToUtf8(failure.spawned, kMaxNameBytes));
  return out;
}

absl::StatusOr<WorkerFailure> FromProto(const v1::WorkerFailure& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("failure.rank", in.rank(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("failure.local_rank", in.local_rank(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("failure.node_rank", in.node_rank(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(OneLine("failure.host", in.host(), kMaxNameBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("failure.pid", in.pid(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("failure.exit_code", in.exit_code(), 0, 255));
  HLAUNCH_RETURN_IF_ERROR(InRange("failure.signal", in.signal(), 0, 127));
  HLAUNCH_RETURN_IF_ERROR(InRange("failure.seen", in.seen().seconds(), 0, kYear9999 / 1000));
  HLAUNCH_RETURN_IF_ERROR(NotLonger("failure.message", in.message(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(NotLonger("failure.log_tail", in.log_tail(), kMaxTailBytes));
  HLAUNCH_RETURN_IF_ERROR(NotLonger("failure.traceback", in.traceback(), kMaxTracebackBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("failure.evidence", in.evidence(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("failure.log_file", in.log_file(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("failure.spawned", in.spawned(), kMaxNameBytes));
  WorkerFailure out;
  out.rank = in.rank();
  out.local_rank = in.local_rank();
  out.node_rank = in.node_rank();
  out.host = in.host();
  out.pid = in.pid();
  out.exit_code = in.exit_code();
  out.signal = in.signal();
  out.wall_ms = TimeUtil::TimestampToMilliseconds(in.seen());
  out.message = in.message();
  out.log_tail = in.log_tail();
  out.traceback = in.traceback();
  out.out_of_memory = in.out_of_memory();
  out.evidence = in.evidence();
  out.log_file = in.log_file();
  out.no_restart = in.no_restart();
  out.hung = in.hung();
  const bool is_known =
      in.kind() > v1::FAILURE_KIND_UNSPECIFIED && v1::FailureKind_IsValid(in.kind());
  out.kind = is_known ? static_cast<FailureKind>(in.kind() - 1) : FailureKind::kOther;
  out.spawned = in.spawned();
  return out;
}

namespace {

// `Message` has a repeated field `failures`.
template <typename Message>
void FailuresToProto(const std::vector<WorkerFailure>& failures, Message* out) {
  for (size_t i = 0; i < std::min(failures.size(), kMaxFailures); ++i) {
    *out->add_failures() = ToProto(failures[i]);
  }
}

template <typename Message>
absl::StatusOr<std::vector<WorkerFailure>> FailuresFromProto(const Message& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("number of failures", in.failures_size(), 0, kMaxFailures));
  std::vector<WorkerFailure> failures;
  for (const v1::WorkerFailure& one : in.failures()) {
    HLAUNCH_ASSIGN_OR_RETURN(WorkerFailure failure, FromProto(one));
    failures.push_back(std::move(failure));
  }
  return failures;
}

v1::Assignment AssignmentToProto(const Assignment& assignment) {
  v1::Assignment out;
  out.set_round(assignment.round);
  out.set_restart_count(assignment.restart_count);
  out.set_max_restarts(assignment.max_restarts);
  out.set_node_rank(assignment.node_rank);
  out.set_num_nodes(assignment.num_nodes);
  out.set_first_rank(assignment.first_rank);
  out.set_world_size(assignment.world_size);
  out.set_master_addr(assignment.master_addr);
  out.set_master_port(assignment.master_port);
  out.set_coordinator_port(assignment.coordinator_port);
  out.set_worker_store(assignment.worker_store);
  for (const std::string& member : assignment.members) out.add_members(member);
  out.set_preflight(static_cast<v1::Preflight>(static_cast<int>(assignment.preflight) + 1));
  out.set_notice(ToUtf8(assignment.notice, kMaxTextBytes));
  out.set_comm_secret(assignment.comm_secret);
  return out;
}

absl::StatusOr<Assignment> AssignmentFromProto(const v1::Assignment& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("run.round", in.round(), 1, kMaxRound));
  HLAUNCH_RETURN_IF_ERROR(InRange("run.restart_count", in.restart_count(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("run.max_restarts", in.max_restarts(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("run.num_nodes", in.num_nodes(), 1, kMaxNodes));
  HLAUNCH_RETURN_IF_ERROR(InRange("run.node_rank", in.node_rank(), 0, in.num_nodes() - 1));
  HLAUNCH_RETURN_IF_ERROR(InRange("run.world_size", in.world_size(), 1, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("run.first_rank", in.first_rank(), 0, in.world_size() - 1));
  HLAUNCH_RETURN_IF_ERROR(Literal("run.master_addr", in.master_addr()));
  HLAUNCH_RETURN_IF_ERROR(InRange("run.master_port", in.master_port(), 1, 65535));
  HLAUNCH_RETURN_IF_ERROR(InRange("run.coordinator_port", in.coordinator_port(), 0, 65535));
  for (const std::string& member : in.members()) {
    HLAUNCH_RETURN_IF_ERROR(Literal("run.members", member));
  }
  HLAUNCH_RETURN_IF_ERROR(
      InRange("run.preflight", in.preflight(), v1::PREFLIGHT_OFF, v1::PREFLIGHT_FULL));
  HLAUNCH_RETURN_IF_ERROR(NotLonger("run.notice", in.notice(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("run.comm_secret", in.comm_secret(), kMaxNameBytes));
  Assignment out;
  out.round = in.round();
  out.restart_count = in.restart_count();
  out.max_restarts = in.max_restarts();
  out.node_rank = in.node_rank();
  out.num_nodes = in.num_nodes();
  out.first_rank = in.first_rank();
  out.world_size = in.world_size();
  out.master_addr = in.master_addr();
  out.master_port = static_cast<uint16_t>(in.master_port());
  out.coordinator_port = static_cast<uint16_t>(in.coordinator_port());
  out.worker_store = in.worker_store();
  out.members.assign(in.members().begin(), in.members().end());
  out.preflight = static_cast<Preflight>(in.preflight() - 1);
  out.notice = in.notice();
  out.comm_secret = in.comm_secret();
  return out;
}

}  // namespace

v1::PastRound ToProto(const PastRound& past) {
  v1::PastRound out;
  out.set_round(past.round);
  out.set_reason(ToUtf8(past.reason, kMaxTextBytes));
  if (past.failure) *out.mutable_failure() = ToProto(*past.failure);
  return out;
}

absl::StatusOr<PastRound> FromProto(const v1::PastRound& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("past.round", in.round(), 1, kMaxRound));
  HLAUNCH_RETURN_IF_ERROR(NotLonger("past.reason", in.reason(), kMaxTextBytes));
  PastRound out;
  out.round = in.round();
  out.reason = in.reason();
  if (in.has_failure()) {
    HLAUNCH_ASSIGN_OR_RETURN(out.failure, FromProto(in.failure()));
  }
  return out;
}

v1::Outcome ToProto(const Outcome& outcome) {
  v1::Outcome out;
  out.set_exit_code(outcome.exit_code);
  out.set_reason(ToUtf8(outcome.reason, kMaxTextBytes));
  FailuresToProto(outcome.failures, &out);
  out.set_total_failures(outcome.total_failures);
  out.set_restart_count(outcome.restart_count);
  out.set_uncounted(outcome.uncounted);
  out.set_report(outcome.report);
  out.set_warned(outcome.warned);
  out.set_refused(outcome.refused);
  out.set_worker_failed(outcome.worker_failed);
  out.set_cause_reason(ToUtf8(outcome.cause_reason, kMaxTextBytes));
  for (const WorkerPlace& place : outcome.awaited) {
    v1::WorkerPlace& one = *out.add_awaited();
    one.set_rank(place.rank);
    one.set_local_rank(place.local_rank);
    one.set_host(ToUtf8(place.host, kMaxNameBytes));
    one.set_did(ToUtf8(place.did, kMaxTextBytes));
    one.set_exited(place.exited);
  }
  for (const PastRound& past : outcome.history) *out.add_history() = ToProto(past);
  for (const std::string& one : outcome.excluded) out.add_excluded(ToUtf8(one, kMaxTextBytes));
  return out;
}

absl::StatusOr<Outcome> FromProto(const v1::Outcome& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("finish.exit_code", in.exit_code(), 0, 255));
  HLAUNCH_RETURN_IF_ERROR(NotLonger("finish.reason", in.reason(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("finish.total_failures", in.total_failures(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("finish.restart_count", in.restart_count(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("finish.uncounted", in.uncounted(), 0, kMaxInt));
  Outcome out;
  HLAUNCH_ASSIGN_OR_RETURN(out.failures, FailuresFromProto(in));
  out.exit_code = in.exit_code();
  out.reason = in.reason();
  out.warned = in.warned();
  out.refused = in.refused();
  out.total_failures = in.total_failures();
  out.restart_count = in.restart_count();
  out.uncounted = in.uncounted();
  out.report = in.report();
  out.worker_failed = in.worker_failed() && !out.failures.empty();
  HLAUNCH_RETURN_IF_ERROR(NotLonger("finish.cause_reason", in.cause_reason(), kMaxTextBytes));
  out.cause_reason = in.cause_reason();
  HLAUNCH_RETURN_IF_ERROR(InRange("number of awaited", in.awaited_size(), 0, kMaxFailures));
  for (const v1::WorkerPlace& place : in.awaited()) {
    HLAUNCH_RETURN_IF_ERROR(InRange("awaited.rank", place.rank(), 0, kMaxInt));
    HLAUNCH_RETURN_IF_ERROR(InRange("awaited.local_rank", place.local_rank(), 0, kMaxInt));
    HLAUNCH_RETURN_IF_ERROR(OneLine("awaited.host", place.host(), kMaxNameBytes));
    HLAUNCH_RETURN_IF_ERROR(OneLine("awaited.did", place.did(), kMaxTextBytes));
    out.awaited.push_back(
        {place.rank(), place.local_rank(), place.host(), place.did(), place.exited()});
  }
  HLAUNCH_RETURN_IF_ERROR(InRange("number of past rounds", in.history_size(), 0, kMaxHistory));
  for (const v1::PastRound& one : in.history()) {
    HLAUNCH_ASSIGN_OR_RETURN(PastRound past, FromProto(one));
    out.history.push_back(std::move(past));
  }
  HLAUNCH_RETURN_IF_ERROR(InRange("number of excluded", in.excluded_size(), 0, kMaxHistory));
  for (const std::string& one : in.excluded()) {
    HLAUNCH_RETURN_IF_ERROR(NotLonger("excluded", one, kMaxTextBytes));
    out.excluded.push_back(one);
  }
  return out;
}

namespace {

// Length of the UTF-8 character at the start of `text`, 0 if there is none.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return low <= byte(i) && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (0xC2 <= first && first <= 0xDF) return follows(1) ? 2 : 0;
  if ((first & 0xF0) == 0xE0) {  // No overlong forms, no surrogates.
    const bool second = follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
    return second && follows(2) ? 3 : 0;
  }
  if (0xF0 <= first && first <= 0xF4) {  // Nothing beyond U+10FFFF.
    const bool second = follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string ToUtf8(absl::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    const absl::string_view next = length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length);
    if (out.size() + next.size() > max_bytes) break;
    absl::StrAppend(&out, next);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

v1::NodeInfo ToProto(const NodeInfo& info) {
  v1::NodeInfo out;
  // Names are not cut: the other side says which one is too long.
  out.set_job_id(ToUtf8(info.job_id, std::string::npos));
  out.set_node_id(ToUtf8(info.node_id, std::string::npos));
  out.set_incarnation(info.incarnation);
  out.set_host(ToUtf8(info.host, kMaxNameBytes));
  out.set_pid(info.pid);
  out.set_started_ms(info.started_ms);
  out.set_nproc(info.nproc);
  if (info.node_rank.has_value()) out.set_node_rank(*info.node_rank);
  out.set_address(info.address);
  for (const std::string& other : info.other_addresses) out.add_other_addresses(other);
  out.set_answers(info.answers);
  out.set_voter_port(info.voter_port);
  out.set_protocol(kProtocolMajor);
  out.set_release(kRelease);
  *out.mutable_policy() = ToProto(info.policy);
  return out;
}

absl::StatusOr<NodeInfo> FromProto(const v1::NodeInfo& in) {
  if (in.protocol() != kProtocolMajor) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the node speaks protocol ", in.protocol(), ", the rendezvous speaks protocol ",
        kProtocolMajor, "; install the same version of hlaunch on both hosts"));
  }
  HLAUNCH_RETURN_IF_ERROR(Name("job_id", in.job_id()));
  HLAUNCH_RETURN_IF_ERROR(Name("node_id", in.node_id()));
  if (in.incarnation() == 0) return absl::InvalidArgumentError("incarnation is 0");
  HLAUNCH_RETURN_IF_ERROR(OneLine("host", in.host(), kMaxNameBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("pid", in.pid(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(InRange("nproc", in.nproc(), 1, kMaxNproc));
  HLAUNCH_RETURN_IF_ERROR(InRange("node_rank", in.node_rank(), 0, kMaxNodes - 1));
  HLAUNCH_RETURN_IF_ERROR(Literal("address", in.address()));
  HLAUNCH_RETURN_IF_ERROR(
      InRange("number of other addresses", in.other_addresses_size(), 0, kMaxOtherAddresses));
  for (const std::string& other : in.other_addresses()) {
    HLAUNCH_RETURN_IF_ERROR(Literal("other_addresses", other));
  }
  NodeInfo out;
  HLAUNCH_ASSIGN_OR_RETURN(out.policy, FromProto(in.policy()));
  out.job_id = in.job_id();
  out.node_id = in.node_id();
  out.incarnation = in.incarnation();
  out.host = in.host();
  out.pid = in.pid();
  out.started_ms = in.started_ms();
  out.nproc = in.nproc();
  if (in.has_node_rank()) out.node_rank = in.node_rank();
  out.address = in.address();
  out.other_addresses.assign(in.other_addresses().begin(), in.other_addresses().end());
  out.answers = in.answers();
  HLAUNCH_RETURN_IF_ERROR(InRange("voter_port", in.voter_port(), 0, 65535));
  out.voter_port = static_cast<uint16_t>(in.voter_port());
  return out;
}

namespace {

v1::NodeFigures ToProto(const NodeFigures& in) {
  v1::NodeFigures out;
  const auto set = [&](Figure figure, void (v1::NodeFigures::*setter)(double)) {
    if (std::isfinite(in[figure])) (out.*setter)(in[figure]);
  };
  set(Figure::kProcessor, &v1::NodeFigures::set_processor);
  set(Figure::kMemorySpeed, &v1::NodeFigures::set_memory_speed);
  set(Figure::kDevices, &v1::NodeFigures::set_devices);
  set(Figure::kPcieLanes, &v1::NodeFigures::set_pcie_lanes);
  set(Figure::kFabric, &v1::NodeFigures::set_fabric);
  set(Figure::kNetwork, &v1::NodeFigures::set_network);
  set(Figure::kClock, &v1::NodeFigures::set_clock);
  set(Figure::kLatency, &v1::NodeFigures::set_latency);
  set(Figure::kBandwidth, &v1::NodeFigures::set_bandwidth);
  return out;
}

NodeFigures FromProto(const v1::NodeFigures& figures) {
  NodeFigures out;
  const auto get = [&](Figure figure, bool known, double value) {
    if (known && std::isfinite(value)) out[figure] = value;
  };
  get(Figure::kProcessor, figures.has_processor(), figures.processor());
  get(Figure::kMemorySpeed, figures.has_memory_speed(), figures.memory_speed());
  get(Figure::kDevices, figures.has_devices(), figures.devices());
  get(Figure::kPcieLanes, figures.has_pcie_lanes(), figures.pcie_lanes());
  get(Figure::kFabric, figures.has_fabric(), figures.fabric());
  get(Figure::kNetwork, figures.has_network(), figures.network());
  get(Figure::kClock, figures.has_clock(), figures.clock());
  get(Figure::kLatency, figures.has_latency(), figures.latency());
  get(Figure::kBandwidth, figures.has_bandwidth(), figures.bandwidth());
  return out;
}

v1::NodeHealth ToProto(const NodeHealth& health) {
  v1::NodeHealth out;
  out.set_fault(ToUtf8(health.fault, kMaxTextBytes));
  out.set_hardware(ToUtf8(health.hardware, kMaxNameBytes));
  *out.mutable_figures() = ToProto(health.figures);
  out.set_joined(health.joined);
  for (const PeerFinding& peer : health.peers) {
    v1::PeerFinding& one = *out.add_peers();
    one.set_node_rank(peer.node_rank);
    one.set_fault(static_cast<v1::PeerFault>(static_cast<int>(peer.kind) + 1));
    one.set_why(ToUtf8(peer.why, kMaxTextBytes));
  }
  for (const LinkFinding& link : health.links) {
    v1::LinkFinding& one = *out.add_links();
    one.set_a(link.a);
    one.set_b(link.b);
    one.set_why(ToUtf8(link.why, kMaxTextBytes));
  }
  out.set_note(ToUtf8(health.note, kMaxTextBytes));
  return out;
}

static_assert(static_cast<int>(PeerFinding::Kind::kMissing) + 1 == v1::PEER_FAULT_MISSING);
static_assert(static_cast<int>(PeerFinding::Kind::kSlow) + 1 == v1::PEER_FAULT_SLOW);
static_assert(static_cast<int>(PeerFinding::Kind::kWrong) + 1 == v1::PEER_FAULT_WRONG);

absl::Status FindingsFromProto(const v1::NodeHealth& in, NodeHealth* out) {
  HLAUNCH_RETURN_IF_ERROR(InRange("number of health.peers", in.peers_size(), 0, kMaxFindings));
  HLAUNCH_RETURN_IF_ERROR(InRange("number of health.links", in.links_size(), 0, kMaxFindings));
  for (const v1::PeerFinding& peer : in.peers()) {
    HLAUNCH_RETURN_IF_ERROR(InRange("peer.node_rank", peer.node_rank(), 0, kMaxNodes - 1));
    HLAUNCH_RETURN_IF_ERROR(
        InRange("peer.fault", peer.fault(), v1::PEER_FAULT_MISSING, v1::PEER_FAULT_WRONG));
    HLAUNCH_RETURN_IF_ERROR(OneLine("peer.why", peer.why(), kMaxTextBytes));
    out->peers.push_back(
        {peer.node_rank(), static_cast<PeerFinding::Kind>(peer.fault() - 1), peer.why()});
  }
  for (const v1::LinkFinding& link : in.links()) {
    HLAUNCH_RETURN_IF_ERROR(InRange("link.a", link.a(), 0, kMaxNodes - 1));
    HLAUNCH_RETURN_IF_ERROR(InRange("link.b", link.b(), 0, kMaxNodes - 1));
    HLAUNCH_RETURN_IF_ERROR(OneLine("link.why", link.why(), kMaxTextBytes));
    out->links.push_back({link.a(), link.b(), link.why()});
  }
  HLAUNCH_RETURN_IF_ERROR(OneLine("health.note", in.note(), kMaxTextBytes));
  out->joined = in.joined();
  out->note = in.note();
  return absl::OkStatus();
}

absl::StatusOr<NodeHealth> FromProto(const v1::NodeHealth& in) {
  HLAUNCH_RETURN_IF_ERROR(OneLine("health.fault", in.fault(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("health.hardware", in.hardware(), kMaxNameBytes));
  NodeHealth out;
  out.fault = in.fault();
  out.hardware = in.hardware();
  out.figures = FromProto(in.figures());
  HLAUNCH_RETURN_IF_ERROR(FindingsFromProto(in, &out));
  return out;
}

}  // namespace

v1::NodeUpdate ToProto(const NodeUpdate& update) {
  v1::NodeUpdate out;
  out.set_round(update.round);
  out.set_phase(static_cast<v1::NodePhase>(static_cast<int>(update.phase) + 1));
  out.set_store_port(update.store_port);
  out.set_coordinator_port(update.coordinator_port);
  out.set_worker_store(update.worker_store);
  FailuresToProto(update.failures, &out);
  out.set_left_reason(ToUtf8(update.left_reason, kMaxTextBytes));
  out.set_left_exit_code(update.left_exit_code);
  out.set_unfit(ToUtf8(update.unfit, kMaxTextBytes));
  for (const int local_rank : update.exited) out.add_exited(local_rank);
  for (const int local_rank : update.given_up) out.add_given_up(local_rank);
  if (update.phase == NodePhase::kPrepared) *out.mutable_health() = ToProto(update.health);
  if (update.step) out.set_step(*update.step);
  out.set_boundaries(update.boundaries);
  out.set_drain_reason(ToUtf8(update.drain_reason, kMaxTextBytes));
  *out.mutable_drain_within() = DurationToProto(update.drain_within);
  for (const int node_rank : update.unreached) out.add_unreached(node_rank);
  out.set_workers_lost(ToUtf8(update.workers_lost, kMaxTextBytes));
  return out;
}

// The messages' enum has UNSPECIFIED in front, else the order is the same.
static_assert(static_cast<int>(NodePhase::kReady) + 1 == v1::NODE_PHASE_READY);
static_assert(static_cast<int>(NodePhase::kPrepared) + 1 == v1::NODE_PHASE_PREPARED);
static_assert(static_cast<int>(NodePhase::kRunning) + 1 == v1::NODE_PHASE_RUNNING);
static_assert(static_cast<int>(NodePhase::kSucceeded) + 1 == v1::NODE_PHASE_SUCCEEDED);
static_assert(static_cast<int>(NodePhase::kFailed) + 1 == v1::NODE_PHASE_FAILED);
static_assert(static_cast<int>(NodePhase::kLeft) + 1 == v1::NODE_PHASE_LEFT);
static_assert(static_cast<int>(NodePhase::kFinished) + 1 == v1::NODE_PHASE_FINISHED);

absl::StatusOr<NodeUpdate> FromProto(const v1::NodeUpdate& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("update.round", in.round(), 0, kMaxRound));
  HLAUNCH_RETURN_IF_ERROR(
      InRange("update.phase", in.phase(), v1::NODE_PHASE_READY, v1::NODE_PHASE_FINISHED));
  HLAUNCH_RETURN_IF_ERROR(InRange("update.store_port", in.store_port(), 0, 65535));
  HLAUNCH_RETURN_IF_ERROR(InRange("update.coordinator_port", in.coordinator_port(), 0, 65535));
  HLAUNCH_RETURN_IF_ERROR(OneLine("update.left_reason", in.left_reason(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("update.left_exit_code", in.left_exit_code(), 0, 255));
  HLAUNCH_RETURN_IF_ERROR(OneLine("update.unfit", in.unfit(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("number of exited", in.exited_size(), 0, kMaxFailures));
  for (const int local_rank : in.exited()) {
    HLAUNCH_RETURN_IF_ERROR(InRange("update.exited", local_rank, 0, kMaxNproc));
  }
  HLAUNCH_RETURN_IF_ERROR(InRange("number of given_up", in.given_up_size(), 0, kMaxFailures));
  for (const int local_rank : in.given_up()) {
    HLAUNCH_RETURN_IF_ERROR(InRange("update.given_up", local_rank, 0, kMaxNproc));
  }
  NodeUpdate out;
  out.exited.assign(in.exited().begin(), in.exited().end());
  out.given_up.assign(in.given_up().begin(), in.given_up().end());
  HLAUNCH_ASSIGN_OR_RETURN(out.failures, FailuresFromProto(in));
  HLAUNCH_ASSIGN_OR_RETURN(out.health, FromProto(in.health()));
  out.round = in.round();
  out.phase = static_cast<NodePhase>(in.phase() - 1);
  out.store_port = static_cast<uint16_t>(in.store_port());
  out.coordinator_port = static_cast<uint16_t>(in.coordinator_port());
  out.worker_store = in.worker_store();
  out.left_reason = in.left_reason();
  out.left_exit_code = in.left_exit_code();
  out.unfit = in.unfit();
  if (in.has_step()) out.step = in.step();
  out.boundaries = in.boundaries();
  HLAUNCH_RETURN_IF_ERROR(OneLine("update.drain_reason", in.drain_reason(), kMaxTextBytes));
  out.drain_reason = in.drain_reason();
  HLAUNCH_ASSIGN_OR_RETURN(out.drain_within, DurationFromProto("drain_within", in.drain_within()));
  HLAUNCH_RETURN_IF_ERROR(
      InRange("number of unreached", in.unreached_size(), 0, static_cast<int>(kMaxUnreached)));
  for (const int node_rank : in.unreached()) {
    HLAUNCH_RETURN_IF_ERROR(InRange("update.unreached", node_rank, 0, kMaxNodes - 1));
  }
  out.unreached.assign(in.unreached().begin(), in.unreached().end());
  HLAUNCH_RETURN_IF_ERROR(OneLine("update.workers_lost", in.workers_lost(), kMaxTextBytes));
  out.workers_lost = in.workers_lost();
  return out;
}

v1::Directive ToProto(const Directive& directive) {
  v1::Directive out;
  switch (directive.kind) {
    case Directive::Kind::kWait:
      out.mutable_wait()->set_reason(ToUtf8(directive.reason, kMaxTextBytes));
      break;
    case Directive::Kind::kPrepare:
      *out.mutable_prepare() = AssignmentToProto(directive.assignment);
      break;
    case Directive::Kind::kRun:
      *out.mutable_run() = AssignmentToProto(directive.assignment);
      break;
    case Directive::Kind::kStop:
      out.mutable_stop()->set_round(directive.round);
      out.mutable_stop()->set_reason(ToUtf8(directive.reason, kMaxTextBytes));
      break;
    case Directive::Kind::kFinish:
      *out.mutable_finish() = ToProto(directive.outcome);
      break;
  }
  for (const News& news : directive.news) {
    v1::News* const told = out.add_news();
    told->set_number(news.number);
    told->set_text(ToUtf8(news.text, kMaxTextBytes));
  }
  out.set_wants_boundary(directive.wants_boundary);
  return out;
}

// Reads all but the news. Static, since overloads in an anonymous namespace would hide those in
// this one.
static absl::StatusOr<Directive> WishFromProto(const v1::Directive& in) {
  Directive out;
  switch (in.kind_case()) {
    case v1::Directive::kWait:
      HLAUNCH_RETURN_IF_ERROR(NotLonger("wait.reason", in.wait().reason(), kMaxTextBytes));
      out.kind = Directive::Kind::kWait;
      out.reason = in.wait().reason();
      return out;
    case v1::Directive::kPrepare:
    case v1::Directive::kRun: {
      const bool run = in.has_run();
      HLAUNCH_ASSIGN_OR_RETURN(out.assignment, AssignmentFromProto(run ? in.run() : in.prepare()));
      out.kind = run ? Directive::Kind::kRun : Directive::Kind::kPrepare;
      out.round = out.assignment.round;
      return out;
    }
    case v1::Directive::kStop:
      HLAUNCH_RETURN_IF_ERROR(InRange("stop.round", in.stop().round(), 0, kMaxRound));
      HLAUNCH_RETURN_IF_ERROR(NotLonger("stop.reason", in.stop().reason(), kMaxTextBytes));
      out.kind = Directive::Kind::kStop;
      out.round = in.stop().round();
      out.reason = in.stop().reason();
      return out;
    case v1::Directive::kFinish: {
      HLAUNCH_ASSIGN_OR_RETURN(out.outcome, FromProto(in.finish()));
      out.kind = Directive::Kind::kFinish;
      return out;
    }
    case v1::Directive::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("directive says nothing that this version of hlaunch knows");
}

absl::StatusOr<Directive> FromProto(const v1::Directive& in) {
  HLAUNCH_ASSIGN_OR_RETURN(Directive out, WishFromProto(in));
  if (static_cast<size_t>(in.news_size()) > kMaxNews) {
    return absl::InvalidArgumentError(
        absl::StrCat("directive.news has ", in.news_size(), " lines"));
  }
  for (const v1::News& news : in.news()) {
    HLAUNCH_RETURN_IF_ERROR(NotLonger("news.text", news.text(), kMaxTextBytes));
    out.news.push_back({news.number(), news.text()});
  }
  out.wants_boundary = in.wants_boundary();
  return out;
}

v1::Policy ToProto(const JobPolicy& policy) {
  v1::Policy out;
  out.set_min_nodes(policy.min_nodes);
  out.set_max_nodes(policy.max_nodes);
  out.set_spares(policy.spares);
  out.set_max_restarts(policy.max_restarts);
  *out.mutable_join_timeout() = DurationToProto(policy.join_timeout);
  *out.mutable_last_call() = DurationToProto(policy.last_call);
  *out.mutable_lease()->mutable_lease() = DurationToProto(policy.lease.lease);
  *out.mutable_lease()->mutable_loss_limit() = DurationToProto(policy.lease.loss_limit);
  *out.mutable_lease()->mutable_margin() = DurationToProto(policy.lease.margin);
  out.set_preflight(static_cast<v1::Preflight>(static_cast<int>(policy.preflight) + 1));
  out.set_preflight_action(
      static_cast<v1::PreflightAction>(static_cast<int>(policy.preflight_action) + 1));
  out.set_preflight_share(policy.preflight_share);
  out.set_max_stuck_restarts(policy.max_stuck_restarts);
  out.set_on_host_loss(static_cast<v1::HostLoss>(static_cast<int>(policy.on_host_loss) + 1));
  *out.mutable_restart_window() = DurationToProto(policy.restart_window);
  *out.mutable_restart_pause() = DurationToProto(policy.restart_pause);
  out.set_restart_on(policy.restart_on);
  out.set_end_on(policy.end_on);
  out.set_free_on(policy.free_on);
  out.set_on_join(static_cast<v1::OnJoin>(static_cast<int>(policy.on_join) + 1));
  out.set_on_loss(static_cast<v1::OnLoss>(static_cast<int>(policy.on_loss) + 1));
  *out.mutable_grow_interval() = DurationToProto(policy.grow_interval);
  *out.mutable_boundary_limit() = DurationToProto(policy.boundary_limit);
  out.set_node_multiple(policy.node_multiple);
  out.set_on_partition(static_cast<v1::PreflightAction>(static_cast<int>(policy.on_partition) + 1));
  out.set_started_nodes(policy.started_nodes);
  return out;
}

// The messages' enums have UNSPECIFIED in front, else the order is the same.
static_assert(static_cast<int>(Preflight::kOff) + 1 == v1::PREFLIGHT_OFF);
static_assert(static_cast<int>(Preflight::kQuick) + 1 == v1::PREFLIGHT_QUICK);
static_assert(static_cast<int>(Preflight::kFull) + 1 == v1::PREFLIGHT_FULL);
static_assert(static_cast<int>(PreflightAction::kWarn) + 1 == v1::PREFLIGHT_ACTION_WARN);
static_assert(static_cast<int>(PreflightAction::kExclude) + 1 == v1::PREFLIGHT_ACTION_EXCLUDE);
static_assert(static_cast<int>(PreflightAction::kFail) + 1 == v1::PREFLIGHT_ACTION_FAIL);
static_assert(static_cast<int>(HostLoss::kEnd) + 1 == v1::HOST_LOSS_END);
static_assert(static_cast<int>(HostLoss::kWait) + 1 == v1::HOST_LOSS_WAIT);
static_assert(static_cast<int>(HostLoss::kContinue) + 1 == v1::HOST_LOSS_CONTINUE);
static_assert(static_cast<int>(OnJoin::kRestart) + 1 == v1::ON_JOIN_RESTART);
static_assert(static_cast<int>(OnJoin::kNextRound) + 1 == v1::ON_JOIN_NEXT_ROUND);
static_assert(static_cast<int>(OnJoin::kIgnore) + 1 == v1::ON_JOIN_IGNORE);
static_assert(static_cast<int>(OnLoss::kShrink) + 1 == v1::ON_LOSS_SHRINK);
static_assert(static_cast<int>(OnLoss::kWait) + 1 == v1::ON_LOSS_WAIT);
static_assert(static_cast<int>(OnLoss::kFail) + 1 == v1::ON_LOSS_FAIL);

// Reads what a policy says of the next round after a failure, and of growth.
static absl::Status ElasticFromProto(const v1::Policy& in, JobPolicy& out) {
  HLAUNCH_ASSIGN_OR_RETURN(out.restart_window,
                           DurationFromProto("restart_window", in.restart_window()));
  HLAUNCH_ASSIGN_OR_RETURN(out.restart_pause,
                           DurationFromProto("restart_pause", in.restart_pause()));
  HLAUNCH_RETURN_IF_ERROR(OneLine("restart_on", in.restart_on(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("end_on", in.end_on(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("free_on", in.free_on(), kMaxTextBytes));
  out.restart_on = in.restart_on();
  out.end_on = in.end_on();
  out.free_on = in.free_on();
  HLAUNCH_RETURN_IF_ERROR(
      InRange("on_join", in.on_join(), v1::ON_JOIN_UNSPECIFIED, v1::ON_JOIN_IGNORE));
  HLAUNCH_RETURN_IF_ERROR(
      InRange("on_loss", in.on_loss(), v1::ON_LOSS_UNSPECIFIED, v1::ON_LOSS_FAIL));
  out.on_join = static_cast<OnJoin>(std::max(in.on_join() - 1, 0));
  out.on_loss = static_cast<OnLoss>(std::max(in.on_loss() - 1, 0));
  HLAUNCH_ASSIGN_OR_RETURN(out.grow_interval,
                           DurationFromProto("grow_interval", in.grow_interval()));
  HLAUNCH_ASSIGN_OR_RETURN(out.boundary_limit,
                           DurationFromProto("boundary_limit", in.boundary_limit()));
  HLAUNCH_RETURN_IF_ERROR(InRange("node_multiple", in.node_multiple(), 0, kMaxNodes));
  out.node_multiple = std::max(in.node_multiple(), 1);
  HLAUNCH_RETURN_IF_ERROR(InRange("on_partition", in.on_partition(),
                                  v1::PREFLIGHT_ACTION_UNSPECIFIED, v1::PREFLIGHT_ACTION_FAIL));
  out.on_partition = static_cast<PreflightAction>(std::max(in.on_partition() - 1, 0));
  HLAUNCH_RETURN_IF_ERROR(InRange("started_nodes", in.started_nodes(), 0, kMaxNodes));
  out.started_nodes = in.started_nodes();
  return absl::OkStatus();
}

absl::StatusOr<JobPolicy> FromProto(const v1::Policy& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("max_nodes", in.max_nodes(), 1, kMaxNodes));
  HLAUNCH_RETURN_IF_ERROR(InRange("min_nodes", in.min_nodes(), 1, in.max_nodes()));
  HLAUNCH_RETURN_IF_ERROR(InRange("spares", in.spares(), 0, kMaxNodes));
  HLAUNCH_RETURN_IF_ERROR(InRange("max_restarts", in.max_restarts(), 0, kMaxInt));
  JobPolicy out;
  out.min_nodes = in.min_nodes();
  out.max_nodes = in.max_nodes();
  out.spares = in.spares();
  out.max_restarts = in.max_restarts();
  HLAUNCH_ASSIGN_OR_RETURN(out.join_timeout, LimitFromProto("join_timeout", in.join_timeout()));
  HLAUNCH_ASSIGN_OR_RETURN(out.last_call, DurationFromProto("last_call", in.last_call()));
  HLAUNCH_ASSIGN_OR_RETURN(out.lease.lease, LimitFromProto("lease", in.lease().lease()));
  HLAUNCH_ASSIGN_OR_RETURN(out.lease.loss_limit,
                           LimitFromProto("loss_limit", in.lease().loss_limit()));
  HLAUNCH_ASSIGN_OR_RETURN(out.lease.margin, LimitFromProto("margin", in.lease().margin()));
  HLAUNCH_RETURN_IF_ERROR(
      InRange("preflight", in.preflight(), v1::PREFLIGHT_OFF, v1::PREFLIGHT_FULL));
  HLAUNCH_RETURN_IF_ERROR(InRange("preflight_action", in.preflight_action(),
                                  v1::PREFLIGHT_ACTION_WARN, v1::PREFLIGHT_ACTION_FAIL));
  HLAUNCH_RETURN_IF_ERROR(InRange("preflight_share", in.preflight_share(), 0, 100));
  out.preflight = static_cast<Preflight>(in.preflight() - 1);
  out.preflight_action = static_cast<PreflightAction>(in.preflight_action() - 1);
  out.preflight_share = in.preflight_share();
  HLAUNCH_RETURN_IF_ERROR(InRange("max_stuck_restarts", in.max_stuck_restarts(), 0, kMaxInt));
  out.max_stuck_restarts = in.max_stuck_restarts();
  HLAUNCH_RETURN_IF_ERROR(InRange("on_host_loss", in.on_host_loss(), v1::HOST_LOSS_UNSPECIFIED,
                                  v1::HOST_LOSS_CONTINUE));
  out.on_host_loss = static_cast<HostLoss>(std::max(in.on_host_loss() - 1, 0));
  HLAUNCH_RETURN_IF_ERROR(ElasticFromProto(in, out));
  return out;
}

// The messages' enum has UNSPECIFIED in front, else the order is the same.
static_assert(static_cast<int>(JobState::kForming) + 1 == v1::JOB_STATE_FORMING);
static_assert(static_cast<int>(JobState::kPreflight) + 1 == v1::JOB_STATE_PREFLIGHT);
static_assert(static_cast<int>(JobState::kRunning) + 1 == v1::JOB_STATE_RUNNING);
static_assert(static_cast<int>(JobState::kStopping) + 1 == v1::JOB_STATE_STOPPING);
static_assert(static_cast<int>(JobState::kOver) + 1 == v1::JOB_STATE_OVER);

static v1::RoundStatus ToProto(const RoundStatus& round) {
  v1::RoundStatus out;
  out.set_round(round.round);
  out.set_began_ms(round.began_ms);
  out.set_ran_ms(round.ran_ms);
  out.set_stopping_ms(round.stopping_ms);
  out.set_stopped_ms(round.stopped_ms);
  out.set_nodes(round.nodes);
  out.set_world_size(round.world_size);
  out.set_restarts(round.restarts);
  out.set_reason(ToUtf8(round.reason, kMaxTextBytes));
  return out;
}

static_assert(static_cast<int>(NodeStanding::kUnknown) == v1::NODE_STANDING_UNSPECIFIED);
static_assert(static_cast<int>(NodeStanding::kRunning) == v1::NODE_STANDING_RUNNING);
static_assert(static_cast<int>(NodeStanding::kSucceeded) == v1::NODE_STANDING_SUCCEEDED);
static_assert(static_cast<int>(NodeStanding::kFinished) == v1::NODE_STANDING_FINISHED);
static_assert(static_cast<int>(NodeStanding::kChecking) == v1::NODE_STANDING_CHECKING);
static_assert(static_cast<int>(NodeStanding::kFit) == v1::NODE_STANDING_FIT);
static_assert(static_cast<int>(NodeStanding::kUnfit) == v1::NODE_STANDING_UNFIT);
static_assert(static_cast<int>(NodeStanding::kReady) == v1::NODE_STANDING_READY);
static_assert(static_cast<int>(NodeStanding::kSpare) == v1::NODE_STANDING_SPARE);
static_assert(static_cast<int>(NodeStanding::kDrained) == v1::NODE_STANDING_DRAINED);
static_assert(static_cast<int>(NodeStanding::kStopping) == v1::NODE_STANDING_STOPPING);
static_assert(static_cast<int>(NodeStanding::kSilent) == v1::NODE_STANDING_SILENT);
static_assert(static_cast<int>(NodeStanding::kNotConnected) == v1::NODE_STANDING_NOT_CONNECTED);
static_assert(static_cast<int>(NodeStanding::kLeft) == v1::NODE_STANDING_LEFT);

v1::JobStatus ToProto(const JobStatus& status) {
  v1::JobStatus out;
  out.set_job_id(ToUtf8(status.job_id, kMaxNameBytes));
  out.set_state(static_cast<v1::JobState>(static_cast<int>(status.state) + 1));
  out.set_explanation(ToUtf8(status.explanation, kMaxTextBytes));
  out.set_round(status.round);
  out.set_min_nodes(status.min_nodes);
  out.set_max_nodes(status.max_nodes);
  out.set_restarts(status.restarts);
  out.set_uncounted(status.uncounted);
  out.set_max_restarts(status.max_restarts);
  out.set_exit_code(status.exit_code);
  out.set_total_nodes(status.total_nodes);
  for (const NodeStatus& node : status.nodes) {
    v1::NodeStatus& one = *out.add_nodes();
    one.set_host(ToUtf8(node.host, kMaxNameBytes));
    one.set_address(ToUtf8(node.address, kMaxNameBytes));
    one.set_pid(node.pid);
    if (node.node_rank >= 0) one.set_node_rank(node.node_rank);
    one.set_nproc(node.nproc);
    one.set_state(ToUtf8(node.state, kMaxNameBytes));
    one.set_first_rank(node.first_rank);
    *one.mutable_silent_for() = DurationToProto(node.silent_for);
    one.set_drain_reason(ToUtf8(node.drain_reason, kMaxTextBytes));
    *one.mutable_figures() = ToProto(node.figures);
    one.set_standing(static_cast<v1::NodeStanding>(static_cast<int>(node.standing)));
  }
  for (const RoundStatus& round : status.rounds) *out.add_rounds() = ToProto(round);
  out.set_began_ms(status.began_ms);
  out.set_told_ms(status.told_ms);
  *out.mutable_ran_for() = DurationToProto(status.ran_for);
  out.set_world_size(status.world_size);
  if (status.failure) *out.mutable_failure() = ToProto(*status.failure);
  out.set_failed_round(status.failed_round);
  out.set_notice(ToUtf8(status.notice, kMaxTextBytes));
  for (const std::string& line : status.excluded) out.add_excluded(ToUtf8(line, kMaxTextBytes));
  return out;
}

static absl::Status HealthFromProto(const v1::JobStatus& in, JobStatus& out) {
  HLAUNCH_RETURN_IF_ERROR(OneLine("status.notice", in.notice(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("number of excluded", in.excluded_size(), 0, kMaxHistory));
  out.notice = in.notice();
  for (const std::string& line : in.excluded()) {
    HLAUNCH_RETURN_IF_ERROR(OneLine("status.excluded", line, kMaxTextBytes));
    out.excluded.push_back(line);
  }
  out.failed_round = in.failed_round();
  if (!in.has_failure()) return absl::OkStatus();
  HLAUNCH_ASSIGN_OR_RETURN(out.failure, FromProto(in.failure()));
  return absl::OkStatus();
}

absl::StatusOr<JobStatus> FromProto(const v1::JobStatus& in) {
  HLAUNCH_RETURN_IF_ERROR(Name("status.job_id", in.job_id()));
  HLAUNCH_RETURN_IF_ERROR(
      InRange("status.state", in.state(), v1::JOB_STATE_FORMING, v1::JOB_STATE_OVER));
  HLAUNCH_RETURN_IF_ERROR(OneLine("status.explanation", in.explanation(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("number of nodes", in.nodes_size(), 0, kMaxNodesShown));
  JobStatus out;
  out.job_id = in.job_id();
  out.state = static_cast<JobState>(in.state() - 1);
  out.explanation = in.explanation();
  out.round = in.round();
  out.min_nodes = in.min_nodes();
  out.max_nodes = in.max_nodes();
  out.restarts = in.restarts();
  out.uncounted = in.uncounted();
  out.max_restarts = in.max_restarts();
  out.exit_code = in.exit_code();
  out.total_nodes = in.total_nodes();
  for (const v1::NodeStatus& node : in.nodes()) {
    HLAUNCH_RETURN_IF_ERROR(OneLine("node.host", node.host(), kMaxNameBytes));
    HLAUNCH_RETURN_IF_ERROR(OneLine("node.address", node.address(), kMaxNameBytes));
    HLAUNCH_RETURN_IF_ERROR(OneLine("node.state", node.state(), kMaxNameBytes));
    HLAUNCH_RETURN_IF_ERROR(OneLine("node.drain_reason", node.drain_reason(), kMaxTextBytes));
    HLAUNCH_ASSIGN_OR_RETURN(const Duration silent,
                             DurationFromProto("node.silent_for", node.silent_for()));
    out.nodes.push_back({node.host(), node.address(), node.pid(),
                         node.has_node_rank() ? node.node_rank() : -1, node.nproc(), node.state(),
                         node.first_rank(), silent, node.drain_reason(), FromProto(node.figures()),
                         v1::NodeStanding_IsValid(node.standing())
                             ? static_cast<NodeStanding>(node.standing())
                             : NodeStanding::kUnknown});
  }
  HLAUNCH_RETURN_IF_ERROR(InRange("number of rounds", in.rounds_size(), 0, kMaxRoundsShown));
  for (const v1::RoundStatus& round : in.rounds()) {
    HLAUNCH_RETURN_IF_ERROR(OneLine("round.reason", round.reason(), kMaxTextBytes));
    out.rounds.push_back({round.round(), round.began_ms(), round.ran_ms(), round.stopping_ms(),
                          round.stopped_ms(), round.nodes(), round.world_size(), round.restarts(),
                          round.reason()});
  }
  out.began_ms = in.began_ms();
  out.told_ms = in.told_ms();
  HLAUNCH_ASSIGN_OR_RETURN(out.ran_for, DurationFromProto("ran_for", in.ran_for()));
  out.world_size = in.world_size();
  HLAUNCH_RETURN_IF_ERROR(HealthFromProto(in, out));
  return out;
}

v1::DrainNodeRequest ToProto(const DrainRequest& request) {
  v1::DrainNodeRequest out;
  out.set_node(ToUtf8(request.node, kMaxNameBytes));
  out.set_reason(ToUtf8(request.reason, kMaxTextBytes));
  *out.mutable_within() = DurationToProto(request.within);
  out.set_undrain(request.undrain);
  return out;
}

absl::StatusOr<DrainRequest> FromProto(const v1::DrainNodeRequest& in) {
  HLAUNCH_RETURN_IF_ERROR(OneLine("node", in.node(), kMaxNameBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("reason", in.reason(), kMaxTextBytes));
  if (in.node().empty()) return absl::InvalidArgumentError("no node is named");
  DrainRequest out = {in.node(), in.reason()};
  HLAUNCH_ASSIGN_OR_RETURN(out.within, DurationFromProto("within", in.within()));
  out.undrain = in.undrain();
  return out;
}

v1::RankQuestion ToProto(const RankQuestion& question) {
  v1::RankQuestion out;
  out.set_kind(static_cast<v1::RankQuestionKind>(static_cast<int>(question.kind) + 1));
  out.set_ranks(RankList(question.ranks));
  out.set_native(question.native);
  *out.mutable_patience() = DurationToProto(question.patience);
  return out;
}

absl::StatusOr<RankQuestion> FromProto(const v1::RankQuestion& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("question.kind", in.kind(), v1::RANK_QUESTION_KIND_WHY,
                                  v1::RANK_QUESTION_KIND_STACKS));
  HLAUNCH_RETURN_IF_ERROR(OneLine("question.ranks", in.ranks(), kMaxTextBytes));
  RankQuestion out;
  HLAUNCH_ASSIGN_OR_RETURN(out.patience, LimitFromProto("question.patience", in.patience()));
  if (out.patience > kMaxPatience) {
    return absl::InvalidArgumentError("question.patience is longer than 60 s");
  }
  out.kind = static_cast<RankQuestion::Kind>(in.kind() - 1);
  out.ranks = ParseRankList(in.ranks());
  if (out.ranks.empty() && !in.ranks().empty()) {
    return absl::InvalidArgumentError("question.ranks names no rank");
  }
  std::sort(out.ranks.begin(), out.ranks.end());
  out.native = in.native();
  return out;
}

v1::NodeQuestion ToProto(const NodeQuestion& question) {
  v1::NodeQuestion out;
  out.set_number(question.number);
  *out.mutable_question() = ToProto(question.question);
  out.set_max_bytes(static_cast<uint32_t>(question.max_bytes));
  return out;
}

absl::StatusOr<NodeQuestion> FromProto(const v1::NodeQuestion& in) {
  NodeQuestion out;
  HLAUNCH_ASSIGN_OR_RETURN(out.question, FromProto(in.question()));
  out.number = in.number();
  out.max_bytes = std::min<size_t>(in.max_bytes(), kMaxAnswerBytes);
  return out;
}

v1::NodeAnswer ToProto(const NodeAnswer& answer) {
  v1::NodeAnswer out;
  out.set_number(answer.number);
  out.set_text(answer.text);
  out.set_problem(ToUtf8(answer.problem, kMaxNameBytes));
  return out;
}

absl::StatusOr<NodeAnswer> FromProto(const v1::NodeAnswer& in) {
  HLAUNCH_RETURN_IF_ERROR(NotLonger("answer.text", in.text(), kMaxAnswerBytes));
  HLAUNCH_RETURN_IF_ERROR(OneLine("answer.problem", in.problem(), kMaxNameBytes));
  return NodeAnswer{in.number(), in.text(), in.problem()};
}

v1::RoundWord ToProto(const RoundWord& word) {
  v1::RoundWord out;
  out.set_round(word.round);
  out.set_node_rank(word.node_rank);
  out.set_text(word.text);
  return out;
}

absl::StatusOr<RoundWord> FromProto(const v1::RoundWord& in) {
  HLAUNCH_RETURN_IF_ERROR(NotLonger("word.text", in.text(), kMaxRoundWordBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("word.node_rank", in.node_rank(), 0, kMaxNodes - 1));
  return RoundWord{in.round(), in.node_rank(), in.text()};
}

v1::AskRanksResponse ToProto(const JobAnswer& answer) {
  v1::AskRanksResponse out;
  out.set_round(answer.round);
  out.set_world_size(answer.world_size);
  out.set_explanation(ToUtf8(answer.explanation, kMaxTextBytes));
  for (const NodeWord& word : answer.nodes) {
    v1::NodeWord& one = *out.add_nodes();
    one.set_host(ToUtf8(word.host, kMaxNameBytes));
    one.set_node_rank(word.node_rank);
    one.set_first_rank(word.first_rank);
    one.set_nproc(word.nproc);
    one.set_text(word.text);
    one.set_problem(ToUtf8(word.problem, kMaxNameBytes));
  }
  return out;
}

absl::StatusOr<JobAnswer> FromProto(const v1::AskRanksResponse& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("answer.round", in.round(), 0, kMaxRound));
  HLAUNCH_RETURN_IF_ERROR(InRange("answer.world_size", in.world_size(), 0, kMaxInt));
  HLAUNCH_RETURN_IF_ERROR(OneLine("answer.explanation", in.explanation(), kMaxTextBytes));
  HLAUNCH_RETURN_IF_ERROR(InRange("number of nodes", in.nodes_size(), 0, kMaxNodes));
  JobAnswer out{in.round(), in.world_size(), in.explanation(), {}};
  for (const v1::NodeWord& word : in.nodes()) {
    HLAUNCH_RETURN_IF_ERROR(OneLine("node.host", word.host(), kMaxNameBytes));
    HLAUNCH_RETURN_IF_ERROR(OneLine("node.problem", word.problem(), kMaxNameBytes));
    HLAUNCH_RETURN_IF_ERROR(NotLonger("node.text", word.text(), kMaxAnswerBytes));
    HLAUNCH_RETURN_IF_ERROR(InRange("node.node_rank", word.node_rank(), 0, kMaxNodes - 1));
    HLAUNCH_RETURN_IF_ERROR(InRange("node.first_rank", word.first_rank(), 0, kMaxInt - kMaxNproc));
    HLAUNCH_RETURN_IF_ERROR(InRange("node.nproc", word.nproc(), 1, kMaxNproc));
    out.nodes.push_back({word.host(), word.node_rank(), word.first_rank(), word.nproc(),
                         word.text(), word.problem()});
  }
  return out;
}

}  // namespace hlaunch
