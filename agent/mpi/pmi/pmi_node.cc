// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_node.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "agent/mpi/pmi/process_mapping.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxPmiKeyBytes = 256;      // A client is told 64.
constexpr size_t kMaxPmiValueBytes = 2048;   // A client is told 1024.
constexpr size_t kMaxSpaceBytes = 1u << 28;  // For all ranks; 500 bytes each are usual.
constexpr size_t kMaxRequests = 64;          // For a rank that waits. A client sends one at a time.
constexpr size_t kMaxPorts = 4096;           // That are published.

constexpr char kMappingKey[] = "PMI_process_mapping";

std::string PlainWord(absl::string_view text) {
  return absl::StrReplaceAll(text, {{" ", "_"}, {"=", "_"}, {"\n", "_"}});
}

// The error codes of `count` started processes. Old clients read 1,024 bytes of an answer, and take
// a missing code for 0.
std::string ErrorCodes(int count) {
  constexpr int kMost = 256;
  if (count > kMost) return "";
  return absl::StrCat(" errcodes=", absl::StrJoin(std::vector<int>(count), ","));
}

std::string SpawnAnswer(int count, const absl::Status& started) {
  if (started.ok()) return absl::StrCat("cmd=spawn_result rc=0", ErrorCodes(count), "\n");
  return absl::StrCat(
      "cmd=spawn_result rc=-1 msg=", PlainWord(started.message()).substr(0, kMaxPmiKeyBytes), "\n");
}

}  // namespace

PmiNode::PmiNode(PmiPlace place)
    : place_(std::move(place)),
      ranks_(place_.first_rank, place_.nproc, place_.world_size),
      sessions_(static_cast<size_t>(place_.nproc)) {
  for (const auto& [key, value] : place_.given) Keep(key, value);
  if (!alone()) return;
  kvs_name_ = place_.kvs_name;
  mapping_ = ProcessMapping({place_.nproc});
}

PmiStep PmiNode::Take(int local_rank, absl::string_view bytes) {
  PmiStep step;
  Session& session = At(local_rank);
  if (state(local_rank) == MpiState::kClosed) return step;
  absl::StatusOr<std::vector<PmiRequest>> requests = session.reader.Take(bytes);
  if (!requests.ok()) {
    Close(local_rank, requests.status().message(), step);
    return step;
  }
  for (PmiRequest& request : *requests) session.requests.push_back(std::move(request));
  if (session.requests.size() > kMaxRequests) {
    Close(local_rank, "requests of PMI-1 without waiting for their answers", step);
    return step;
  }
  Go(local_rank, step);
  return step;
}

// Answers the requests that can be answered now.
void PmiNode::Go(int local_rank, PmiStep& step) {
  Session& session = At(local_rank);
  while (!session.requests.empty() && !ranks_.in_barrier(local_rank) && session.spawning == 0 &&
         state(local_rank) != MpiState::kClosed) {
    PmiRequest request = std::move(session.requests.front());
    session.requests.pop_front();
    if (Answer(local_rank, request, step)) continue;
    return session.requests.push_front(std::move(request));
  }
}

// Returns false if the answer has to wait for the other nodes.
bool PmiNode::Answer(int local_rank, const PmiRequest& request, PmiStep& step) {
  const std::string& command = request.command;
  const auto say = [&](std::string line) {
    step.answers.emplace_back(local_rank, absl::StrCat(std::move(line), "\n"));
    return true;
  };
  if (command == "init") return say(Init(local_rank, request, step));
  if (state(local_rank) != MpiState::kInMpi) {
    Close(local_rank, absl::StrCat("the request ", PlainWord(command), " outside of PMI-1's init"),
          step);
    return true;
  }
  if (command == "get_maxes") return say("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024");
  if (command == "get_appnum") {
    const int number =
        place_.programs.empty() ? 0 : place_.programs[static_cast<size_t>(local_rank)];
    return say(absl::StrCat("cmd=appnum appnum=", number));
  }
  if (command == "get_universe_size") {
    return say(absl::StrCat("cmd=universe_size size=", place_.world_size));
  }
  const bool of_all = command == "get_my_kvsname" || request.Word("key") == kMappingKey;
  if (of_all && kvs_name_.empty()) return false;
  if (command == "get_my_kvsname") {
    return say(absl::StrCat("cmd=my_kvsname kvsname=", kvs_name_));
  }
  if (command == "get") return say(Get(request));
  if (command == "put") return say(Put(request));
  if (command == "barrier_in") {
    EnterBarrier(local_rank, step);
    return true;
  }
  if (command == "finalize") {
    ranks_.Finish(local_rank);
    return say("cmd=finalize_ack");
  }
  if (command == "abort") {
    Abort(local_rank, request, step);
    return true;
  }
  if (command == "publish_name" || command == "lookup_name" || command == "unpublish_name") {
    return say(NameService(request));
  }
  if (command == "spawn") {
    Spawn(local_rank, request, step);
    return true;
  }
  Close(local_rank, absl::StrCat("a request that is not known here: ", PlainWord(command)), step);
  return true;
}

