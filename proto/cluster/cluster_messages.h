// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/cluster/host_name.h"

// What users, node daemons and the head of a cluster of one's own say to each other: the bodies of
// envelopes. Each is a value with ToJson and a reader that is strict about types and limits; what
// is missing has the value that a new one has, so an older or a newer version can be understood.
// All is pure.

namespace hlaunch {

inline constexpr uint16_t kClusterPort = 29400;  // The head's.
inline constexpr size_t kMaxClusterHosts = 16384;
inline constexpr size_t kMaxDevices = 1024;  // Of a host.
// The version of what is said. Both neighbours of a version are understood.
inline constexpr int kClusterProtocol = 1;

// ---- A job.

// What a user wants to be started. Of `submit`.
struct JobRequest {
  std::string name;                  // For people: the script's name.
  int min_nodes = 1, max_nodes = 1;  // As --nnodes has them.
  int workers = 1;                   // On each node; 0: as many as it has free devices of a kind.
  std::string devices = "auto";      // "auto", "none", or a kind: "hpu", "cuda" …
  std::vector<std::string> hosts;    // Only on these; empty: on any.
  std::vector<std::string> labels;   // Only on hosts that have all of these.
  bool exclusive = false;            // Nobody else on its hosts.
  int spares = 0;                    // Further nodes that stand by, where they are free.
  std::vector<std::string> options;  // hlaunch's words, without those that are decided above,
  std::vector<std::string> script;   // and the program's.
  std::vector<std::string> environment;  // NAME=value each.
  std::vector<std::string> limits;       // As StartMessage has them.
  std::string directory;
  int umask = 022;
  int grace_s = 30;

  bool operator==(const JobRequest&) const = default;
};

enum class ClusterJobState {
  kWaiting,   // For nodes.
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

// A job as those see it who may. Of `jobs` and `job`.
struct JobView {
  uint64_t number = 0;   // Its id.
  uint64_t version = 0;  // Another one whenever anything here is another.
  std::string user;
  std::string name;
  ClusterJobState state = ClusterJobState::kWaiting;
  std::string why;  // What it waits for, or how it ended, in words.
  int min_nodes = 1, max_nodes = 1, workers = 1;
  std::string device_kind;                                 // What its workers hold; empty: slots.
  std::vector<PartView> parts;                             // By node rank.
  int64_t submitted_ms = 0, started_ms = 0, ended_ms = 0;  // Since 1970; 0: not yet.
  std::optional<int> exit_code;
  int round = 0;
  int restarts = 0;
  double goodput = -1;  // 0 to 1; -1: nobody has said.
  // Only for its user and admins:
  std::vector<std::string> words;  // The command line.

  bool operator==(const JobView&) const = default;
};

// Where the job's own rendezvous is, for `status`, `why`, `stacks`. Of `meeting`, for its user.
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
  std::string fault;  // Why nobody gets it; empty: it is well.

  bool operator==(const DeviceFact&) const = default;
};

// What a node daemon says of its host when it comes, and whenever that has changed. Of `host`.
struct HostFacts {
  int protocol = kClusterProtocol;
  std::string version;  // Of hlaunch.
  std::string boot_id;
  std::vector<DeviceFact> devices;
  int slots = 0;  // Workers without devices at the same time.
  std::vector<std::string> labels;
  std::string trouble;  // Why it can take no part, in words; empty: it can.

  bool operator==(const HostFacts&) const = default;
};

enum class PartState {
  kStarting,
  kRunning,  // A worker runs.
  kEnded,    // The holder has kept its exit code.
  kLost,     // The holder is gone without a word: killed, or the host was started anew.
  kFailed,   // It could not be started; `trouble` says why.
};

// What a node daemon says of a part of a job on its host. All of them after `host`, each whenever
// it has changed. Of `part`.
struct PartTold {
  uint64_t job = 0;
  PartState state = PartState::kStarting;
  std::string meeting;  // HOST:PORT where its agent hosts the job's rendezvous; empty: not (yet).
  std::optional<int> exit_code;
  std::string trouble;
  int round = 0;
  int restarts = 0;
  double goodput = -1;

