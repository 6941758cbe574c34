// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/why_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/watch/hang/snapshot_text.h"
#include "launcher/report/query/who_answered.h"
#include "launcher/text/text_table.h"
#include "nlohmann/json.hpp"
#include "rendezvous/round/hang/attribute_hang.h"
#include "rendezvous/round/hang/describe_hang.h"
#include "rendezvous/round/hang/same_state.h"

namespace hlaunch {
namespace {

using nlohmann::ordered_json;

const char* KindName(HangKind kind) {
  switch (kind) {
    case HangKind::kNone:
      return "none";
    case HangKind::kBehind:
      return "behind";
    case HangKind::kMismatch:
      return "mismatch";
    case HangKind::kCrossed:
      return "crossed";
    case HangKind::kAllInside:
      return "all_inside";
    case HangKind::kDevice:
      return "device";
    case HangKind::kStore:
      return "store";
    case HangKind::kPeers:
      return "peers";
    case HangKind::kMpi:
      return "mpi";
    case HangKind::kLeft:
      return "left";
  }
  return "";
}

// Snapshots of ranks that go on were taken at different moments, and snapshots of some ranks tell
// nothing of the others. So both give no verdict.
HangVerdict Judge(const RankQuestion& question, const std::vector<RankSnapshot>& ranks) {
  const bool whole = question.ranks.empty() && std::none_of(ranks.begin(), ranks.end(), GoesOn);
  return whole ? AttributeHang(ranks) : HangVerdict();
}

// "2 of 3 ranks go on; default_pg is at all_reduce number 1203 to 1205"
std::string Progress(const std::vector<RankSnapshot>& ranks) {
  const auto going = static_cast<size_t>(std::count_if(ranks.begin(), ranks.end(), GoesOn));
  if (going == 0) return "";
  const std::string who = going == ranks.size()
                              ? (going == 1 ? std::string("the rank goes on")
                                            : absl::StrCat("all ", going, " ranks go on"))
                              : absl::StrCat(going, " of ", ranks.size(),
                                             going == 1 ? " ranks goes on" : " ranks go on");
  const std::string where = DescribeProgress(ranks);
  return absl::StrCat(who, where.empty() ? "" : "; ", where, "\n");
}

// In a job of many nodes, most of an answer's text is lists of groups' members, and all nodes send
// the same lists. Each list is kept once.
class MemberLists {
 public:
  void Thin(RankSnapshot& rank) {
    for (GroupSnapshot& group : rank.groups) {
      if (group.members.empty()) continue;
      const bool known = kept_[group.name] == group.members;
      if (known || group.members.size() > left_) {
        group.members = {};
      } else {
        left_ -= group.members.size();
        kept_[group.name] = group.members;
      }
    }
  }

 private:
  size_t left_ = 4 << 20;
  std::map<std::string, std::vector<Rank>> kept_;
};

ordered_json ToJson(const RankSnapshot& rank) {
  ordered_json json = {{"rank", rank.rank},       {"local_rank", rank.local_rank},
                       {"host", rank.host},       {"pid", rank.pid},
                       {"goes_on", GoesOn(rank)}, {"state", DescribeState(rank)},
                       {"place", rank.place}};
  json["collectives"] = ordered_json::array();
  for (const GroupSnapshot& group : rank.groups) {
    if (group.latest.empty()) continue;
    const CollectiveCall& call = group.latest.back();
    json["collectives"].push_back({{"group", group.name},
                                   {"description", group.description},
                                   {"number", call.sequence},
                                   {"op", call.op},
                                   {"sizes", call.sizes},
                                   {"inside", call.inside}});
  }
  return json;
}

}  // namespace

std::vector<RankSnapshot> TakeSnapshots(JobAnswer& answer) {
  std::vector<RankSnapshot> all;
  MemberLists lists;
  for (NodeWord& node : answer.nodes) {
    if (!node.problem.empty()) continue;
    auto told = ParseSnapshots(node.text);
    if (!told) {
      node.problem = "has an answer that cannot be read";
      continue;
    }
    for (RankSnapshot& rank : *told) {
      if (rank.rank < node.first_rank || rank.rank >= node.first_rank + node.nproc) continue;
      rank.host = node.host;
      lists.Thin(rank);
      all.push_back(std::move(rank));
    }
  }
  return all;
}

std::string WhyText(const std::string& job_id, const RankQuestion& question,
                    const JobAnswer& answer, const std::vector<RankSnapshot>& ranks) {
  std::string text = absl::StrCat(HeadOf(job_id, answer), Progress(ranks));
  const std::string standstill = DescribeStandstill(Judge(question, ranks), ranks);
  if (!standstill.empty()) {
    absl::StrAppend(&text, "no rank has called a collective for 1 s. ", standstill, "\n");
  }
  if (std::all_of(ranks.begin(), ranks.end(), GoesOn)) return text + SilentText(answer);
  for (const SameState& state : GroupByState(ranks)) {
    absl::StrAppend(&text, NameOf(state.ranks, answer), state.ranks.size() == 1 ? ": " : ": each ",
                    state.text, "\n");
  }
  return absl::StrCat(text, SilentText(answer));
}

std::string WhyJson(const std::string& job_id, const RankQuestion& question,
                    const JobAnswer& answer, const std::vector<RankSnapshot>& ranks) {
  ordered_json json = HeadJson(job_id, answer);
  const HangVerdict verdict = Judge(question, ranks);
  json["verdict"] = {{"kind", KindName(verdict.kind)},
                     {"culprits", verdict.culprits},
                     {"waiting", verdict.waiting},
                     {"text", DescribeStandstill(verdict, ranks)}};
  json["ranks"] = ordered_json::array();
  for (const RankSnapshot& rank : ranks) json["ranks"].push_back(ToJson(rank));
  return JsonText(json);
}

}  // namespace hlaunch
