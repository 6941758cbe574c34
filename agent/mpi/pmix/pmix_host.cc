// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/pmix_host.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/mpi/pmix/groups.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// Keys and values for libpmix. The strings must stay valid until libpmix has copied them.
class InfoList {
 public:
  explicit InfoList(const PmixLibrary& library) : library_(library) {}

  void Add(const char* key, const std::string& text) {
    library_.info_load(&Next(), key, text.c_str(), PMIX_STRING);
  }
  void Add(const char* key, uint32_t number) {
    library_.info_load(&Next(), key, &number, PMIX_UINT32);
  }
  void Add(const char* key, bool flag) { library_.info_load(&Next(), key, &flag, PMIX_BOOL); }
  // `map` comes from generate_regex or generate_ppn. libpmix 3 has no type of its own for it.
  void AddMap(const char* key, const char* map) {
    const bool is_text = absl::StartsWith(map, "pmix[");
    library_.info_load(&Next(), key, map, is_text ? PMIX_STRING : PMIX_REGEX);
  }
  void AddRank(const char* key, Rank rank) {
    const auto number = static_cast<pmix_rank_t>(rank);
    library_.info_load(&Next(), key, &number, PMIX_PROC_RANK);
  }

  void AddName(const char* key, const pmix_proc_t& name) {
    library_.info_load(&Next(), key, &name, PMIX_PROC);
  }
  void Add(const char* key, uint16_t number) {
    library_.info_load(&Next(), key, &number, PMIX_UINT16);
  }
  void AddList(const char* key, InfoList& list) {
    const pmix_data_array_t array = {PMIX_INFO, list.size(), list.data()};
    library_.info_load(&Next(), key, &array, PMIX_DATA_ARRAY);
  }

  pmix_info_t* data() { return infos_.data(); }
  size_t size() const { return infos_.size(); }

 private:
  pmix_info_t& Next() { return infos_.emplace_back(pmix_info_t{}); }

  const PmixLibrary& library_;
  std::vector<pmix_info_t> infos_;  // libpmix allocates inside; that memory is never freed.
};

// "0 2" for {2, 1}: the first rank of each program.
std::string FirstRanks(const std::vector<int>& programs) {
  std::vector<int> first = {0};
  for (const int ranks : programs) first.push_back(first.back() + ranks);
  first.pop_back();
  return absl::StrJoin(first, " ");
}

// Describes each rank if the ranks run several programs. libpmix then takes nothing else about a
// rank from the maps.
void AddRanks(const PmixLibrary& library, const PmixHost::Place& place, InfoList& infos) {
  Rank rank = 0;
  int node = -1;
  uint16_t local_rank = 0;
  for (size_t program = 0; program < place.programs.size(); ++program) {
    for (const Rank end = rank + place.programs[program]; rank < end; ++rank, ++local_rank) {
      if (place.map.NodeOf(rank) != node) local_rank = 0;
      node = place.map.NodeOf(rank);
      if (node < 0) return;
      InfoList of_rank(library);
      of_rank.AddRank(PMIX_RANK, rank);
      of_rank.Add(PMIX_APPNUM, static_cast<uint32_t>(program));
      of_rank.Add(PMIX_LOCAL_RANK, local_rank);
      of_rank.Add(PMIX_NODE_RANK, local_rank);
      of_rank.Add(PMIX_NODEID, static_cast<uint32_t>(node));
      of_rank.Add(PMIX_HOSTNAME, place.map.host(node));
      infos.AddList(PMIX_PROC_INFO_ARRAY, of_rank);
    }
  }
}

pmix_proc_t NameOf(const std::string& world, Rank rank) {
  pmix_proc_t name{};
  world.copy(name.nspace, sizeof name.nspace - 1);
  name.rank = static_cast<pmix_rank_t>(rank);
  return name;
}

std::string RankText(Rank first, int count) {
  std::vector<Rank> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(first + i);
  return absl::StrJoin(ranks, ",");
}

}  // namespace

PmixHost::PmixHost(const PmixLibrary& library, Place place, PmixWork work)
    : library_(library), place_(std::move(place)), work_(std::move(work)) {}

absl::StatusOr<std::unique_ptr<PmixHost>> PmixHost::Start(const PmixLibrary& library, Place place,
                                                          PmixWork work) {
  std::unique_ptr<PmixHost> host(new PmixHost(library, std::move(place), std::move(work)));
  HLAUNCH_RETURN_IF_ERROR(host->Init());
  HLAUNCH_RETURN_IF_ERROR(host->RegisterJob(host->place_, nullptr));
  HLAUNCH_RETURN_IF_ERROR(host->RegisterRanks(host->place_));
  return host;
}

absl::Status PmixHost::Check(pmix_status_t status, const char* what) const {
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("libpmix refuses to ", what, ": ", library_.error_string(status)));
}

absl::Status PmixHost::Init() {
  InfoList infos(library_);
  infos.Add(PMIX_SERVER_TMPDIR, place_.directory);
  infos.Add(PMIX_SYSTEM_TMPDIR, place_.directory);
  infos.Add(PMIX_HOSTNAME, place_.map.host(place_.node_rank));
  infos.AddRank(PMIX_SERVER_RANK, place_.node_rank);
  // Ranks use the machine's topology that this server has found, and need not look for it
  // themselves.
  infos.Add(PMIX_SERVER_SHARE_TOPOLOGY, true);
  pmix_server_module_t* const calls =
      PmixCalls(&work_, &place_.map.name_space(), ServesGroups(library_.version()));
  return Check(library_.server_init(calls, infos.data(), infos.size()), "start its server");
}

