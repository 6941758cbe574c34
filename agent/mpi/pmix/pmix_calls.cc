// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/pmix_calls.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/mpi/pmix/groups.h"
#include "agent/mpi/pmix/published.h"
#include "proto/contract/ids.h"

// All of these run on libpmix's thread. An operation that is complete returns
// PMIX_OPERATION_SUCCEEDED: since 5.0.8 PMIX_SUCCESS promises a callback.

namespace hlaunch {
namespace {

const PmixWork* the_work = nullptr;
const std::string* the_name_space = nullptr;

void CallBack(pmix_modex_cbfunc_t callback, void* context, const PmixWork::Data& data) {
  if (!data.ok()) return callback(PMIX_ERR_NOT_FOUND, nullptr, 0, context, nullptr, nullptr);
  auto* kept = new std::string(*data);
  callback(
      PMIX_SUCCESS, kept->data(), kept->size(), context,
      [](void* text) { delete static_cast<std::string*>(text); }, kept);
}

// Unset if `name` is not a world of this job.
std::optional<int> WorldOf(const pmix_proc_t& name) {
  return PmixWorldIn(name.nspace, *the_name_space);
}

// The data published on this node, and the lookups that wait for it.
Published& TheBoard() {
  static auto* const board = new Published;
  return *board;
}

pmix_status_t OnConnected(const pmix_proc_t* rank, void*, pmix_op_cbfunc_t, void*) {
  const std::optional<int> world = WorldOf(*rank);
  if (world) the_work->on_connected(*world, static_cast<Rank>(rank->rank));
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t OnFinalized(const pmix_proc_t* rank, void*, pmix_op_cbfunc_t, void*) {
  const std::optional<int> world = WorldOf(*rank);
  TheBoard().Forget(*rank);
  if (world) the_work->on_finalized(*world, static_cast<Rank>(rank->rank));
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t OnAbort(const pmix_proc_t* rank, void*, int code, const char message[], pmix_proc_t*,
                      size_t, pmix_op_cbfunc_t, void*) {
  const std::optional<int> world = WorldOf(*rank);
  if (!world) return PMIX_ERR_NOT_FOUND;
  the_work->on_abort(*world, static_cast<Rank>(rank->rank), code,
                     message == nullptr ? "" : message);
  return PMIX_OPERATION_SUCCEEDED;
}

// Collects the ranks of this job in order; empty if a wildcard names all of them. Returns false if
// a rank of another job comes before a wildcard.
bool RanksOf(const pmix_proc_t names[], size_t count, std::vector<Rank>* ranks) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i].nspace != *the_name_space) return false;
    if (names[i].rank == PMIX_RANK_WILDCARD) {
      ranks->clear();
      return true;
    }
    ranks->push_back(static_cast<Rank>(names[i].rank));
  }
  std::sort(ranks->begin(), ranks->end());
  return true;
}

// `data` has to be freed here.
pmix_status_t OnFence(const pmix_proc_t names[], size_t count, const pmix_info_t[], size_t,
                      char* data, size_t size, pmix_modex_cbfunc_t callback, void* context) {
  std::string own = data == nullptr ? "" : std::string(data, size);
  std::free(data);
  std::vector<Rank> ranks;
  if (!RanksOf(names, count, &ranks)) {  // libpmix has waited for all ranks of this node.
    if (!the_work->all_here) return PMIX_ERR_NOT_SUPPORTED;
    CallBack(callback, context, std::move(own));
    return PMIX_SUCCESS;
  }
  the_work->fence(std::move(ranks), std::move(own),
                  [=](const PmixWork::Data& all) { CallBack(callback, context, all); });
  return PMIX_SUCCESS;
}

pmix_status_t OnAsk(const pmix_proc_t* rank, const pmix_info_t[], size_t,
                    pmix_modex_cbfunc_t callback, void* context) {
  if (WorldOf(*rank) != 0) return PMIX_ERR_NOT_FOUND;
  the_work->ask(static_cast<Rank>(rank->rank),
                [=](const PmixWork::Data& data) { CallBack(callback, context, data); });
  return PMIX_SUCCESS;
}

// libpmix has waited for all ranks of this node. Nothing is stored about a group, so its end needs
// no work.
pmix_status_t OnGroup(pmix_group_operation_t operation, char* name, const pmix_proc_t members[],
                      size_t count, const pmix_info_t infos[], size_t num_infos,
                      pmix_info_cbfunc_t callback, void* context) {
  if (name == nullptr) return PMIX_ERR_BAD_PARAM;
  GroupWish wish = GroupWishOf(infos, num_infos);
  if (operation != PMIX_GROUP_CONSTRUCT || !wish.NeedsOthers()) return PMIX_OPERATION_SUCCEEDED;
  std::vector<Rank> ranks;
  if (!RanksOf(members, count, &ranks) && !the_work->all_here) return PMIX_ERR_NOT_SUPPORTED;
  std::string own = std::exchange(wish.own, "");
  the_work->group(name, std::move(ranks), std::move(own),
                  [=, kept = std::vector<pmix_proc_t>(members, members + count)](
                      const absl::StatusOr<GroupAnswer>& answer) {
                    if (!answer.ok()) {
                      return callback(PMIX_ERR_NOT_FOUND, nullptr, 0, context, nullptr, nullptr);
                    }
                    AnswerGroup(*answer, wish, kept.data(), kept.size(), callback, context);
                  });
  return PMIX_SUCCESS;
}