std::string PmiNode::Init(int local_rank, const PmiRequest& request, PmiStep& step) {
  const bool fits = request.Number("pmi_version").value_or(1) == 1;
  if (!fits || state(local_rank) != MpiState::kSilent) {
    Close(local_rank,
          fits ? "a second MPI program in one worker, which only serves one"
               : "a version of PMI that is not served: hlaunch serves PMI-1",
          step);
    return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1";
  }
  if (auto left = ranks_.Enter(local_rank)) step.failures.push_back(*std::move(left));
  if (!alone()) Hello("", step);
  // Version 1.1: with a higher one clients ask for barriers of groups.
  return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
}

// Sends the first message to the other nodes.
void PmiNode::Hello(std::string absent, PmiStep& step) {
  if (std::exchange(said_hello_, true)) return;
  step.messages.push_back({place_.nproc, place_.kvs_name, {}, std::move(absent)});
}

std::string PmiNode::Get(const PmiRequest& request) const {
  const std::string key = request.Word("key").value_or("");
  if (request.Word("kvsname") != kvs_name_) {
    return "cmd=get_result rc=-1 msg=kvs_not_found value=unknown";
  }
  const auto found = values_.find(key);
  const bool is_mapping = key == kMappingKey && !mapping_.empty();
  if (!is_mapping && found == values_.end()) {
    return absl::StrCat("cmd=get_result rc=-1 msg=key_", PlainWord(key).substr(0, kMaxPmiKeyBytes),
                        "_not_found value=unknown");
  }
  return absl::StrCat("cmd=get_result rc=0 msg=success value=",
                      is_mapping ? mapping_ : found->second);
}

std::string PmiNode::Put(const PmiRequest& request) {
  const std::string key = request.Word("key").value_or("");
  const std::string value = request.Rest("value").value_or("");
  if (kvs_name_.empty() || request.Word("kvsname") != kvs_name_) {
    return "cmd=put_result rc=-1 msg=kvs_not_found";
  }
  if (key.empty() || key.size() > kMaxPmiKeyBytes || value.size() > kMaxPmiValueBytes) {
    return "cmd=put_result rc=-1 msg=key_or_value_too_long";
  }
  if (!Keep(key, value)) return "cmd=put_result rc=-1 msg=no_room";
  if (!alone()) fresh_.emplace_back(key, value);
  return "cmd=put_result rc=0 msg=success";
}

bool PmiNode::Keep(std::string key, std::string value) {
  if (bytes_ + key.size() + value.size() > kMaxSpaceBytes) return false;
  bytes_ += key.size() + value.size();
  std::string& kept = values_[std::move(key)];
  bytes_ -= kept.size();
  kept = std::move(value);
  return true;
}

std::string PmiNode::NameService(const PmiRequest& request) {
  const std::string service = request.Word("service").value_or("");
  const std::string verb = request.command.substr(0, request.command.find('_'));
  const std::string refused = absl::StrCat("cmd=", verb, "_result info=ok rc=1 msg=");
  const std::string done = absl::StrCat("cmd=", verb, "_result info=ok rc=0 msg=success");
  if (!alone()) return absl::StrCat(refused, "not_between_several_nodes");
  const auto found = ports_.find(service);
  if (verb == "publish") {
    if (found != ports_.end()) return absl::StrCat(refused, "key_already_present");
    const std::string port = request.Word("port").value_or("");
    const bool fits = port.size() <= kMaxPmiValueBytes && service.size() <= kMaxPmiValueBytes;
    if (!fits || ports_.size() >= kMaxPorts) return absl::StrCat(refused, "no_room");
    ports_[service] = port;
    return done;
  }
  if (found == ports_.end()) return absl::StrCat(refused, "service_not_found");
  if (verb == "lookup") {
    return absl::StrCat("cmd=lookup_result port=", found->second, " info=ok rc=0 msg=success");
  }
  ports_.erase(found);
  return done;
}

