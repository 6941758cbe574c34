// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/hlcomm.h"

#include <unistd.h>

#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/bootstrap.h"
#include "comm/liveness.h"
#include "comm/process_group.h"
#include "proto/base/status_macros.h"

struct hlcomm_group {
  std::unique_ptr<hlaunch::ProcessGroup> group;
  std::optional<hlaunch::Duration> timeout =
      std::nullopt;  // For its collectives; unset: the group's.
};

struct hlcomm_work {
  hlaunch::WorkPtr work;
};

namespace hlaunch {
namespace {

static_assert(HLCOMM_BARRIER == static_cast<int>(Verb::kBarrier));
static_assert(HLCOMM_ALL_TO_ALL == static_cast<int>(Verb::kAllToAll));
static_assert(HLCOMM_BOOL == static_cast<int>(DataType::kBool) && HLCOMM_BOOL + 1 == kDataTypes);
static_assert(HLCOMM_PREMUL_SUM == static_cast<int>(ReduceOp::kPremulSum) &&
              HLCOMM_PREMUL_SUM + 1 == kReduceOps);

thread_local std::string last_error;

// Returns the code for `status` that the header promises; its message becomes hlcomm_error().
int Report(const absl::Status& status) noexcept {
  if (status.ok()) return HLCOMM_OK;
  try {
    last_error = std::string(status.message());
  } catch (...) {
    last_error.clear();
  }
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
      return HLCOMM_CANCELLED;
    case absl::StatusCode::kInvalidArgument:
      return HLCOMM_INVALID_ARGUMENT;
    case absl::StatusCode::kDeadlineExceeded:
      return HLCOMM_DEADLINE_EXCEEDED;
    case absl::StatusCode::kResourceExhausted:
      return HLCOMM_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kUnavailable:
      return HLCOMM_UNAVAILABLE;
    default:
      return HLCOMM_INTERNAL;
  }
}

// Reports the status that `body` returns. No exception leaves: memory or threads may be used up.
template <typename Body>
int Guarded(Body body) noexcept {
  try {
    return Report(body());
  } catch (const std::bad_alloc&) {
    return Report(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return Report(absl::InternalError(error.what()));
  } catch (...) {
    return Report(absl::InternalError("an unknown exception"));
  }
}

absl::Status Null(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " is NULL"));
}

// Longer times are cut to this, so that no clock overflows.
constexpr double kMostSeconds = 1e9;

std::optional<Duration> Positive(double seconds) {
  if (!(seconds > 0)) return std::nullopt;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::fmin(seconds, kMostSeconds)));
}

std::optional<Duration> Timeout(const hlcomm_group& group, const hlcomm_call& call) {
  const auto own = Positive(call.timeout_s);
  return own.has_value() ? own : group.timeout;
}

absl::StatusOr<DataType> Type(int type) {
  if (type < 0 || type >= kDataTypes) {
    return absl::InvalidArgumentError(absl::StrCat(type, " is no hlcomm_type"));
  }
  return static_cast<DataType>(type);
}

absl::StatusOr<size_t> Bytes(const void* memory, size_t count, DataType type, const char* what) {
  const size_t element = ElementSize(type);
  if (count > SIZE_MAX / 2 / element) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is of ", count, " elements"));
  }
  if (memory == nullptr && count != 0) return Null(what);
  return count * element;
}

absl::StatusOr<std::span<const std::byte>> From(const void* from, size_t count, DataType type) {
  HLAUNCH_ASSIGN_OR_RETURN(const size_t bytes, Bytes(from, count, type, "from"));
  return std::span(static_cast<const std::byte*>(from), bytes);
}

absl::StatusOr<std::span<std::byte>> Into(void* into, size_t count, DataType type) {
  HLAUNCH_ASSIGN_OR_RETURN(const size_t bytes, Bytes(into, count, type, "into"));
  return std::span(static_cast<std::byte*>(into), bytes);
}

std::vector<size_t> Counts(const size_t* counts, int size) {
  return counts == nullptr ? std::vector<size_t>() : std::vector<size_t>(counts, counts + size);
}

