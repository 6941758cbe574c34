// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Messages of MPI ranks and other nodes to the server that starts the ranks. Whatever the bytes and
// pieces, an answer is whole lines of `key=value` words, and a closed rank hears nothing. The
// libraries' names in a damaged ELF file are read without reading beyond it. The first words at the
// port of PMI-1 give a number or none, in whatever pieces they come. What `hlaunch-pmix` prints,
// and what other nodes say of a PMIx group, is refused or means the same when it is said again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "agent/mpi/pmi/pmi_line.h"
#include "agent/mpi/pmi/pmi_node.h"
#include "agent/mpi/pmix/group_parts.h"
#include "agent/mpi/serve/pmix_words.h"
#include "launcher/environment/mpi/elf_needs.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr int kWorkers = 3;

void Check(const PmiNode& node, const PmiStep& step) {
  for (const auto& [local_rank, text] : step.answers) {
    HLAUNCH_CHECK(local_rank >= 0 && local_rank < kWorkers);
    HLAUNCH_CHECK(absl::StartsWith(text, "cmd=") && absl::EndsWith(text, "\n"));
    HLAUNCH_CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  }
  for (const int local_rank : step.closed) {
    HLAUNCH_CHECK(node.state(local_rank) == MpiState::kClosed);
  }
  for (const MpiFailure& failure : step.failures) {
    HLAUNCH_CHECK(failure.exit_code > 0 && failure.exit_code < 256 && !failure.reason.empty());
  }
  for (const NodeMessage& message : step.messages) {
    HLAUNCH_CHECK(DecodeMessages(EncodeMessage(message), 1).ok());
  }
}

// The first byte of a piece names the rank that sends it, or lets all nodes answer, or one rank
// exit.
void Talk(absl::string_view bytes, int nodes) {
  PmiNode node({"hl-1-r1", 0, kWorkers, kWorkers * nodes, 0, nodes, true});
  NodeMessages all(static_cast<size_t>(nodes), NodeMessage{kWorkers, "hl-1-r1", {}, ""});
  size_t owed = 0;
  const auto take = [&](const PmiStep& step) {
    Check(node, step);
    owed += step.messages.size();
    for (const auto& [local_rank, request] : step.spawns) {
      HLAUNCH_CHECK(RanksOf(request) > 0);
      Check(node, node.Spawned(local_rank, absl::UnavailableError("no\nroom")));
    }
  };
  while (!bytes.empty()) {
    const int what = static_cast<uint8_t>(bytes[0]) % (kWorkers + 2);
    const size_t size = std::min<size_t>(bytes.size(), 1 + static_cast<uint8_t>(bytes[0]) / 4);
    const absl::string_view piece = bytes.substr(1, size - 1);
    if (what < kWorkers) {
      take(node.Take(what, piece));
    } else if (what == kWorkers && owed > 0) {
      --owed;
      take(node.TakeMessages(all));
    } else if (what > kWorkers && !piece.empty()) {
      take(node.Exited(static_cast<uint8_t>(piece[0]) % kWorkers));
    }
    node.Awaited();
    bytes.remove_prefix(size);
  }
}

// The requests of somebody at the port, with the number that each brings; or "refused".
std::string Greeting(absl::string_view bytes, size_t piece) {
  PmiReader reader;
  std::string heard;
  while (!bytes.empty()) {
    const auto requests = reader.Take(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    if (!requests.ok()) return "refused";
    for (const PmiRequest& request : *requests) {
      heard += std::to_string(PmiIdIn(request).value_or(-1)) + " ";
    }
  }
  return heard;
}

void CheckPmix(absl::string_view text) {
  if (const auto news = PmixNewsIn(text); news.ok()) {
    const auto again = PmixNewsIn(ToLine(*news));
    HLAUNCH_CHECK(again.ok() && ToLine(*again) == ToLine(*news));
  }
  if (const auto group = JoinGroupParts(text); group.ok()) {
    HLAUNCH_CHECK(group->number != 0 && group->data.size() < text.size());
    const auto again = JoinGroupParts(GroupPart(group->number, group->data));
    HLAUNCH_CHECK(again.ok() && again->number == group->number && again->data == group->data);
  }
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  hlaunch::Talk(bytes, 1);
  hlaunch::Talk(bytes, 2);
  if (const auto all = hlaunch::DecodeMessages(bytes, 2); all.ok()) {
    HLAUNCH_CHECK(all->size() == 2);
  }
  HLAUNCH_CHECK(hlaunch::Greeting(bytes, 7) == hlaunch::Greeting(bytes, 1));
  hlaunch::CheckPmix(bytes);
  hlaunch::ReadElfNeeds([bytes](uint64_t offset, size_t count) {
    if (offset >= bytes.size()) return std::string();
    return std::string(bytes.substr(static_cast<size_t>(offset), count));
  })
      .status()
      .IgnoreError();
  return 0;
}