// Answers only the last block of a call.
void PmiNode::Spawn(int local_rank, const PmiRequest& block, PmiStep& step) {
  Session& session = At(local_rank);
  if (!session.spawn) session.spawn.emplace();
  session.refused.Update(AddProgram(block, &*session.spawn));
  if (!IsLastOfSpawn(block)) return;
  SpawnRequest request = *std::exchange(session.spawn, std::nullopt);
  const absl::Status refused = std::exchange(session.refused, absl::OkStatus());
  if (!refused.ok()) return void(step.answers.emplace_back(local_rank, SpawnAnswer(0, refused)));
  session.spawning = RanksOf(request);
  step.spawns.emplace_back(local_rank, std::move(request));
}

PmiStep PmiNode::Spawned(int local_rank, const absl::Status& started) {
  PmiStep step;
  const int count = std::exchange(At(local_rank).spawning, 0);
  if (state(local_rank) == MpiState::kClosed) return step;
  step.answers.emplace_back(local_rank, SpawnAnswer(count, started));
  Go(local_rank, step);
  return step;
}

void PmiNode::Abort(int local_rank, const PmiRequest& request, PmiStep& step) {
  step.failures.push_back(ranks_.Abort(local_rank, request.Number("exitcode").value_or(1)));
  step.closed.push_back(local_rank);  // The rank ends itself after that.
}

void PmiNode::EnterBarrier(int local_rank, PmiStep& step) {
  ranks_.SetInBarrier(local_rank, true);
  for (int rank = 0; rank < place_.nproc; ++rank) {
    if (!ranks_.in_barrier(rank)) return;
  }
  if (alone()) return OpenBarrier(step);
  step.messages.push_back({place_.nproc, "", std::exchange(fresh_, {}), ""});
}

void PmiNode::OpenBarrier(PmiStep& step) {
  for (int rank = 0; rank < place_.nproc; ++rank) {
    ranks_.SetInBarrier(rank, false);
    step.answers.emplace_back(rank, "cmd=barrier_out\n");
  }
  for (int rank = 0; rank < place_.nproc; ++rank) Go(rank, step);
}

PmiStep PmiNode::TakeMessages(const NodeMessages& all) {
  PmiStep step;
  const bool hello = kvs_name_.empty();
  if (!hello) {
    bool room = true;
    for (const NodeMessage& message : all) {
      for (const auto& [key, value] : message.pairs) {
        if (!absl::StrContains(value, "\n")) room = Keep(key, value) && room;
      }
    }
    if (!room) step.warnings.emplace_back("MPI's key-value space is full");
    OpenBarrier(step);
    return step;
  }
  std::vector<int> nprocs;
  const NodeMessage* absent = nullptr;
  for (const NodeMessage& message : all) {
    nprocs.push_back(message.nproc);
    if (!message.absent.empty() && absent == nullptr) absent = &message;
  }
  for (int rank = 0; absent != nullptr && rank < place_.nproc; ++rank) {
    if (state(rank) != MpiState::kInMpi) continue;
    step.failures.push_back(
        {rank, 1,
         absl::StrCat(absent->absent, ", and rank ", ranks_.RankOf(rank), " waits in it")});
    return step;
  }
  if (all.empty()) return step;
  kvs_name_ = all.front().kvs_name;
  mapping_ = ProcessMapping(nprocs);
  for (int rank = 0; rank < place_.nproc; ++rank) Go(rank, step);
  return step;
}

PmiStep PmiNode::Exited(int local_rank) {
  PmiStep step;
  if (auto failure = ranks_.Exited(local_rank)) {
    step.failures.push_back(*std::move(failure));
  } else if (state(local_rank) == MpiState::kSilent && !alone() &&
             (place_.certain || ranks_.AllLeftBeforeInit())) {
    // If the program may be no MPI program, only a node whose ranks have all exited knows that none
    // will call MPI_Init.
    Hello(ranks_.LeftBeforeInit(local_rank), step);
  }
  return step;
}

void PmiNode::Close(int local_rank, absl::string_view why, PmiStep& step) {
  step.warnings.push_back(absl::StrCat("rank ", ranks_.RankOf(local_rank),
                                       " is not served MPI's start any more: it sent ", why));
  ranks_.Close(local_rank);
  At(local_rank).requests.clear();
  step.closed.push_back(local_rank);
}

std::optional<int> PmiIdIn(const PmiRequest& request) {
  return request.command == "initack" ? request.Number("pmiid") : std::nullopt;
}

std::string WelcomeOfPmi(int world_size, Rank rank) {
  return absl::StrCat("cmd=initack\ncmd=set size=", world_size, "\ncmd=set rank=", rank,
                      "\ncmd=set debug=0\n");
}

}  // namespace hlaunch
