// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/cluster/host_name.h"

// The messages between users, node daemons and the head of a cluster of hlaunchd: the bodies of
// envelopes. Each is a value with ToJson and a reader that is strict about types and limits. A
// missing field keeps its default, so that an older or a newer version is understood. All is pure.

namespace hlaunch {

inline constexpr uint16_t kClusterPort =
    29401;  // Of the head: 29400 is that of a job or a service.
inline constexpr size_t kMaxClusterHosts = 16384;
inline constexpr size_t kMaxDevices = 1024;  // Of one host.
// The version of these messages. A version understands the one before it and the one after it.
inline constexpr int kClusterProtocol = 1;

// ---- A job.

// What a user wants to start. The body of `submit`.
struct JobRequest {
  std::string name;                      // For people: the script's name.
  int min_nodes = 1, max_nodes = 1;      // As in --nnodes.
  int workers = 1;                       // On each node; 0: as many as its free devices of a kind.
  std::string devices = "auto";          // "auto", "none", or kinds: "hpu", "cuda,rocm" …
  std::vector<std::string> hosts;        // Only on these hosts; empty: on any.
  std::vector<std::string> labels;       // Only on hosts that have all of these.
  bool exclusive = false;                // No other job runs on its hosts.
  int spares = 0;                        // Further nodes that stand by, if they are free.
  std::vector<std::string> options;      // hlaunch's options, without those of the fields above,
  std::vector<std::string> script;       // and the words of the program.
  std::vector<std::string> environment;  // NAME=value each.
  std::vector<std::string> limits;       // As in StartMessage.
  std::string directory;
  int umask = 022;
  int grace_s = 30;

  bool operator==(const JobRequest&) const = default;
};

enum class ClusterJobState {
  kWaiting,   // It waits for nodes.
  kStarting,  // Its nodes are starting.
  kRunning,
  kEnding,  // It was told to stop.
  kEnded,
};
const char* ClusterJobStateName(ClusterJobState state);  // "waiting", …

// One node's part of a job, as users see it.
struct PartView {
  int node_rank = 0;
  std::string host;
  std::string state;  // "starting", "running", "ended", "lost", and why.
  std::vector<int> devices;
  std::optional<int> exit_code;

  bool operator==(const PartView&) const = default;
};

// A job as shown to users who may see it. Answers `jobs` and `job`.
struct JobView {
  uint64_t number = 0;   // Its id.
  uint64_t version = 0;  // Changes whenever a field here changes.
  std::string user;
  std::string name;
  ClusterJobState state = ClusterJobState::kWaiting;
  std::string why;  // What it waits for, or how it ended, in words.
  int min_nodes = 1, max_nodes = 1, workers = 1;
  std::string device_kind;      // The devices of its workers; empty: slots.
  std::vector<PartView> parts;  // By node rank.
  int64_t submitted_ms = 0, started_ms = 0, ended_ms = 0;  // Since 1970; 0: not yet.
  std::optional<int> exit_code;
  int round = 0;
  int restarts = 0;
  double goodput = -1;  // 0 to 1; -1: unknown.
  // Only for its user and admins:
  std::vector<std::string> words;  // The command line.

  bool operator==(const JobView&) const = default;
};

// Where the job's own rendezvous is, for `status`, `why`, `stacks`. Answers `meeting`, for its
// user.
struct MeetingAnswer {
  std::string endpoint;  // HOST:PORT.
  std::string token;     // Secret.

  bool operator==(const MeetingAnswer&) const = default;
};

// ---- A host.

// An accelerator.
struct DeviceFact {
  int id = 0;
  std::string kind;   // "hpu", …
  std::string fault;  // Why no job gets it; empty: it is healthy.

  bool operator==(const DeviceFact&) const = default;
};

// What a node daemon reports of its host when it connects and after each change. The body of
// `host`.
struct HostFacts {
  int protocol = kClusterProtocol;
  std::string version;  // The version of hlaunch.
  std::string boot_id;
  std::vector<DeviceFact> devices;
  int slots = 0;  // How many workers without devices may run at a time.
  std::vector<std::string> labels;
  std::string trouble;  // Why it takes no part, in words; empty: it does.

  bool operator==(const HostFacts&) const = default;
};

enum class PartState {
  kStarting,
  kRunning,  // A worker runs.
  kEnded,    // The holder has recorded its exit code.
  kLost,     // The holder is gone without a record: killed, or the host rebooted.
  kFailed,   // It could not be started; `trouble` says why.
};

// What a node daemon reports of a part of a job on its host: all parts after `host`, then each part
// after each change. The body of `part`.
struct PartTold {
  uint64_t job = 0;
  PartState state = PartState::kStarting;
  std::string meeting;  // HOST:PORT if its agent hosts the job's rendezvous; else empty.
  std::optional<int> exit_code;
  std::string trouble;
  int round = 0;
  int restarts = 0;
  double goodput = -1;

  bool operator==(const PartTold&) const = default;
};

// ---- Orders of the head to a node daemon. Each is a question with an empty answer, or an error.

// The body of `start`. A part that exists already is reported again and not started twice.
struct PartOrder {
  uint64_t job = 0;
  int node_rank = 0;
  int min_nodes = 1, max_nodes = 1;
  int spares = 0;
  std::string user;
  uint32_t uid = 0;
  std::string meeting;       // Where to join; empty: this node hosts and reports where.
  std::string token;         // The job's secret.
  std::vector<int> devices;  // By id.
  std::string device_kind;   // Empty: none.
  int workers = 1;
  JobRequest request;

