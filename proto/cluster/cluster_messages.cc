// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/cluster_messages.h"

#include <climits>
#include <utility>

#include "proto/base/status_macros.h"
#include "proto/cluster/message_forms.h"

namespace hlaunch {
namespace {

using nlohmann::json;

constexpr size_t kMaxName = 256;  // Of a user, a job, a label, a kind of device.
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxJobs = 65'536;
constexpr size_t kMaxLimits = 64;
constexpr int kMaxNodes = kMaxClusterHosts;
constexpr int kMaxWorkers = 65'536;
constexpr int kMaxSlots = 1 << 20;
constexpr int kMaxSeconds = 1'000'000;
constexpr int kMaxWaitSeconds = 20;
constexpr int kMaxSignal = 64;
constexpr int kMaxTail = 1'000'000;

constexpr const char* kJobStates[] = {"waiting", "starting", "running", "ending", "ended"};
constexpr const char* kPartStates[] = {"starting", "running", "ended", "lost", "failed"};

// Each message has one function Fields, which names its fields to a MessageWriter or a
// MessageReader.
template <typename Form>
void Fields(Form& form, JobRequest* m) {
  form.Prose("name", &m->name, kMaxName);
  form.Number("min_nodes", &m->min_nodes, 1, kMaxNodes);
  form.Number("max_nodes", &m->max_nodes, 1, kMaxNodes);
  form.Ordered("max_nodes", &m->min_nodes, &m->max_nodes);
  form.Number("workers", &m->workers, 0, kMaxWorkers);
  form.Text("devices", &m->devices, kMaxName);
  form.Hosts("hosts", &m->hosts, kMaxClusterHosts);
  form.Texts("labels", &m->labels, kMaxLabels, kMaxName);
  form.Flag("exclusive", &m->exclusive);
  form.Number("spares", &m->spares, 0, kMaxNodes);
  form.Texts("options", &m->options, kMaxWords, kMaxWord);
  form.Texts("script", &m->script, kMaxWords, kMaxWord);
  form.Variables("environment", &m->environment);
  form.Texts("limits", &m->limits, kMaxLimits, kMaxName);
  form.Text("directory", &m->directory);
  form.Number("umask", &m->umask, 0, 0777);
  form.Number("grace_s", &m->grace_s, 0, kMaxSeconds);
}

template <typename Form>
void Fields(Form& form, PartView* m) {
  form.Number("node_rank", &m->node_rank, 0, kMaxNodes);
  form.Host("host", &m->host);
  form.Prose("state", &m->state);
  form.Numbers("devices", &m->devices, kMaxDevices);
  form.ExitCode("exit_code", &m->exit_code);
}

template <typename Form>
void Fields(Form& form, JobView* m) {
  form.Number("number", &m->number);
  form.Number("version", &m->version);
  form.Text("user", &m->user, kMaxName);
  form.Prose("name", &m->name, kMaxName);
  form.State("state", &m->state, kJobStates);
  form.Prose("why", &m->why);
  form.Number("min_nodes", &m->min_nodes, 1, kMaxNodes);
  form.Number("max_nodes", &m->max_nodes, 1, kMaxNodes);
  form.Number("workers", &m->workers, 0, kMaxWorkers);
  form.Text("device_kind", &m->device_kind, kMaxName);
  form.Messages("parts", &m->parts, kMaxClusterHosts, ReadPartView);
  form.Number("submitted_ms", &m->submitted_ms);
  form.Number("started_ms", &m->started_ms);
  form.Number("ended_ms", &m->ended_ms);
  form.ExitCode("exit_code", &m->exit_code);
  form.Number("round", &m->round);
  form.Number("restarts", &m->restarts);
  form.Share("goodput", &m->goodput);
  form.Texts("words", &m->words, 2 * kMaxWords, kMaxWord);  // The options and script of a request.
}

template <typename Form>
void Fields(Form& form, MeetingAnswer* m) {
  form.Text("endpoint", &m->endpoint);
  form.Text("token", &m->token);
}

template <typename Form>
void Fields(Form& form, DeviceFact* m) {
  form.Number("id", &m->id);
  form.Text("kind", &m->kind, kMaxName);
  form.Prose("fault", &m->fault, kMaxName);
}

template <typename Form>
void Fields(Form& form, HostFacts* m) {
  form.Number("protocol", &m->protocol);
  form.Text("version", &m->version, kMaxName);
  form.Text("boot_id", &m->boot_id, kMaxName);
  form.Messages("devices", &m->devices, kMaxDevices, ReadDeviceFact);
  form.Number("slots", &m->slots, 0, kMaxSlots);
  form.Texts("labels", &m->labels, kMaxLabels, kMaxName);
  form.Prose("trouble", &m->trouble);
}

template <typename Form>
void Fields(Form& form, PartTold* m) {
  form.Number("job", &m->job);
  form.State("state", &m->state, kPartStates);
  form.Text("meeting", &m->meeting);
  form.ExitCode("exit_code", &m->exit_code);
  form.Prose("trouble", &m->trouble);
  form.Number("round", &m->round);
  form.Number("restarts", &m->restarts);
  form.Share("goodput", &m->goodput);
}

template <typename Form>
void Fields(Form& form, PartOrder* m) {
  form.Number("job", &m->job);
  form.Number("node_rank", &m->node_rank, 0, kMaxNodes);
  form.Number("min_nodes", &m->min_nodes, 1, kMaxNodes);
  form.Number("max_nodes", &m->max_nodes, 1, kMaxNodes);
  form.Ordered("max_nodes", &m->min_nodes, &m->max_nodes);
  form.Number("spares", &m->spares, 0, kMaxNodes);
  form.Text("user", &m->user, kMaxName);
  form.Number("uid", &m->uid);
  form.Text("meeting", &m->meeting);
  form.Text("token", &m->token);
  form.Numbers("devices", &m->devices, kMaxDevices);
  form.Text("device_kind", &m->device_kind, kMaxName);
  form.Number("workers", &m->workers, 0, kMaxWorkers);
  form.Message("request", &m->request, ReadJobRequest);
}

template <typename Form>
void Fields(Form& form, SignalOrder* m) {
  form.Number("job", &m->job);
  form.Number("signal", &m->signal, 1, kMaxSignal);
}

template <typename Form>
void Fields(Form& form, ForgetOrder* m) {
  form.Number("job", &m->job);
}

template <typename Form>
void Fields(Form& form, LogQuestion* m) {
  form.Number("job", &m->job);
  form.Number("node_rank", &m->node_rank, 0, kMaxNodes);
  form.Text("position", &m->position, kMaxName);
  form.Number("tail", &m->tail, -1, kMaxTail);
  form.Number("wait_s", &m->wait_s, 0, kMaxWaitSeconds);
}

template <typename Form>
void Fields(Form& form, LogAnswer* m) {
  form.Log("text", &m->text);
  form.Text("position", &m->position, kMaxName);
  form.Flag("lost", &m->lost);
  form.Flag("ended", &m->ended);
}

template <typename Form>
void Fields(Form& form, JobsQuestion* m) {
  form.Flag("all", &m->all);
  form.Flag("ended", &m->ended);
}

template <typename Form>
void Fields(Form& form, JobQuestion* m) {
  form.Number("job", &m->job);
  form.Number("seen", &m->seen);
  form.Number("wait_s", &m->wait_s, 0, kMaxWaitSeconds);
}

template <typename Form>
void Fields(Form& form, StopQuestion* m) {
  form.Number("job", &m->job);
  form.Number("grace_s", &m->grace_s, -1, kMaxSeconds);
}

template <typename Form>
void Fields(Form& form, DrainQuestion* m) {
  form.Host("host", &m->host);
  form.Prose("reason", &m->reason);
  form.Number("evict_s", &m->evict_s, -1, kMaxSeconds);
}

template <typename Form>
void Fields(Form& form, HostView* m) {
  form.Host("name", &m->name);
  form.Text("state", &m->state, kMaxName);
  form.Prose("why", &m->why);
  form.Text("version", &m->version, kMaxName);
  form.Text("device_kind", &m->device_kind, kMaxName);
  form.Number("devices", &m->devices);
  form.Number("devices_free", &m->devices_free);
  form.Number("slots", &m->slots, 0, kMaxSlots);
  form.Number("slots_free", &m->slots_free, 0, kMaxSlots);
  form.Texts("labels", &m->labels, kMaxLabels, kMaxName);
  form.Jobs("jobs", &m->jobs, kMaxJobs);
  form.Number("seen_ms", &m->seen_ms);
  form.Number("stop_ms", &m->stop_ms);
}

template <typename T>
json Written(T message) {
  MessageWriter writer;
  Fields(writer, &message);
  return writer.Take();
}

template <typename T>
absl::StatusOr<T> Read(const json& body, const char* what) {
  T message;
  MessageReader reader(body, what);
  Fields(reader, &message);
  HLAUNCH_RETURN_IF_ERROR(reader.status());
  return message;
}

}  // namespace

const char* ClusterJobStateName(ClusterJobState state) {
  return kJobStates[static_cast<size_t>(state)];
}

#define HLAUNCH_CLUSTER_MESSAGE(Type, what)                           \
  json ToJson(const Type& message) { return Written<Type>(message); } \
  absl::StatusOr<Type> Read##Type(const json& body) { return Read<Type>(body, what); }
HLAUNCH_CLUSTER_MESSAGE(JobRequest, "what is to be started")
HLAUNCH_CLUSTER_MESSAGE(PartView, "a part of a job")
HLAUNCH_CLUSTER_MESSAGE(JobView, "a job")
HLAUNCH_CLUSTER_MESSAGE(MeetingAnswer, "a job's rendezvous address")
HLAUNCH_CLUSTER_MESSAGE(DeviceFact, "a device")
HLAUNCH_CLUSTER_MESSAGE(HostFacts, "the facts of a host")
HLAUNCH_CLUSTER_MESSAGE(PartTold, "the state of a part")
HLAUNCH_CLUSTER_MESSAGE(PartOrder, "an order to start")
HLAUNCH_CLUSTER_MESSAGE(SignalOrder, "an order to signal")
HLAUNCH_CLUSTER_MESSAGE(ForgetOrder, "an order to forget")
HLAUNCH_CLUSTER_MESSAGE(LogQuestion, "a question for a log")
HLAUNCH_CLUSTER_MESSAGE(LogAnswer, "a piece of a log")
HLAUNCH_CLUSTER_MESSAGE(JobsQuestion, "a question for jobs")
HLAUNCH_CLUSTER_MESSAGE(JobQuestion, "a question for a job")
HLAUNCH_CLUSTER_MESSAGE(StopQuestion, "an order to stop")
HLAUNCH_CLUSTER_MESSAGE(DrainQuestion, "an order to drain")
HLAUNCH_CLUSTER_MESSAGE(HostView, "a host")
#undef HLAUNCH_CLUSTER_MESSAGE

}  // namespace hlaunch
