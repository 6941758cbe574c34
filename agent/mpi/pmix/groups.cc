// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/groups.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

namespace hlaunch {
namespace {

// The data passed to libpmix, kept until libpmix gives it back.
struct Handed {
  std::vector<pmix_proc_t> members;
  pmix_data_array_t array{};
  std::vector<pmix_info_t> infos;

  pmix_info_t& Add(const char* key) {
    pmix_info_t& info = infos.emplace_back(pmix_info_t{});
    std::strncpy(info.key, key, sizeof info.key - 1);
    return info;
  }
};

// Frees the bytes if libpmix has left them; if it took them over, it has set them to null.
void GiveBack(void* handed) {
  const std::unique_ptr<Handed> owned(static_cast<Handed*>(handed));
  for (const pmix_info_t& info : owned->infos) {
    if (info.value.type == PMIX_BYTE_OBJECT) std::free(info.value.data.bo.bytes);
  }
}

void AddData(const std::string& data, Handed& handed) {
  auto* const bytes = static_cast<char*>(std::malloc(data.size()));
  if (bytes == nullptr) return;
  std::memcpy(bytes, data.data(), data.size());
  pmix_info_t& info = handed.Add(PMIX_GROUP_ENDPT_DATA);
  info.value.type = PMIX_BYTE_OBJECT;
  info.value.data.bo = {bytes, data.size()};
}

bool IsSet(const pmix_info_t& info) {  // A flag without a value is set.
  return info.value.type != PMIX_BOOL || info.value.data.flag;
}

}  // namespace

GroupWish GroupWishOf(const pmix_info_t infos[], size_t count) {
  GroupWish wish;
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view key = infos[i].key;
    const pmix_value_t& value = infos[i].value;
    if (key == PMIX_GROUP_ASSIGN_CONTEXT_ID) wish.number = IsSet(infos[i]);
    if (key == PMIX_EMBED_BARRIER) wish.meet = IsSet(infos[i]);
    if (key == PMIX_GROUP_LOCAL_ONLY) wish.here = IsSet(infos[i]);
    if (key == PMIX_GROUP_ENDPT_DATA && value.type == PMIX_BYTE_OBJECT) {
      wish.own.assign(value.data.bo.bytes, value.data.bo.size);
    }
  }
  return wish;
}

void AnswerGroup(const GroupAnswer& answer, const GroupWish& wish, const pmix_proc_t members[],
                 size_t count, pmix_info_cbfunc_t callback, void* context) {
  auto handed = std::make_unique<Handed>();
  handed->members.assign(members, members + count);
  handed->array = {PMIX_PROC, count, handed->members.data()};
  pmix_info_t& who = handed->Add(PMIX_GROUP_MEMBERSHIP);
  who.value.type = PMIX_DATA_ARRAY;
  who.value.data.darray = &handed->array;
  if (wish.number) {
    pmix_info_t& number = handed->Add(PMIX_GROUP_CONTEXT_ID);
    number.value.type = PMIX_SIZE;
    number.value.data.size = answer.number;
  }
  if (!answer.data.empty()) AddData(answer.data, *handed);
  pmix_info_t* const infos = handed->infos.data();
  const size_t size = handed->infos.size();
  callback(PMIX_SUCCESS, infos, size, context, GiveBack, handed.release());
}

bool ServesGroups(absl::string_view version) { return absl::StartsWith(version, "OpenPMIx 5."); }

}  // namespace hlaunch