  bool operator==(const PartOrder&) const = default;
};

// The body of `signal`. SIGTERM makes the job end by itself; SIGKILL ends its processes on this
// host at once.
struct SignalOrder {
  uint64_t job = 0;
  int signal = 15;

  bool operator==(const SignalOrder&) const = default;
};

// The body of `forget`: the part has ended and the head knows it. Its log stays for a while.
struct ForgetOrder {
  uint64_t job = 0;

  bool operator==(const ForgetOrder&) const = default;
};

// ---- Logs. A user's `log` names a job and a node; the head asks that node's host the same.

struct LogQuestion {
  uint64_t job = 0;
  int node_rank = 0;
  std::string position;  // Where the last answer ended; empty: from the first line on.
  int tail = -1;         // If `position` is empty: how many last lines; -1: all.
  int wait_s = 0;        // How long to wait for a new line, at most 20 s.

  bool operator==(const LogQuestion&) const = default;
};

struct LogAnswer {
  // Whole lines of a detached job's log (launcher/remote/detached/log_line.h). Zero bytes are sent
  // as U+FFFD.
  std::string text;
  std::string position;  // For the next question.
  bool lost = false;     // Lines between the last position and this text are gone.
  bool ended = false;    // Nothing follows: the job has ended, and this is the end of its log.

  bool operator==(const LogAnswer&) const = default;
};

// ---- Other questions of users; none has a field but these.

// The body of `jobs`: the user's jobs, or with `all` those of all users; with `ended` also ended
// jobs.
struct JobsQuestion {
  bool all = false;
  bool ended = false;

  bool operator==(const JobsQuestion&) const = default;
};

// The body of `job`. The answer comes once the job's version differs from `seen`, after `wait_s` at
// the latest.
struct JobQuestion {
  uint64_t job = 0;
  uint64_t seen = 0;
  int wait_s = 0;  // At most 20.

  bool operator==(const JobQuestion&) const = default;
};

// The body of `stop` and `kill`. `meeting` takes only the number.
struct StopQuestion {
  uint64_t job = 0;
  int grace_s = -1;  // -1: the job's own.

  bool operator==(const StopQuestion&) const = default;
};

// The body of `drain` (`reason` is not empty) and `undrain`; for admins. No new job is placed on
// the host, and what runs there goes on. If `evict_s` is zero or more, jobs of several nodes there
// are asked to move at once, and what still runs there after this many seconds is stopped. -1: all
// stay.
struct DrainQuestion {
  std::string host;
  std::string reason;
  int evict_s = -1;

  bool operator==(const DrainQuestion&) const = default;
};

// A host as users see it. Answers `nodes`.
struct HostView {
  std::string name;
  std::string state;  // "free", "busy", "full", "drained", "away", "unfit".
  std::string why;    // If drained, away or unfit.
  std::string version;
  std::string device_kind;  // The kind of most of its devices; empty: it has none.
  int devices = 0, devices_free = 0;
  int slots = 0, slots_free = 0;
  std::vector<std::string> labels;
  std::vector<uint64_t> jobs;
  int64_t seen_ms = 0;  // When the head last heard of it; 0: it is connected.
  int64_t stop_ms = 0;  // If drained: when its jobs are stopped, since 1970; 0: never.

  bool operator==(const HostView&) const = default;
};

// Each message has these two functions. The reader's errors are
//   InvalidArgument - a field is wrong; the message names it.
#define HLAUNCH_CLUSTER_MESSAGE(Type)         \
  nlohmann::json ToJson(const Type& message); \
  absl::StatusOr<Type> Read##Type(const nlohmann::json& body)
HLAUNCH_CLUSTER_MESSAGE(JobRequest);
HLAUNCH_CLUSTER_MESSAGE(PartView);
HLAUNCH_CLUSTER_MESSAGE(JobView);
HLAUNCH_CLUSTER_MESSAGE(MeetingAnswer);
HLAUNCH_CLUSTER_MESSAGE(DeviceFact);
HLAUNCH_CLUSTER_MESSAGE(HostFacts);
HLAUNCH_CLUSTER_MESSAGE(PartTold);
HLAUNCH_CLUSTER_MESSAGE(PartOrder);
HLAUNCH_CLUSTER_MESSAGE(SignalOrder);
HLAUNCH_CLUSTER_MESSAGE(ForgetOrder);
HLAUNCH_CLUSTER_MESSAGE(LogQuestion);
HLAUNCH_CLUSTER_MESSAGE(LogAnswer);
HLAUNCH_CLUSTER_MESSAGE(JobsQuestion);
HLAUNCH_CLUSTER_MESSAGE(JobQuestion);
HLAUNCH_CLUSTER_MESSAGE(StopQuestion);
HLAUNCH_CLUSTER_MESSAGE(DrainQuestion);
HLAUNCH_CLUSTER_MESSAGE(HostView);
#undef HLAUNCH_CLUSTER_MESSAGE

}  // namespace hlaunch