absl::StatusOr<Collective> ToCollective(const hlcomm_group* group, const hlcomm_call* call) {
  if (group == nullptr) return Null("group");
  if (call == nullptr) return Null("call");
  HLAUNCH_ASSIGN_OR_RETURN(const DataType type, Type(call->type));
  if (call->op < 0 || call->op >= kReduceOps) {
    return absl::InvalidArgumentError(absl::StrCat(call->op, " is no hlcomm_op"));
  }
  const auto op = static_cast<ReduceOp>(call->op);
  HLAUNCH_ASSIGN_OR_RETURN(const auto from, From(call->from, call->from_count, type));
  HLAUNCH_ASSIGN_OR_RETURN(const auto into, Into(call->into, call->into_count, type));
  const int size = group->group->size();
  switch (call->verb) {
    case HLCOMM_BARRIER:
      return Barrier();
    case HLCOMM_BROADCAST:
      return Broadcast(type, into, call->root);
    case HLCOMM_ALL_REDUCE:
      return AllReduce(type, op, from, into, call->factor);
    case HLCOMM_REDUCE:
      return Reduce(type, op, from, into, call->root, call->factor);
    case HLCOMM_ALL_GATHER:
      return AllGather(type, from, into, Counts(call->get, size));
    case HLCOMM_GATHER:
      return Gather(type, from, into, call->root);
    case HLCOMM_SCATTER:
      return Scatter(type, from, into, call->root);
    case HLCOMM_REDUCE_SCATTER:
      return ReduceScatter(type, op, from, into, Counts(call->give, size), call->factor);
    case HLCOMM_ALL_TO_ALL:
      return AllToAll(type, from, into, Counts(call->give, size), Counts(call->get, size));
    default:
      return absl::InvalidArgumentError(absl::StrCat(call->verb, " is no hlcomm_verb"));
  }
}

Environment ReadEnvironment() {
  Environment environment;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view pair = *at;
    const size_t equals = pair.find('=');
    if (equals != pair.npos) environment.emplace(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return environment;
}

absl::Status HandOver(absl::StatusOr<std::unique_ptr<ProcessGroup>> made, hlcomm_group** group) {
  HLAUNCH_RETURN_IF_ERROR(made.status());
  if (*made != nullptr) *group = new hlcomm_group{*std::move(made)};
  return absl::OkStatus();
}

absl::Status HandOver(WorkPtr begun, hlcomm_work** work) {
  *work = new hlcomm_work{std::move(begun)};
  return absl::OkStatus();
}

absl::Status StartSend(hlcomm_group* group, int type, const void* from, size_t count, int to,
                       uint64_t tag, WorkPtr* work) {
  if (group == nullptr) return Null("group");
  HLAUNCH_ASSIGN_OR_RETURN(const DataType element, Type(type));
  HLAUNCH_ASSIGN_OR_RETURN(const auto bytes, From(from, count, element));
  *work = group->group->StartSend(element, bytes, to, tag);
  return absl::OkStatus();
}

absl::Status StartRecv(hlcomm_group* group, int type, void* into, size_t count, int from,
                       uint64_t tag, WorkPtr* work) {
  if (group == nullptr) return Null("group");
  HLAUNCH_ASSIGN_OR_RETURN(const DataType element, Type(type));
  HLAUNCH_ASSIGN_OR_RETURN(const auto bytes, Into(into, count, element));
  *work = group->group->StartRecv(element, bytes, from, tag);
  return absl::OkStatus();
}

}  // namespace
}  // namespace hlaunch

using hlaunch::Guarded;
using hlaunch::HandOver;
using hlaunch::Null;
using hlaunch::Positive;

int hlcomm_abi_version(void) { return HLCOMM_ABI_VERSION; }

const char* hlcomm_error(void) { return hlaunch::last_error.c_str(); }

int hlcomm_init(const char* url, int rank, int size, const char* name, double timeout_s,
                hlcomm_group** group) {
  return Guarded([&]() -> absl::Status {
    if (group == nullptr) return Null("group");
    *group = nullptr;
    if (url == nullptr) return Null("url");
    hlaunch::GroupOptions options;
    if (name != nullptr) options.name = name;
    if (const auto timeout = Positive(timeout_s)) options.timeout = *timeout;
    return HandOver(hlaunch::InitProcessGroup(url, rank, size, options, hlaunch::ReadEnvironment()),
                    group);
  });
}

void hlcomm_free(hlcomm_group* group) {
  Guarded([&] {
    delete group;
    return absl::OkStatus();
  });
}

void hlcomm_leave(hlcomm_group* group, const char* why) {
  Guarded([&] {
    if (group != nullptr && why != nullptr) group->group->SayGoodbye(why);
    return absl::OkStatus();
  });
  hlcomm_free(group);
}

int hlcomm_rank(const hlcomm_group* group) {
  if (group == nullptr) hlaunch::Report(Null("group"));
  return group == nullptr ? -1 : group->group->rank();
}

int hlcomm_size(const hlcomm_group* group) {
  if (group == nullptr) hlaunch::Report(Null("group"));
  return group == nullptr ? -1 : group->group->size();
}

