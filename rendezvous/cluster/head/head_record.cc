// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/head_record.h"

#include <limits>
#include <utility>

#include "proto/base/status_macros.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
constexpr int kMost = std::numeric_limits<int>::max();
constexpr size_t kMaxRecordedText = 64 << 10;

// The record stores states by number, so their numbers never change.
constexpr int kJobStates = 5, kPartStates = 5;

nlohmann::json PartToJson(const HeadPart& part) {
  nlohmann::json json = {{"node_rank", part.node_rank},
                         {"host", part.host},
                         {"boot_id", part.boot_id},
                         {"devices", part.devices},
                         {"slots", part.slots},
                         {"workers", part.workers},
                         {"state", static_cast<int>(part.state)},
                         {"signalled", part.signalled},
                         {"is_leaving", part.is_leaving},
                         {"trouble", part.trouble}};
  if (part.exit_code) json["exit_code"] = *part.exit_code;
  return json;
}

void ReadExitCode(JsonFields& fields, std::optional<int>* code) {
  if (!fields.Has("exit_code")) return;
  int value = 0;
  fields.Number("exit_code", &value, -1, 511);
  *code = value;
}

absl::StatusOr<HeadPart> ReadPart(const nlohmann::json& body) {
  HeadPart part;
  JsonFields fields(body, "part");
  int state = 0;
  fields.Number("node_rank", &part.node_rank, 0, kMost);
  fields.Text("host", &part.host, kMaxHostName);
  fields.Text("boot_id", &part.boot_id);
  fields.Numbers("devices", &part.devices, 0, kMost, kMaxDevices);
  fields.Number("slots", &part.slots, 0, kMost);
  fields.Number("workers", &part.workers, 0, kMost);
  fields.Number("state", &state, 0, kPartStates - 1);
  fields.Number("signalled", &part.signalled, 0, 64);
  fields.Flag("is_leaving", &part.is_leaving);
  fields.Text("trouble", &part.trouble, kMaxRecordedText);
  ReadExitCode(fields, &part.exit_code);
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  part.state = static_cast<PartState>(state);
  return part;
}

void ReadWords(JsonFields& fields, HeadJob* job) {
  fields.Text("user", &job->user);
  fields.Text("why", &job->why, kMaxRecordedText);
  fields.Text("told_to_end", &job->told_to_end, kMaxRecordedText);
  fields.Text("token", &job->token);
  fields.Text("meeting", &job->meeting);
  fields.Text("device_kind", &job->device_kind);
}

void ReadNumbers(JsonFields& fields, HeadJob* job) {
  int state = 0;
  int64_t uid = 0;
  fields.Number("number", &job->number);
  fields.Number("uid", &uid, 0, std::numeric_limits<uint32_t>::max());
  fields.Number("state", &state, 0, kJobStates - 1);
  fields.Number("signal", &job->signal, 0, 64);
  fields.Number("grace_s", &job->grace_s, 0, kMost);
  fields.Number("spares", &job->spares, 0, kMost);
  fields.Number("submitted_ms", &job->submitted_ms, 0, kLatest);
  fields.Number("started_ms", &job->started_ms, 0, kLatest);
  fields.Number("ended_ms", &job->ended_ms, 0, kLatest);
  ReadExitCode(fields, &job->exit_code);
  fields.Number("round", &job->round, 0, kMost);
  fields.Number("restarts", &job->restarts, 0, kMost);
  fields.Real("goodput", &job->goodput, -1, 1);
  job->uid = static_cast<uint32_t>(uid);
  job->state = static_cast<ClusterJobState>(state);
}

nlohmann::json HostToJson(const HeadHost& host) {
  nlohmann::json json = {{"name", host.name},
                         {"drained", host.drained},
                         {"stop_ms", host.stop_ms},
                         {"seen_ms", host.connected ? 0 : host.seen_ms}};
  if (host.facts) json["facts"] = ToJson(*host.facts);
  return json;
}

absl::StatusOr<HeadHost> ReadHost(const nlohmann::json& body) {
  HeadHost host;
  JsonFields fields(body, "host");
  fields.Text("name", &host.name, kMaxHostName);
  fields.Text("drained", &host.drained);
  fields.Number("stop_ms", &host.stop_ms, 0, kLatest);
  fields.Number("seen_ms", &host.seen_ms, 0, kLatest);
  const nlohmann::json* facts = fields.Object("facts");
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  if (!IsClusterHostName(host.name)) return absl::InvalidArgumentError("host: name is none");
  if (facts != nullptr) {
    HLAUNCH_ASSIGN_OR_RETURN(host.facts, ReadHostFacts(*facts));
  }
  return host;
}

}  // namespace

nlohmann::json JobToJson(const HeadJob& job) {
  nlohmann::json json = {
      {"number", job.number},
      {"user", job.user},
      {"uid", job.uid},
      {"request", ToJson(job.request)},
      {"state", static_cast<int>(job.state)},
      {"why", job.why},
      {"told_to_end", job.told_to_end},
      {"signal", job.signal},
      {"grace_s", job.grace_s},
      {"token", job.token},
      {"meeting", job.meeting},
      {"device_kind", job.device_kind},
      {"spares", job.spares},
      {"submitted_ms", job.submitted_ms},
      {"started_ms", job.started_ms},
      {"ended_ms", job.ended_ms},
      {"round", job.round},
      {"restarts", job.restarts},
      {"goodput", job.goodput},
      {"parts", nlohmann::json::array()},
  };
  if (job.exit_code) json["exit_code"] = *job.exit_code;
  for (const HeadPart& part : job.parts) json["parts"].push_back(PartToJson(part));
  return json;
}

absl::StatusOr<HeadJob> ReadHeadJob(const nlohmann::json& body) {
  HeadJob job;
  JsonFields fields(body, "job");
  ReadWords(fields, &job);
  ReadNumbers(fields, &job);
  const nlohmann::json* request = fields.Object("request");
  const auto parts = fields.Objects("parts", kMaxClusterHosts);
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  if (job.number == 0) return absl::InvalidArgumentError("job: it has no number");
  if (request != nullptr) {
    HLAUNCH_ASSIGN_OR_RETURN(job.request, ReadJobRequest(*request));
  }
  for (const nlohmann::json* part : parts) {
    HLAUNCH_ASSIGN_OR_RETURN(HeadPart read, ReadPart(*part));
    job.parts.push_back(std::move(read));
  }
  if (job.placed() && job.parts.empty()) return absl::InvalidArgumentError("job: it has no parts");
  return job;
}

nlohmann::json HostsToJson(uint64_t last_number, const std::map<std::string, HeadHost>& hosts) {
  nlohmann::json json = {{"last_number", last_number}, {"hosts", nlohmann::json::array()}};
  for (const auto& [name, host] : hosts) json["hosts"].push_back(HostToJson(host));
  return json;
}

absl::StatusOr<HeadRecord> ReadHosts(const nlohmann::json& body) {
  HeadRecord record;
  JsonFields fields(body, "hosts");
  fields.Number("last_number", &record.last_number);
  const auto hosts = fields.Objects("hosts", kMaxClusterHosts);
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  for (const nlohmann::json* host : hosts) {
    HLAUNCH_ASSIGN_OR_RETURN(HeadHost read, ReadHost(*host));
    record.hosts.push_back(std::move(read));
  }
  return record;
}

}  // namespace hlaunch