// libpmix has waited for all ranks of this node.
pmix_status_t OnConnect(const pmix_proc_t[], size_t, const pmix_info_t[], size_t, pmix_op_cbfunc_t,
                        void*) {
  return the_work->all_here ? PMIX_OPERATION_SUCCEEDED : PMIX_ERR_NOT_SUPPORTED;
}

pmix_status_t OnPublish(const pmix_proc_t* rank, const pmix_info_t infos[], size_t count,
                        pmix_op_cbfunc_t, void*) {
  return TheBoard().Publish(*rank, infos, count);
}

pmix_status_t OnLookup(const pmix_proc_t* rank, char** keys, const pmix_info_t infos[],
                       size_t count, pmix_lookup_cbfunc_t callback, void* context) {
  return TheBoard().LookUp(*rank, keys, infos, count, callback, context);
}

pmix_status_t OnUnpublish(const pmix_proc_t* rank, char** keys, const pmix_info_t[], size_t,
                          pmix_op_cbfunc_t, void*) {
  return TheBoard().Unpublish(*rank, keys);
}

std::string Text(const char* text) { return text == nullptr ? "" : text; }

// Adds one program to `request`.
void AddProgram(const pmix_app_t& app, SpawnRequest& request) {
  OtherProgram program{app.maxprocs, {Text(app.cmd)}, {}, Text(app.cwd)};
  // argv[0] is only the name that the program sees.
  for (char** word = app.argv; word != nullptr && *word != nullptr; ++word) {
    if (word != app.argv) program.argv.emplace_back(*word);
  }
  for (char** entry = app.env; entry != nullptr && *entry != nullptr; ++entry) {
    program.environment.emplace_back(*entry);
  }
  for (size_t i = 0; i < app.ninfo; ++i) {
    const pmix_info_t& info = app.info[i];
    if (info.value.type != PMIX_STRING) continue;
    if (std::string(info.key) == PMIX_WDIR) program.directory = Text(info.value.data.string);
    if (std::string(info.key) != PMIX_HOST) continue;
    for (const absl::string_view host :
         absl::StrSplit(Text(info.value.data.string), ',', absl::SkipWhitespace())) {
      request.hosts.emplace_back(host);
    }
  }
  request.programs.push_back(std::move(program));
}

// For one call: the agent gets the environments of all new ranks in one line, of a megabyte at
// most.
constexpr int kMaxSpawned = 512;

pmix_status_t OnSpawn(const pmix_proc_t* rank, const pmix_info_t[], size_t, const pmix_app_t apps[],
                      size_t count, pmix_spawn_cbfunc_t callback, void* context) {
  const std::optional<int> world = WorldOf(*rank);
  if (!world || !the_work->all_here) return PMIX_ERR_NOT_SUPPORTED;
  SpawnRequest request;
  int ranks = 0;
  for (size_t i = 0; i < count; ++i) {
    const int more = apps[i].maxprocs;
    if (more <= 0) return PMIX_ERR_BAD_PARAM;
    if (more > kMaxSpawned - ranks) return PMIX_ERR_OUT_OF_RESOURCE;
    ranks += more;
    AddProgram(apps[i], request);
  }
  the_work->spawn(
      *world, static_cast<Rank>(rank->rank), std::move(request), [=](const PmixWork::Data& name) {
        pmix_nspace_t space = {};
        if (name.ok()) name->copy(space, sizeof space - 1);
        callback(name.ok() ? PMIX_SUCCESS : PMIX_ERR_JOB_FAILED_TO_LAUNCH, space, context);
      });
  return PMIX_SUCCESS;
}

// A later libpmix copies more functions than are known here: those stay null.
struct Module {
  pmix_server_module_t known{};
  void* further[64] = {};
};

}  // namespace

pmix_server_module_t* PmixCalls(const PmixWork* work, const std::string* name_space, bool groups) {
  static Module module;
  the_work = work;
  the_name_space = name_space;
  module.known.client_connected = OnConnected;
  module.known.client_finalized = OnFinalized;
  module.known.abort = OnAbort;
  module.known.fence_nb = OnFence;
  module.known.direct_modex = OnAsk;
  module.known.spawn = OnSpawn;
  module.known.connect = OnConnect;
  module.known.disconnect = OnConnect;
  module.known.publish = OnPublish;
  module.known.lookup = OnLookup;
  module.known.unpublish = OnUnpublish;
  if (groups) module.known.group = OnGroup;
  return &module.known;
}

std::string PmixWorldName(absl::string_view job, int world) {
  return world == 0 ? std::string(job) : absl::StrCat(job, "-s", world);
}

std::optional<int> PmixWorldIn(absl::string_view name, absl::string_view job) {
  if (name == job) return 0;
  int world = 0;
  if (!absl::ConsumePrefix(&name, job) || !absl::ConsumePrefix(&name, "-s")) return std::nullopt;
  if (!absl::SimpleAtoi(name, &world) || world <= 0) return std::nullopt;
  return world;
}

}  // namespace hlaunch