int hlcomm_new_group(hlcomm_group* group, const int* ranks, int count, double timeout_s,
                     hlcomm_group** sub) {
  return Guarded([&]() -> absl::Status {
    if (sub == nullptr) return Null("sub");
    *sub = nullptr;
    if (group == nullptr) return Null("group");
    if (ranks == nullptr) return Null("ranks");
    if (count < 1) return absl::InvalidArgumentError(absl::StrCat("a group of ", count, " ranks"));
    const std::vector<hlaunch::Rank> members(ranks, ranks + count);
    HLAUNCH_RETURN_IF_ERROR(HandOver(group->group->NewGroup(members), sub));
    if (*sub != nullptr) (*sub)->timeout = Positive(timeout_s);
    return absl::OkStatus();
  });
}

int hlcomm_run(hlcomm_group* group, const hlcomm_call* call) {
  return Guarded([&]() -> absl::Status {
    HLAUNCH_ASSIGN_OR_RETURN(auto collective, hlaunch::ToCollective(group, call));
    return group->group->Run(std::move(collective), hlaunch::Timeout(*group, *call));
  });
}

int hlcomm_start(hlcomm_group* group, const hlcomm_call* call, hlcomm_work** work) {
  return Guarded([&]() -> absl::Status {
    if (work == nullptr) return Null("work");
    *work = nullptr;
    HLAUNCH_ASSIGN_OR_RETURN(auto collective, hlaunch::ToCollective(group, call));
    return HandOver(group->group->Start(std::move(collective), hlaunch::Timeout(*group, *call)),
                    work);
  });
}

int hlcomm_send(hlcomm_group* group, int type, const void* from, size_t count, int to,
                uint64_t tag) {
  return Guarded([&]() -> absl::Status {
    hlaunch::WorkPtr work;
    HLAUNCH_RETURN_IF_ERROR(hlaunch::StartSend(group, type, from, count, to, tag, &work));
    return work->Wait();
  });
}

int hlcomm_recv(hlcomm_group* group, int type, void* into, size_t count, int from, uint64_t tag,
                int* source) {
  return Guarded([&]() -> absl::Status {
    hlaunch::WorkPtr work;
    HLAUNCH_RETURN_IF_ERROR(hlaunch::StartRecv(group, type, into, count, from, tag, &work));
    HLAUNCH_RETURN_IF_ERROR(work->Wait());
    if (source != nullptr) *source = work->source();
    return absl::OkStatus();
  });
}

int hlcomm_start_send(hlcomm_group* group, int type, const void* from, size_t count, int to,
                      uint64_t tag, hlcomm_work** work) {
  return Guarded([&]() -> absl::Status {
    if (work == nullptr) return Null("work");
    *work = nullptr;
    hlaunch::WorkPtr begun;
    HLAUNCH_RETURN_IF_ERROR(hlaunch::StartSend(group, type, from, count, to, tag, &begun));
    return HandOver(std::move(begun), work);
  });
}

int hlcomm_start_recv(hlcomm_group* group, int type, void* into, size_t count, int from,
                      uint64_t tag, hlcomm_work** work) {
  return Guarded([&]() -> absl::Status {
    if (work == nullptr) return Null("work");
    *work = nullptr;
    hlaunch::WorkPtr begun;
    HLAUNCH_RETURN_IF_ERROR(hlaunch::StartRecv(group, type, into, count, from, tag, &begun));
    return HandOver(std::move(begun), work);
  });
}

int hlcomm_wait(hlcomm_work* work, double timeout_s) {
  return Guarded([&]() -> absl::Status {
    if (work == nullptr) return Null("work");
    if (timeout_s == 0) return work->work->Wait(hlaunch::Duration::zero());
    return work->work->Wait(Positive(timeout_s));
  });
}

int hlcomm_done(hlcomm_work* work) {
  bool done = true;  // So that no caller waits for a call that does not exist.
  Guarded([&]() -> absl::Status {
    if (work == nullptr) return Null("work");
    done = work->work->Done();
    return absl::OkStatus();
  });
  return done ? 1 : 0;
}

int hlcomm_source(const hlcomm_work* work) {
  if (work == nullptr) hlaunch::Report(Null("work"));
  return work == nullptr ? -1 : work->work->source();
}

void hlcomm_free_work(hlcomm_work* work) {
  Guarded([&] {
    delete work;
    return absl::OkStatus();
  });
}

int hlcomm_monitored_barrier(hlcomm_group* group, double timeout_s) {
  return Guarded([&]() -> absl::Status {
    if (group == nullptr) return Null("group");
    return group->group->MonitoredBarrier(
        Positive(timeout_s).value_or(group->group->options().timeout));
  });
}

int hlcomm_heartbeat(int64_t step, double timeout_s) {
  return hlaunch::SendHeartbeat(step, timeout_s) ? 1 : 0;
}

void hlcomm_abort(hlcomm_group* group, const char* why) {
  Guarded([&]() -> absl::Status {
    if (group == nullptr) return Null("group");
    group->group->Abort(why == nullptr ? "aborted" : why);
    return absl::OkStatus();
  });
}
