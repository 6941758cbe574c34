// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/job_messages.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "proto/base/status_macros.h"
#include "proto/cluster/message_forms.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

using nlohmann::json;

constexpr size_t kMaxCommandWords = 4096;
constexpr size_t kMaxId = 1024;
constexpr int kMaxRank = 1 << 24;
constexpr size_t kMaxRanks = 1 << 16;
constexpr size_t kMaxExcluded = 64;
constexpr int kMaxSignalNumber = 64;
constexpr int kLongestPatience =
    static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(kMaxPatience).count());

constexpr const char* kStates[] = {"forming", "preflight", "running", "stopping", "over"};
constexpr const char* kKinds[] = {"why", "stacks"};

// Each message has one function Describe, which names its fields to a MessageWriter or a
// MessageReader.
template <typename Form>
void Describe(Form& form, JobHere* m) {
  form.Prose("job_id", &m->job_id, kMaxId);
  form.Number("min_nodes", &m->min_nodes);
  form.Number("max_nodes", &m->max_nodes);
  form.Prose("host", &m->host);
  form.Number("pid", &m->pid);
  form.Number("started_ms", &m->started_ms);
  form.Texts("words", &m->words, kMaxCommandWords, kMaxWord);
  form.Prose("log_directory", &m->log_directory);
  form.Prose("output", &m->output);
  form.Prose("detached", &m->detached);
  form.Flag("decides", &m->decides);
  form.Texts("started_on", &m->started_on, kMaxNodesShown, JsonFields::kMaxText);
}

template <typename Form>
void Describe(Form& form, JobMeeting* m) {
  form.Text("endpoint", &m->endpoint);
  form.Text("token", &m->token);
  form.Text("tls", &m->tls);
  form.Text("certificate", &m->certificate);
  form.Text("key", &m->key);
  form.Text("authority", &m->authority);
}

template <typename Form>
void Describe(Form& form, EndRequest* m) {
  form.Number("signal", &m->signal, 0, kMaxSignalNumber);
}

template <typename Form>
void Describe(Form& form, RankQuestion* m) {
  form.State("kind", &m->kind, kKinds);
  form.Numbers("ranks", &m->ranks, kMaxRanks);
  form.Flag("native", &m->native);
  int seconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(m->patience).count());
  form.Number("patience_s", &seconds, 1, kLongestPatience);
  m->patience = std::chrono::seconds(seconds);
}

template <typename Form>
void Describe(Form& form, NodeWord* m) {
  form.Prose("host", &m->host);
  form.Number("node_rank", &m->node_rank, -1, kMaxRank);
  form.Number("first_rank", &m->first_rank, 0, kMaxRank);
  form.Number("nproc", &m->nproc, 0, static_cast<int>(kMaxRanks));
  form.Prose("text", &m->text, kMaxAnswerBytes);
  form.Prose("problem", &m->problem);
}

template <typename Form>
void Describe(Form& form, JobAnswer* m) {
  form.Number("round", &m->round);
  form.Number("world_size", &m->world_size, 0, kMaxRank);
  form.Prose("explanation", &m->explanation);
  form.Messages("nodes", &m->nodes, kMaxNodesShown, ReadNodeWord);
}

template <typename Form>
void Describe(Form& form, NodeStatus* m) {
  form.Prose("host", &m->host);
  form.Prose("address", &m->address);
  form.Number("pid", &m->pid);
  form.Number("node_rank", &m->node_rank, -1, kMaxRank);
  form.Number("nproc", &m->nproc, 0, static_cast<int>(kMaxRanks));
  form.Prose("state", &m->state);
  form.State("standing", &m->standing, kStandingWords);
  form.Number("first_rank", &m->first_rank, 0, kMaxRank);
  form.Prose("drain_reason", &m->drain_reason);
}

template <typename Form>
void Describe(Form& form, RoundStatus* m) {
  form.Number("round", &m->round);
  form.Number("began_ms", &m->began_ms);
  form.Number("ran_ms", &m->ran_ms);
  form.Number("stopping_ms", &m->stopping_ms);
  form.Number("stopped_ms", &m->stopped_ms);
  form.Number("nodes", &m->nodes);
  form.Number("world_size", &m->world_size);
  form.Number("restarts", &m->restarts);
  form.Prose("reason", &m->reason);
}