absl::Status PmixHost::RegisterJob(const Place& place, const pmix_proc_t* parent) const {
  char* hosts = nullptr;
  char* ranks = nullptr;
  HLAUNCH_RETURN_IF_ERROR(
      Check(library_.generate_regex(place.map.Hosts().c_str(), &hosts), "take the nodes' names"));
  HLAUNCH_RETURN_IF_ERROR(
      Check(library_.generate_ppn(place.map.Ranks().c_str(), &ranks), "take the nodes' ranks"));
  const auto size = static_cast<uint32_t>(place.map.world_size());
  InfoList infos(library_);
  infos.AddMap(PMIX_NODE_MAP, hosts);
  infos.AddMap(PMIX_PROC_MAP, ranks);
  infos.Add(PMIX_JOBID, place.map.name_space());
  infos.Add(PMIX_JOB_SIZE, size);
  infos.Add(PMIX_UNIV_SIZE, size);
  infos.Add(PMIX_MAX_PROCS, size);
  infos.Add(PMIX_JOB_NUM_APPS, static_cast<uint32_t>(place.programs.size()));
  if (place.programs.size() > 1) {
    infos.Add("OMPI_APP_SIZES", absl::StrJoin(place.programs, " "));
    infos.Add("OMPI_FIRST_RANKS", FirstRanks(place.programs));
    AddRanks(library_, place, infos);
  }
  infos.Add(PMIX_LOCAL_SIZE, static_cast<uint32_t>(place.nproc));
  infos.Add(PMIX_LOCAL_PEERS, RankText(place.first_rank, place.nproc));
  infos.Add(PMIX_TMPDIR, place.directory);
  infos.Add(PMIX_NSDIR, place.directory);
  infos.Add(PMIX_TDIR_RMCLEAN, true);
  // The mere presence of this key makes waiting ranks yield.
  if (place.oversubscribed) infos.Add(PMIX_NODE_OVERSUBSCRIBED, true);
  if (parent != nullptr) {
    infos.AddName(PMIX_PARENT_ID, *parent);
    infos.Add(PMIX_SPAWNED, true);
  }
  const pmix_proc_t job = NameOf(place.map.name_space(), 0);
  const pmix_status_t taken = library_.register_nspace(job.nspace, place.nproc, infos.data(),
                                                       infos.size(), nullptr, nullptr);
  std::free(hosts);
  std::free(ranks);
  return Check(taken, "take the job");
}

absl::Status PmixHost::RegisterRanks(const Place& place) const {
  for (int i = 0; i < place.nproc; ++i) {
    const pmix_proc_t name = NameOf(place.map.name_space(), place.first_rank + i);
    HLAUNCH_RETURN_IF_ERROR(
        Check(library_.register_client(&name, ::geteuid(), ::getegid(), nullptr, nullptr, nullptr),
              "take a rank"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> PmixHost::EnvironmentOf(int local_rank) const {
  return EnvironmentOf(NameOf(place_.map.name_space(), place_.first_rank + local_rank));
}

absl::StatusOr<std::vector<std::string>> PmixHost::EnvironmentOf(const pmix_proc_t& name) const {
  char** entries = nullptr;
  HLAUNCH_RETURN_IF_ERROR(Check(library_.setup_fork(&name, &entries), "say where it is"));
  std::vector<std::string> environment;
  for (char** entry = entries; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
    std::free(*entry);
  }
  std::free(entries);
  return environment;
}

absl::StatusOr<std::vector<std::vector<std::string>>> PmixHost::Spawn(
    const Place& world, const std::string& parent_world, Rank parent) const {
  const pmix_proc_t parents_name = NameOf(parent_world, parent);
  HLAUNCH_RETURN_IF_ERROR(RegisterJob(world, &parents_name));
  HLAUNCH_RETURN_IF_ERROR(RegisterRanks(world));
  std::vector<std::vector<std::string>> environments;
  for (Rank rank = 0; rank < world.nproc; ++rank) {
    HLAUNCH_ASSIGN_OR_RETURN(environments.emplace_back(),
                             EnvironmentOf(NameOf(world.map.name_space(), rank)));
  }
  return environments;
}

void PmixHost::Said(Rank rank, PmixWork::Done done) const {
  const pmix_proc_t name = NameOf(place_.map.name_space(), rank);
  auto* context = new PmixWork::Done(std::move(done));
  const pmix_status_t asked = library_.dmodex_request(
      &name,
      [](pmix_status_t status, char* data, size_t size, void* waiting) {
        const std::unique_ptr<PmixWork::Done> tell(static_cast<PmixWork::Done*>(waiting));
        if (status != PMIX_SUCCESS) return (*tell)(absl::NotFoundError("it has said nothing"));
        (*tell)(std::string(data, size));
      },
      context);
  if (asked == PMIX_SUCCESS) return;
  const std::unique_ptr<PmixWork::Done> tell(context);
  (*tell)(Check(asked, "say what a rank has said"));
}

}  // namespace hlaunch
