// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Sources: each system's documentation of the variables that it sets.

#include "launcher/environment/scheduler/system_row.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/text/printable.h"
#include "nlohmann/json.hpp"
#include "proto/base/user_files.h"

namespace hlaunch {
namespace {

using nlohmann::json;

constexpr size_t kMaxFileBytes = 1 << 20;

std::vector<SystemRow> MakeTable() {
  std::vector<SystemRow> rows;
  rows.push_back({.word = "flux",
                  .title = "a task of a Flux job",
                  .proof = {"FLUX_JOB_ID", "FLUX_TASK_RANK", "FLUX_JOB_NNODES"},
                  .nnodes = "FLUX_JOB_NNODES",
                  .rank = "FLUX_TASK_RANK",
                  .id = "FLUX_JOB_ID",
                  .tasks = "FLUX_JOB_SIZE",
                  .once_a_node = "write flux run -N NODES -n NODES hlaunch ...",
                  .first_node = "$(flux hostlist --nth=0 local)"});
  rows.push_back({.word = "aws-batch",
                  .title = "a node of a multi-node job of AWS Batch",
                  .proof = {"AWS_BATCH_JOB_NUM_NODES", "AWS_BATCH_JOB_NODE_INDEX"},
                  .nnodes = "AWS_BATCH_JOB_NUM_NODES",
                  .rank = "AWS_BATCH_JOB_NODE_INDEX",
                  .hosts = "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS",
                  .hosts_unset_is_here = true});
  rows.push_back({.word = "skypilot",
                  .title = "a node of a SkyPilot task",
                  .proof = {"SKYPILOT_NODE_RANK"},
                  .nnodes = "SKYPILOT_NUM_NODES",
                  .rank = "SKYPILOT_NODE_RANK",
                  .hosts = "SKYPILOT_NODE_IPS",
                  .nproc = "SKYPILOT_NUM_GPUS_PER_NODE",
                  .id = "SKYPILOT_TASK_ID"});
  rows.push_back({.word = "dstack",
                  .title = "a node of a dstack task",
                  .proof = {"DSTACK_NODES_NUM", "DSTACK_NODE_RANK"},
                  .nnodes = "DSTACK_NODES_NUM",
                  .rank = "DSTACK_NODE_RANK",
                  .hosts = "DSTACK_MASTER_NODE_IP",
                  .nproc = "DSTACK_GPUS_PER_NODE",
                  .id = "DSTACK_RUN_NAME"});
  rows.push_back({.word = "beaker",
                  .title = "a replica of a Beaker task",
                  .proof = {"BEAKER_REPLICA_COUNT", "BEAKER_REPLICA_RANK"},
                  .nnodes = "BEAKER_REPLICA_COUNT",
                  .rank = "BEAKER_REPLICA_RANK",
                  .hosts = "BEAKER_LEADER_REPLICA_HOSTNAME",
                  .nproc = "BEAKER_ASSIGNED_GPU_COUNT",
                  .id = "BEAKER_LEADER_REPLICA_JOB_ID"});
  rows.push_back({.word = "ngc",
                  .title = "a replica of a multi-node job of NGC",
                  .proof = {"NGC_ARRAY_SIZE", "NGC_ARRAY_INDEX"},
                  .nnodes = "NGC_ARRAY_SIZE",
                  .rank = "NGC_ARRAY_INDEX",
                  .hosts = "NGC_MASTER_ADDR",
                  .id = "NGC_JOB_ID"});
  rows.push_back({.word = "leaderworkerset",
                  .title = "a pod of a LeaderWorkerSet's group",
                  .proof = {"LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"},
                  .nnodes = "LWS_GROUP_SIZE",
                  .rank = "LWS_WORKER_INDEX",
                  .hosts = "LWS_LEADER_ADDRESS"});
  // The pytorch plugin numbers all pods, while VC_TASK_INDEX begins anew with each kind of them.
  rows.push_back({.word = "volcano",
                  .title = "a pod of a Volcano job with the pytorch plugin",
                  .proof = {"VC_TASK_INDEX|VK_TASK_INDEX", "MASTER_ADDR", "RANK", "WORLD_SIZE"},
                  .absent = {"LOCAL_RANK", "TORCHELASTIC_RUN_ID"},
                  .nnodes = "WORLD_SIZE",
                  .rank = "RANK",
                  .hosts = "MASTER_ADDR",
                  .port = "MASTER_PORT"});
  // If a job has masters besides workers, no variable says to which task this pod belongs.
  rows.push_back({.word = "volcano",
                  .title = "a pod of a Volcano job with masters and workers",
                  .proof = {"VC_TASK_INDEX|VK_TASK_INDEX", "VC_MASTER_HOSTS", "VC_WORKER_HOSTS"},
                  .nnodes = "VC_WORKER_NUM",
                  .hosts = "VC_MASTER_HOSTS"});
  rows.push_back({.word = "volcano",
                  .title = "a pod of a Volcano job",
                  .proof = {"VC_TASK_INDEX|VK_TASK_INDEX", "VC_WORKER_HOSTS"},
                  .nnodes = "VC_WORKER_NUM",
                  .rank = "VC_TASK_INDEX|VK_TASK_INDEX",
                  .hosts = "VC_WORKER_HOSTS"});
  rows.push_back({.word = "condor",
                  .title = "a node of HTCondor's parallel universe",
                  .proof = {"_CONDOR_PROCNO", "_CONDOR_NPROCS"},
                  .nnodes = "_CONDOR_NPROCS",
                  .rank = "_CONDOR_PROCNO",
                  .first_node = "HOST, with the name of node 0's host"});
  rows.push_back({.word = "nomad",
                  .title = "an allocation of a Nomad group",
                  .proof = {"NOMAD_ALLOC_INDEX", "NOMAD_ALLOC_ID"},
                  .rank = "NOMAD_ALLOC_INDEX",
                  .id = "NOMAD_JOB_ID",
                  .first_node = "HOST, with allocation 0's address"});
  return rows;
}

// ---- A site's own rows.

struct TextField {
  const char* name;
  std::string SystemRow::*member;
};
constexpr TextField kTextFields[] = {
    {"word", &SystemRow::word},
    {"title", &SystemRow::title},
    {"nnodes", &SystemRow::nnodes},
    {"rank", &SystemRow::rank},
    {"hosts", &SystemRow::hosts},
    {"port", &SystemRow::port},
    {"nproc", &SystemRow::nproc},
    {"id", &SystemRow::id},
    {"tasks", &SystemRow::tasks},
    {"local_size", &SystemRow::local_size},
    {"once_a_node", &SystemRow::once_a_node},
    {"first_node", &SystemRow::first_node},
};

// Reads a text or a list of texts.
bool ReadList(const json& value, std::vector<std::string>& list) {
  if (value.is_string()) list = {value.get<std::string>()};
  if (!value.is_array()) return value.is_string();
  for (const json& entry : value) {
    if (!entry.is_string()) return false;
    list.push_back(entry.get<std::string>());
  }
  return true;
}

bool SetField(const std::string& name, const json& value, SystemRow& row) {
  if (name == "proof") return ReadList(value, row.proof);
  if (name == "absent") return ReadList(value, row.absent);
  if (name == "hosts_unset_is_here") {
    if (value.is_boolean()) row.hosts_unset_is_here = value.get<bool>();
    return value.is_boolean();
  }
  for (const TextField& field : kTextFields) {
    if (name != field.name) continue;
    if (value.is_string()) row.*field.member = value.get<std::string>();
    return value.is_string();
  }
  return false;
}

absl::StatusOr<SystemRow> ReadRow(size_t index, const json& object) {
  const std::string where = absl::StrCat("system ", index + 1, ": ");
  if (!object.is_object()) return absl::InvalidArgumentError(where + "expected an object");
  SystemRow row;
  for (const auto& [name, value] : object.items()) {
    if (!SetField(name, value, row)) {
      return absl::InvalidArgumentError(absl::StrCat(where, "'", PrintableLine(name),
                                                     "' is no field, or its value has another "
                                                     "type; clusters.md lists them"));
    }
  }
  for (const auto& [name, empty] : {std::pair("word", row.word.empty()),
                                    {"title", row.title.empty()},
                                    {"proof", row.proof.empty()},
                                    {"rank", row.rank.empty()}}) {
    if (empty) return absl::InvalidArgumentError(absl::StrCat(where, "'", name, "' is missing"));
  }
  // After --cluster these mean something else, and a place "none" is no place.
  if (row.word == "auto" || row.word == "none" || row.word == kOwnCluster) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "'word' may not be ", row.word, ", which --cluster has already"));
  }
  return row;
}

}  // namespace

const std::vector<SystemRow>& KnownSystems() {
  static const auto& table = *new std::vector<SystemRow>(MakeTable());
  return table;
}

absl::StatusOr<std::vector<SystemRow>> ReadSystems(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxFileBytes);
  if (absl::IsResourceExhausted(text.status())) {
    return absl::InvalidArgumentError("it is larger than 1 MiB");
  }
  if (!text.ok()) return absl::NotFoundError("it cannot be read");
  const json content = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (content.is_discarded()) return absl::InvalidArgumentError("it is no JSON");
  if (!content.is_object() || !content.contains("systems") || !content["systems"].is_array()) {
    return absl::InvalidArgumentError(R"(expected {"systems": [...]})");
  }
  std::vector<SystemRow> rows;
  for (const json& object : content["systems"]) {
    absl::StatusOr<SystemRow> row = ReadRow(rows.size(), object);
    if (!row.ok()) return row.status();
    rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace hlaunch
