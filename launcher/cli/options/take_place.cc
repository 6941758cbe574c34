// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/take_place.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/text/endpoint.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::string_view;

class Given {
 public:
  explicit Given(const std::vector<FoundValue>& values) : values_(values) {}

  const FoundValue* Find(string_view name) const {
    const auto found =
        std::find_if(values_.begin(), values_.end(),
                     [name](const FoundValue& value) { return value.row->name == name; });
    return found == values_.end() ? nullptr : &*found;
  }
  bool Has(string_view name) const { return Find(name) != nullptr; }
  bool has_meeting() const { return Has("--rdzv-endpoint") || Has("--master-addr"); }

 private:
  const std::vector<FoundValue>& values_;
};

// Returns N of "N", or MAX of "MIN:MAX".
string_view MaxNodes(string_view nnodes) {
  const size_t colon = nnodes.find(':');
  return colon == nnodes.npos ? nnodes : nnodes.substr(colon + 1);
}

int NumberOf(string_view text) {
  int number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

// Turns "2:4" into "2:3" if three nodes were started, so that no node waits for a fourth. Returns
// an empty string if the typed text can stay.
std::string WithoutAbsent(string_view typed, string_view started) {
  const size_t colon = typed.find(':');
  int min = 0, max = 0, there = 0;
  if (colon == typed.npos || !absl::SimpleAtoi(typed.substr(0, colon), &min) ||
      !absl::SimpleAtoi(typed.substr(colon + 1), &max) || !absl::SimpleAtoi(started, &there)) {
    return "";
  }
  return min <= there && there < max ? absl::StrCat(min, ":", there) : "";
}

bool IsMeeting(string_view option) {
  return option == "--rdzv-endpoint" || option == "--master-addr" || option == "--master-port";
}

const PlaceValue* FindIn(const ClusterPlace& place, string_view name) {
  const auto found = std::find_if(place.values.begin(), place.values.end(),
                                  [name](const PlaceValue& value) { return value.name == name; });
  return found == place.values.end() ? nullptr : &*found;
}

// Returns whether `option` concerns this node alone, whatever the other nodes are.
bool IsOfThisNode(string_view option) {
  return option == "--nproc-per-node" || option == "--shutdown-timeout" || option == "--devices" ||
         option == "--bind";
}

// A port that the user gives is the workers' port. So the place's host is used in the static form.
PlaceValue AsStaticForm(const PlaceValue& endpoint) {
  const auto parsed = ParseEndpoint(endpoint.value, kDefaultRdzvPort);
  return {"--master-addr", parsed.ok() ? parsed->host : endpoint.value, endpoint.source,
          endpoint.meaning};
}

// Options that split a node's devices and CPUs among its workers. With tasks they are refused,
// because each task has its share already.
constexpr const char* kOptionsOfOneTask[] = {"--devices", "--isolate-devices", "--per-node",
                                             "--bind", "--numa-binding"};

absl::Status CheckTasks(const NodeTasks& tasks, const Given& given) {
  const std::string each = absl::StrCat(tasks.owner, " has ", tasks.count,
                                        " tasks on this node, each of which runs a worker");
  const FoundValue* const workers = given.Find("--nproc-per-node");
  if (workers != nullptr && workers->value != absl::StrCat(tasks.count)) {
    return absl::InvalidArgumentError(absl::StrCat(each, ", and ", workers->origin, " says ",
                                                   workers->value, ": leave it out, or write ",
                                                   tasks.instead));
  }
  for (const char* name : kOptionsOfOneTask) {
    if (!given.Has(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(each, " on its own devices and CPUs: leave ",
                                                   name, " out, or write ", tasks.instead));
  }
  return absl::OkStatus();
}

// Returns whether hlaunch, called in the script of an allocation, starts the nodes from here.
bool StartsNodes(const Given& given, string_view program) {
  const FoundValue* const nnodes = given.Find("--nnodes");
  if (nnodes == nullptr && program == "torchrun") return false;
  if (nnodes != nullptr && MaxNodes(nnodes->value) == "1") return false;
  return std::none_of(OptionsOfEachHost().begin(), OptionsOfEachHost().end(),
                      [&given](string_view name) { return given.Has(name); });
}

}  // namespace

const std::vector<string_view>& OptionsOfEachHost() {
  static const std::vector<string_view> names = {
      "--standalone",  "--rdzv-endpoint", "--rdzv-backend", "--node-rank",
      "--master-addr", "--master-port",   "--dry-run",      "--print-env"};
  return names;
}

ClusterPlace ChooseStart(ClusterPlace place, const std::vector<FoundValue>& given,
                         string_view program, const std::string& word) {
  if (place.start_reason.empty()) return place;
  if (StartsNodes(Given(given), program)) {
    place.reason = place.start_reason;
    place.warnings.clear();
    place.cautions.clear();
    return place;
  }
  place.start_reason.clear();
  place.values.clear();
  if (word == "auto") {
    place.cluster = "none";
  } else {
    place.refusal =
        absl::InvalidArgumentError(absl::StrCat("--cluster ", word, ": ", place.reason));
  }
  return place;
}

absl::StatusOr<TakenPlace> TakePlace(const ClusterPlace& place,
                                     const std::vector<FoundValue>& values) {
  const Given given(values);
  TakenPlace taken;
  const FoundValue* typed_nnodes = given.Find("--nnodes");
  const bool one_node = given.Has("--standalone") ||
                        (typed_nnodes != nullptr && MaxNodes(typed_nnodes->value) == "1");
  const bool all_said = one_node || (typed_nnodes != nullptr && given.has_meeting());
  if (!place.refusal.ok()) {
    if (all_said) return taken;
    return place.refusal;
  }
  if (place.tasks && given.Has("--standalone")) return taken;  // Each task is a job by itself.
  if (place.tasks) {
    HLAUNCH_RETURN_IF_ERROR(CheckTasks(*place.tasks, given));
    taken.tasks = place.tasks;
  }
  if (!place.found()) {
    if (typed_nnodes == nullptr && !one_node) taken.warnings = place.warnings;
    taken.warnings.insert(taken.warnings.end(), place.cautions.begin(), place.cautions.end());
    return taken;
  }
  const PlaceValue* found_nnodes = FindIn(place, "--nnodes");
  if (!all_said && typed_nnodes == nullptr && found_nnodes == nullptr) {
    if (!place.needs_nnodes.empty()) return absl::InvalidArgumentError(place.needs_nnodes);
    if (!place.no_nnodes.empty()) taken.warnings = {place.no_nnodes};
    return taken;
  }
  const bool several = !all_said && MaxNodes(typed_nnodes != nullptr ? typed_nnodes->value
                                                                     : found_nnodes->value) != "1";
  if (several) taken.warnings = place.warnings;
  if (several && typed_nnodes != nullptr && found_nnodes != nullptr) {
    taken.nnodes = WithoutAbsent(typed_nnodes->value, found_nnodes->value);
  }
  // Where the user says where the nodes meet, others may come, too.
  if (several && place.started_once && found_nnodes != nullptr && !given.has_meeting()) {
    taken.started_nodes = NumberOf(found_nnodes->value);
  }
  bool meets = given.has_meeting();
  for (PlaceValue value : place.values) {
    if (!value.is_option() || (all_said && !IsOfThisNode(value.name))) continue;
    if (value.name == "--rdzv-endpoint" && given.Has("--master-port")) value = AsStaticForm(value);
    const bool meeting = IsMeeting(value.name);
    if (given.Has(value.name) || (meeting && given.has_meeting())) continue;
    if (!several && (meeting || value.name == "--node-rank")) continue;
    if (value.name == "--nproc-per-node" && given.Has("--per-node")) continue;
    meets = meets || meeting;
    taken.values.push_back(
        {FindOption(value.name), value.value, OptionSource::kCluster, value.source});
  }
  if (several && !meets && !place.no_endpoint.empty()) {
    return absl::InvalidArgumentError(place.no_endpoint);
  }
  return taken;
}

}  // namespace hlaunch
