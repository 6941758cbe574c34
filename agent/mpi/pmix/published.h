// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/mpi/pmix/pmix_library.h"

namespace hlaunch {

// The data that ranks of this node have published through PMIx, and the lookups that wait for it.
// MPI_Comm_spawn and MPI_Comm_connect use it to meet. Values are texts and bytes; Open MPI
// publishes nothing else.
//
// Belongs to libpmix's thread.
class Published {
 public:
  // Stores the values in `infos` except PMIx's own keys: all of them, or none on an error. Answers
  // the lookups that wait for them before it returns.
  pmix_status_t Publish(const pmix_proc_t& owner, const pmix_info_t infos[], size_t count);

  // Calls `callback` with the values of `keys`, a list that ends with a null. Calls it at once or,
  // if `infos` asks to wait, as soon as all of them are published.
  pmix_status_t LookUp(const pmix_proc_t& asker, char** keys, const pmix_info_t infos[],
                       size_t count, pmix_lookup_cbfunc_t callback, void* context);

  // `rank` has left: drops its waiting lookups.
  void Forget(const pmix_proc_t& rank);

  // Removes `keys` of `owner`; null: all of its keys.
  pmix_status_t Unpublish(const pmix_proc_t& owner, char** keys);

 private:
  struct Value {
    pmix_proc_t owner{};
    pmix_data_type_t type = PMIX_STRING;  // Or PMIX_BYTE_OBJECT.
    std::string bytes;
    bool once = false;  // The first lookup removes it.
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