  bool operator==(const PartTold&) const = default;
};

// ---- What the head orders of a node daemon. Each is a question with an empty answer, or an error.

// Of `start`. A part that is there already is told again and not started twice.
struct PartOrder {
  uint64_t job = 0;
  int node_rank = 0;
  int min_nodes = 1, max_nodes = 1;
  int spares = 0;
  std::string user;
  uint32_t uid = 0;
  std::string meeting;       // Where to join; empty: this node hosts, and tells where.
  std::string token;         // The job's secret.
  std::vector<int> devices;  // By id.
  std::string device_kind;   // Empty: none.
  int workers = 1;
  JobRequest request;

  bool operator==(const PartOrder&) const = default;
};

// Of `signal`: SIGTERM has the job end by itself; SIGKILL ends its processes here at once.
struct SignalOrder {
  uint64_t job = 0;
  int signal = 15;

  bool operator==(const SignalOrder&) const = default;
};

// Of `forget`: the part has ended, and the head knows; its log stays for a while.
struct ForgetOrder {
  uint64_t job = 0;

  bool operator==(const ForgetOrder&) const = default;
};

// ---- Logs. A user's `log` names a job and a node, the head asks that node's host the same.

struct LogQuestion {
  uint64_t job = 0;
  int node_rank = 0;
  std::string position;  // Where the last answer ended; empty: from the first line that is there.
  int tail = -1;         // Of an empty position: only so many last lines; -1: all.
  int wait_s = 0;        // Wait so long, at most 20 s, until there is something.

  bool operator==(const LogQuestion&) const = default;
};

struct LogAnswer {
  // Whole lines of a detached job's log (launcher/detached/log_line.h). Zero bytes are sent as
  // U+FFFD.
  std::string text;
  std::string position;  // For the next question.
  bool lost = false;     // Lines between the last position and this text are gone.
  bool ended = false;    // Nothing follows: the job has ended, and this is the end of its log.

  bool operator==(const LogAnswer&) const = default;
};

// ---- Users' other questions; none has a field but these.

// Of `jobs`: those of the user, of all with `all`; with `ended` those that have ended, too.
struct JobsQuestion {
  bool all = false;
  bool ended = false;

  bool operator==(const JobsQuestion&) const = default;
};

// Of `job`: answers when the job's version is not `seen` any more, after `wait_s` at the latest.
struct JobQuestion {
  uint64_t job = 0;
  uint64_t seen = 0;
  int wait_s = 0;  // At most 20.

  bool operator==(const JobQuestion&) const = default;
};

// Of `stop` and `kill`; `meeting` takes the number alone, too.
struct StopQuestion {
  uint64_t job = 0;
  int grace_s = -1;  // -1: the job's own.

  bool operator==(const StopQuestion&) const = default;
};

// Of `drain` (`reason` is not empty) and `undrain`; for admins. What runs there goes on: no new job
// is placed there. `evict_s` of zero or more: jobs of several nodes there are asked to move at
// once, and what still runs there after so many seconds is stopped. -1: all stay.
struct DrainQuestion {
  std::string host;
  std::string reason;
  int evict_s = -1;

  bool operator==(const DrainQuestion&) const = default;
};

// A host as users see it. Of `nodes`.
struct HostView {
  std::string name;
  std::string state;  // "free", "busy", "full", "drained", "away", "unfit".
  std::string why;    // Of drained, away and unfit.
  std::string version;
  std::string device_kind;  // Of most of its devices; empty: it has none.
  int devices = 0, devices_free = 0;
  int slots = 0, slots_free = 0;
  std::vector<std::string> labels;
  std::vector<uint64_t> jobs;
  int64_t seen_ms = 0;  // When it was last heard of; 0: it is connected.
  int64_t stop_ms = 0;  // Of drained: when what runs there is stopped, since 1970; 0: it is not.

  bool operator==(const HostView&) const = default;
};

// Each has these two; the reader's errors are
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
