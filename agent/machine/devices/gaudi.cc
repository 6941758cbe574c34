// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "agent/machine/devices/pci_function.h"
#include "agent/machine/devices/probe.h"

namespace hlaunch {
namespace {

constexpr char kDriver[] = "habanalabs";
constexpr char kDriverFolder[] = "/sys/bus/pci/drivers/habanalabs";

// One way in which the kernel shows cards. In a folder that other vendors' drivers share, a card
// needs a proof that it is Gaudi's.
struct View {
  const char* folder;
  const char* prefix;
  const char* node;  // The device node's name before the number.
  bool shared;
};

constexpr View kViews[] = {
    {"/sys/class/accel", "accel", "/dev/accel/accel", true},
    {"/sys/class/habanalabs", "hl", "/dev/hl", false},
    {"/sys/devices/virtual/accel", "accel", "/dev/accel/accel", true},
};

std::string ModelName(absl::string_view type, int device_id) {
  if (absl::ConsumePrefix(&type, "GAUDI")) {
    if (type.empty() || type == " SEC") return "Gaudi";
    return absl::StrCat("Gaudi ", type);
  }
  switch (device_id) {
    case 0x1000:
    case 0x1001:
    case 0x1010:
    case 0x1011:
      return "Gaudi";
    case 0x1020:
      return "Gaudi 2";
    case 0x1030:
    case 0x1060:
    case 0x1061:
    case 0x1062:
    case 0x1063:
      return "Gaudi 3";
    default:
      return device_id < 0 ? "Gaudi" : absl::StrFormat("Gaudi 0x%04x", device_id);
  }
}

// Depending on the kernel's version, the driver puts its attributes beside the class device or into
// the PCI function's folder.
std::string Attribute(const DeviceFiles& files, const std::string& folder, const char* name) {
  const std::string inner = files.Read(absl::StrCat(folder, "/device/", name));
  return inner.empty() ? files.Read(absl::StrCat(folder, "/", name)) : inner;
}

struct Finder {
  const Probe& probe;
  std::vector<Device> cards;
  std::set<std::string> seen;  // PCI addresses and device nodes.

  // Adds the card that `folder` shows.
  void Add(const std::string& folder, int index, const View& view) {
    const DeviceFiles& files = probe.files;
    std::string address = NormalPciAddress(files.LinkName(folder + "/device"));
    if (address.empty()) address = NormalPciAddress(Attribute(files, folder, "pci_addr"));
    const PciFunction function = ReadPci(files, address);
    const std::string type = Attribute(files, folder, "device_type");
    const std::string driver = files.LinkName(folder + "/device/driver");
    const bool ours = absl::StartsWith(driver, kDriver) || function.vendor == kHabana ||
                      absl::StartsWith(type, "GAUDI");
    if ((view.shared && !ours) || absl::StartsWith(type, "GOYA")) return;
    const std::string node = absl::StrCat(view.node, index);
    if (seen.contains(node) || (!address.empty() && seen.contains(address))) return;
    seen.insert(node);
    seen.insert(address);
    Device card;
    card.kind = DeviceKind::kHpu;
    card.index = index;
    SetPlace(function, card);
    card.model = ModelName(type, function.device);
    const int module_id = NumberAfter(Attribute(files, folder, "module_id"), "");
    if (module_id >= 0) card.module_id = module_id;
    probe.SetNode(node, files.Read(folder + "/dev"), card);
    const std::string status = Attribute(files, folder, "status");
    if (card.fault.empty() && !status.empty() && status != "Operational") card.fault = status;
    cards.push_back(std::move(card));
  }

  void AddOfDriver() {
    for (const std::string& name : probe.files.List(kDriverFolder)) {
      if (NormalPciAddress(name).empty()) continue;
      for (const View& view : {kViews[0], kViews[1]}) {
        const std::string folder =
            absl::StrCat(kDriverFolder, "/", name, "/", view.shared ? "accel" : "habanalabs");
        for (const std::string& card : probe.files.List(folder)) {
          const int index = NumberAfter(card, view.prefix);
          if (index >= 0) Add(absl::StrCat(folder, "/", card), index, view);
        }
      }
    }
  }

  void AddUnbound() {
    for (const PciFunction& function : probe.PciOf(kHabana)) {
      if (seen.contains(function.address) || absl::StartsWith(function.driver, kDriver)) continue;
      cards.push_back(WithoutDriver(DeviceKind::kHpu, ModelName("", function.device),
                                    function.driver, kDriver));
      SetPlace(function, cards.back());
    }
  }
};

// The runtime names cards by module id. If a card has no module id of its own, the kernel's numbers
// are used for all.
void NumberCards(std::vector<Device>& cards) {
  std::set<int> modules;
  bool all = true;
  for (const Device& card : cards) {
    if (card.id < 0) continue;
    all = all && card.module_id.has_value() && modules.insert(*card.module_id).second;
  }
  for (Device& card : cards) {
    if (card.id >= 0) card.id = all ? *card.module_id : card.index;
  }
  const auto place = [](const Device& card) {
    return card.module_id.value_or(card.index >= 0 ? card.index : std::numeric_limits<int>::max());
  };
  std::stable_sort(cards.begin(), cards.end(),
                   [&place](const Device& a, const Device& b) { return place(a) < place(b); });
}

}  // namespace

std::vector<Device> FindGaudi(const Probe& probe) {
  Finder finder{probe, {}, {}};
  for (const View& view : kViews) {
    for (const std::string& name : probe.files.List(view.folder)) {
      const int index = NumberAfter(name, view.prefix);
      if (index >= 0) finder.Add(absl::StrCat(view.folder, "/", name), index, view);
    }
  }
  finder.AddOfDriver();
  finder.AddUnbound();
  NumberCards(finder.cards);
  return std::move(finder.cards);
}

}  // namespace hlaunch
