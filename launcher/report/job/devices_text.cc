// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/devices_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/text/printable.h"
#include "launcher/text/text_table.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr char kDevicesCommand[] = "hlaunch devices";
constexpr size_t kMaxHolders = 3;  // Only in the table; JSON has all holders.

std::string DevicesHelp() {
  return absl::StrCat(
      "usage: hlaunch devices [--json] [--sysroot DIR]\n\n"
      "Shows the accelerators of this node: which processes can use, where they sit, who has them\n"
      "open (root sees all processes, others their own). A script named `devices` is started as\n"
      "`hlaunch ./devices`.\n\n",
      DescribeOptions(DevicesOptionRows()), "\nExit code: 0; 2 wrong usage.\n");
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string HoldersText(const std::vector<DeviceHolder>& holders) {
  std::vector<std::string> names;
  for (const DeviceHolder& holder : holders) {
    if (names.size() == kMaxHolders) break;
    names.push_back(absl::StrCat(OrDash(holder.command), " (pid ", holder.pid, ")"));
  }
  const size_t more = holders.size() - names.size();
  return absl::StrCat("held by ", absl::StrJoin(names, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string StateText(const Device& device) {
  std::vector<std::string> words;
  if (!device.fault.empty()) words.push_back(device.fault);
  if (!device.holders.empty()) words.push_back(HoldersText(device.holders));
  if (words.empty()) words.push_back("free");
  if (!device.mig.empty()) {
    words.push_back(absl::StrCat("MIG instances ", absl::StrJoin(device.mig, " ")));
  }
  return absl::StrJoin(words, "; ");
}

std::string ModelText(const Device& device) {
  if (device.parts == 1) return device.model;
  return absl::StrCat(device.model, ", ", device.parts,
                      device.kind == DeviceKind::kNeuron ? " cores" : " tiles");
}

std::string ProcessorsText(const Processors& processors) {
  const auto some = [](int count, absl::string_view one) {
    return count == 0 ? "" : absl::StrCat(", ", count, " ", one, count == 1 ? "" : "s");
  };
  return absl::StrCat("processors: ", processors.threads,
                      processors.threads == 1 ? " thread" : " threads",
                      some(processors.cores, "core"), some(processors.sockets, "socket"),
                      some(processors.numa_nodes, "NUMA node"), "\n");
}

nlohmann::ordered_json OrNull(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

nlohmann::ordered_json OrNull(int number) {
  return number < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(number);
}

nlohmann::ordered_json ToJson(const Device& device) {
  nlohmann::ordered_json json = {{"kind", KindName(device.kind)},
                                 {"id", OrNull(device.id)},
                                 {"model", device.model},
                                 {"index", OrNull(device.index)},
                                 {"module_id", OrNull(device.module_id.value_or(-1))},
                                 {"pci_address", OrNull(device.pci_address)},
                                 {"uuid", OrNull(device.uuid)},
                                 {"numa_node", OrNull(device.numa_node)},
                                 {"local_cpus", OrNull(device.local_cpus)},
                                 {"node_path", OrNull(device.node_path)},
                                 {"fault", OrNull(device.fault)},
                                 {"parts", device.parts},
                                 {"mig", device.mig}};
  json["holders"] = nlohmann::ordered_json::array();
  for (const DeviceHolder& holder : device.holders) {
    json["holders"].push_back({{"pid", holder.pid}, {"command", holder.command}});
  }
  return json;
}

}  // namespace

absl::StatusOr<DevicesOptions> ParseDevicesOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 2, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read, ReadWords(kDevicesCommand, DevicesOptionRows(),
                                                            words, OptionPlace::kAnywhere));
  DevicesOptions options;
  if (read.Has("--help")) {
    options.text_to_print = DevicesHelp();
    return options;
  }
  if (!read.rest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hlaunch devices takes no word like ", PrintableLine(read.rest[0]),
                     "; to start a script of that name, write hlaunch ./devices"));
  }
  options.sysroot = read.Get("--sysroot", "");
  options.json = read.Has("--json");
  return options;
}

std::string DevicesText(const std::vector<Device>& devices, const Processors& processors) {
  if (devices.empty()) return absl::StrCat("no accelerators\n", ProcessorsText(processors));
  std::vector<std::vector<std::string>> rows = {
      {"DEVICE", "MODEL", "PCI ADDRESS", "NUMA", "CPUS", "NODE", "STATE"}};
  for (const Device& device : devices) {
    rows.push_back(
        {absl::StrCat(KindName(device.kind), " ", device.id < 0 ? "-" : absl::StrCat(device.id)),
         ModelText(device), OrDash(device.pci_address),
         device.numa_node < 0 ? "-" : absl::StrCat(device.numa_node), OrDash(device.local_cpus),
         OrDash(device.node_path), StateText(device)});
  }
  return absl::StrCat(TextTable(std::move(rows)), ProcessorsText(processors));
}

std::string DevicesJson(const std::vector<Device>& devices, const Processors& processors) {
  nlohmann::ordered_json json;
  json["devices"] = nlohmann::ordered_json::array();
  for (const Device& device : devices) json["devices"].push_back(ToJson(device));
  json["processors"] = {{"threads", processors.threads},
                        {"cores", processors.cores},
                        {"sockets", processors.sockets},
                        {"numa_nodes", processors.numa_nodes}};
  return JsonText(json);
}

}  // namespace hlaunch
