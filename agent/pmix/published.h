// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/pmix/pmix_library.h"

namespace hlaunch {

// What ranks of this node have published by PMIx, and who looks for it: MPI_Comm_spawn and
// MPI_Comm_connect meet so. Values are texts and bytes; Open MPI publishes nothing else.
//
// Belongs to libpmix's thread.
class Published {
 public:
  // Takes what `infos` says beside PMIx's own keys; whoever waits for it gets it from within.
  pmix_status_t Publish(const pmix_proc_t& owner, const pmix_info_t infos[], size_t count);

  // Has `callback` called with the values of `keys`, a list that ends with a null: at once, or,
  // where `infos` says that they are to be awaited, as soon as they are all there.
  pmix_status_t LookUp(const pmix_proc_t& asker, char** keys, const pmix_info_t infos[],
                       size_t count, pmix_lookup_cbfunc_t callback, void* context);

  // `rank` has left: it waits for nothing any more.
  void Forget(const pmix_proc_t& rank);

  // Forgets `keys` of `owner`; null: all of them.
  pmix_status_t Unpublish(const pmix_proc_t& owner, char** keys);

 private:
  struct Value {
    pmix_proc_t owner{};
    pmix_data_type_t type = PMIX_STRING;  // Or PMIX_BYTE_OBJECT.
    std::string bytes;
    bool once = false;  // The first to read it takes it away.
  };
  struct Waiting {
    pmix_proc_t asker{};
    std::vector<std::string> keys;
    pmix_lookup_cbfunc_t callback = nullptr;
    void* context = nullptr;
  };

  bool Answer(const Waiting& waiting);

  std::map<std::string, Value> values_;
  size_t bytes_ = 0;
  std::list<Waiting> waiting_;
};

}  // namespace hlaunch
