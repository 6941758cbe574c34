// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/pmix/pmix_calls.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/contract/ids.h"

// All of these run on libpmix's thread. An operation that has been done is
// PMIX_OPERATION_SUCCEEDED: since 5.0.8 PMIX_SUCCESS is the promise to call back.

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

pmix_status_t OnConnected(const pmix_proc_t* rank, void*, pmix_op_cbfunc_t, void*) {
  the_work->on_connected(static_cast<Rank>(rank->rank));
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t OnFinalized(const pmix_proc_t* rank, void*, pmix_op_cbfunc_t, void*) {
  the_work->on_finalized(static_cast<Rank>(rank->rank));
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t OnAbort(const pmix_proc_t* rank, void*, int code, const char message[], pmix_proc_t*,
                      size_t, pmix_op_cbfunc_t, void*) {
  the_work->on_abort(static_cast<Rank>(rank->rank), code, message == nullptr ? "" : message);
  return PMIX_OPERATION_SUCCEEDED;
}

// Ranks of this job in their order; empty: all of it. False: of another one too.
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

// `data` is ours to free.
pmix_status_t OnFence(const pmix_proc_t names[], size_t count, const pmix_info_t[], size_t,
                      char* data, size_t size, pmix_modex_cbfunc_t callback, void* context) {
  std::string own = data == nullptr ? "" : std::string(data, size);
  std::free(data);
  std::vector<Rank> ranks;
  if (!RanksOf(names, count, &ranks)) return PMIX_ERR_NOT_SUPPORTED;
  the_work->fence(std::move(ranks), std::move(own),
                  [=](const PmixWork::Data& all) { CallBack(callback, context, all); });
  return PMIX_SUCCESS;
}

pmix_status_t OnAsk(const pmix_proc_t* rank, const pmix_info_t[], size_t,
                    pmix_modex_cbfunc_t callback, void* context) {
  the_work->ask(static_cast<Rank>(rank->rank),
                [=](const PmixWork::Data& data) { CallBack(callback, context, data); });
  return PMIX_SUCCESS;
}

// A later libpmix copies more functions than are known here: those are none.
struct Module {
  pmix_server_module_t known{};
  void* further[64] = {};
};

}  // namespace

pmix_server_module_t* PmixCalls(const PmixWork* work, const std::string* name_space) {
  static Module module;
  the_work = work;
  the_name_space = name_space;
  module.known.client_connected = OnConnected;
  module.known.client_finalized = OnFinalized;
  module.known.abort = OnAbort;
  module.known.fence_nb = OnFence;
  module.known.direct_modex = OnAsk;
  return &module.known;
}

}  // namespace hlaunch