template <typename Form>
void Describe(Form& form, WorkerFailure* m) {
  form.Number("rank", &m->rank, 0, kMaxRank);
  form.Prose("host", &m->host);
  form.Number("pid", &m->pid);
  form.Number("exit_code", &m->exit_code, INT_MIN, INT_MAX);
  form.Number("signal", &m->signal, 0, kMaxSignalNumber);
  form.Prose("message", &m->message);
  form.Prose("traceback", &m->traceback, kMaxTracebackBytes);
  form.Prose("log_tail", &m->log_tail, kMaxTailBytes);
  form.Prose("log_file", &m->log_file);
  form.Flag("hung", &m->hung);
}

template <typename Form>
void Describe(Form& form, JobStatus* m) {
  form.Prose("job_id", &m->job_id, kMaxId);
  form.State("state", &m->state, kStates);
  form.Prose("explanation", &m->explanation);
  form.Number("round", &m->round);
  form.Number("min_nodes", &m->min_nodes);
  form.Number("max_nodes", &m->max_nodes);
  form.Number("restarts", &m->restarts);
  form.Number("uncounted", &m->uncounted);
  form.Number("max_restarts", &m->max_restarts);
  form.Number("exit_code", &m->exit_code, 0, UINT8_MAX);
  form.Number("total_nodes", &m->total_nodes);
  form.Messages("nodes", &m->nodes, kMaxNodesShown, ReadNodeStatus);
  form.Messages("rounds", &m->rounds, kMaxRoundsShown, ReadRoundStatus);
  form.Number("began_ms", &m->began_ms);
  form.Number("told_ms", &m->told_ms);
  int64_t ran_for_ms = std::chrono::duration_cast<std::chrono::milliseconds>(m->ran_for).count();
  form.Number("ran_for_ms", &ran_for_ms);
  m->ran_for = std::chrono::milliseconds(std::min<int64_t>(ran_for_ms, INT64_MAX / 1'000'000));
  form.Number("world_size", &m->world_size);
  std::vector<WorkerFailure> failures;
  if (m->failure) failures.push_back(*m->failure);
  form.Messages("failure", &failures, 1, ReadWorkerFailure);
  if (!failures.empty()) m->failure = std::move(failures[0]);
  form.Number("failed_round", &m->failed_round);
  form.Prose("notice", &m->notice);
  form.Texts("excluded", &m->excluded, kMaxExcluded, JsonFields::kMaxText);
}

template <typename T>
json Described(T message) {
  MessageWriter writer;
  Describe(writer, &message);
  return writer.Take();
}

template <typename T>
absl::StatusOr<T> ReadDescribed(const json& body, const char* what) {
  T message;
  MessageReader reader(body, what);
  Describe(reader, &message);
  HLAUNCH_RETURN_IF_ERROR(reader.status());
  return message;
}

}  // namespace

#define HLAUNCH_JOB_MESSAGE(Type, what)                                 \
  json ToJson(const Type& message) { return Described<Type>(message); } \
  absl::StatusOr<Type> Read##Type(const json& body) { return ReadDescribed<Type>(body, what); }
HLAUNCH_JOB_MESSAGE(JobHere, "a job")
HLAUNCH_JOB_MESSAGE(JobMeeting, "a job's rendezvous address")
HLAUNCH_JOB_MESSAGE(EndRequest, "a request to end")
HLAUNCH_JOB_MESSAGE(RankQuestion, "a question about ranks")
HLAUNCH_JOB_MESSAGE(NodeWord, "the answer of a node")
HLAUNCH_JOB_MESSAGE(JobAnswer, "the answer of a job")
HLAUNCH_JOB_MESSAGE(NodeStatus, "the status of a node")
HLAUNCH_JOB_MESSAGE(RoundStatus, "the status of a round")
HLAUNCH_JOB_MESSAGE(WorkerFailure, "the failure of a worker")
HLAUNCH_JOB_MESSAGE(JobStatus, "the status of a job")
#undef HLAUNCH_JOB_MESSAGE

}  // namespace hlaunch
