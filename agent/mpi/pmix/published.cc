// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/published.h"

#include <cstring>

#include "absl/strings/match.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxBytes = 64 << 20;  // For everything published on a node.

bool IsPmixs(const char* key) { return absl::StartsWith(key, "pmix."); }

bool Flag(const pmix_info_t infos[], size_t count, const char* key) {
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(infos[i].key, key) == 0) return true;
  }
  return false;
}

bool ReadOnce(const pmix_info_t infos[], size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(infos[i].key, PMIX_PERSISTENCE) != 0) continue;
    return infos[i].value.data.persist == PMIX_PERSIST_FIRST_READ;
  }
  return false;
}

bool IsTaken(pmix_data_type_t type) { return type == PMIX_STRING || type == PMIX_BYTE_OBJECT; }

// Requires: IsTaken(value.type).
std::string BytesOf(const pmix_value_t& value) {
  if (value.type == PMIX_STRING) return value.data.string == nullptr ? "" : value.data.string;
  return value.data.bo.size == 0 ? "" : std::string(value.data.bo.bytes, value.data.bo.size);
}

bool IsSame(const pmix_proc_t& a, const pmix_proc_t& b) {
  return a.rank == b.rank && std::strcmp(a.nspace, b.nspace) == 0;
}

}  // namespace

pmix_status_t Published::Publish(const pmix_proc_t& owner, const pmix_info_t infos[],
                                 size_t count) {
  const bool once = ReadOnce(infos, count);
  std::map<std::string, Value> fresh;
  size_t bytes = bytes_;
  for (size_t i = 0; i < count; ++i) {
    if (IsPmixs(infos[i].key)) continue;
    if (!IsTaken(infos[i].value.type)) return PMIX_ERR_NOT_SUPPORTED;
    Value value{owner, infos[i].value.type, BytesOf(infos[i].value), once};
    bytes += value.bytes.size() + sizeof infos[i].key;
    const bool is_new = values_.count(infos[i].key) == 0;
    if (!is_new || !fresh.emplace(infos[i].key, std::move(value)).second) {
      return PMIX_ERR_DUPLICATE_KEY;
    }
    if (bytes > kMaxBytes) return PMIX_ERR_OUT_OF_RESOURCE;
  }
  bytes_ = bytes;
  values_.merge(fresh);
  waiting_.remove_if([this](const Waiting& waiting) { return Answer(waiting); });
  return PMIX_OPERATION_SUCCEEDED;
}

// Returns false if some key is not published yet.
bool Published::Answer(const Waiting& waiting) {
  for (const std::string& key : waiting.keys) {
    if (values_.count(key) == 0) return false;
  }
  std::vector<pmix_pdata_t> found(waiting.keys.size());
  std::vector<Value> kept;  // The bytes must stay valid until libpmix has packed them.
  kept.reserve(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto value = values_.find(waiting.keys[i]);
    kept.push_back(value->second);
    found[i] = pmix_pdata_t{};
    found[i].proc = kept[i].owner;
    waiting.keys[i].copy(found[i].key, sizeof found[i].key - 1);
    found[i].value.type = kept[i].type;
    if (kept[i].type == PMIX_STRING) {
      found[i].value.data.string = kept[i].bytes.data();
    } else {
      found[i].value.data.bo = {kept[i].bytes.data(), kept[i].bytes.size()};
    }
    if (!kept[i].once) continue;
    bytes_ -= kept[i].bytes.size() + sizeof found[i].key;
    values_.erase(value);
  }
  waiting.callback(PMIX_SUCCESS, found.data(), found.size(), waiting.context);
  return true;
}

void Published::Forget(const pmix_proc_t& rank) {
  waiting_.remove_if([&rank](const Waiting& waiting) { return IsSame(waiting.asker, rank); });
}

pmix_status_t Published::LookUp(const pmix_proc_t& asker, char** keys, const pmix_info_t infos[],
                                size_t count, pmix_lookup_cbfunc_t callback, void* context) {
  std::set<std::string> wanted;
  for (char** key = keys; key != nullptr && *key != nullptr; ++key) wanted.insert(*key);
  const Waiting waiting{asker, {wanted.begin(), wanted.end()}, callback, context};
  if (waiting.keys.empty()) return PMIX_ERR_BAD_PARAM;
  if (Answer(waiting)) return PMIX_SUCCESS;
  if (!Flag(infos, count, PMIX_WAIT)) return PMIX_ERR_NOT_FOUND;
  waiting_.push_back(waiting);
  return PMIX_SUCCESS;
}

pmix_status_t Published::Unpublish(const pmix_proc_t& owner, char** keys) {
  std::set<std::string> named;
  for (char** key = keys; key != nullptr && *key != nullptr; ++key) named.insert(*key);
  for (auto value = values_.begin(); value != values_.end();) {
    const bool goes =
        IsSame(value->second.owner, owner) && (named.empty() || named.count(value->first) > 0);
    if (goes) bytes_ -= value->second.bytes.size() + sizeof(pmix_key_t);
    value = goes ? values_.erase(value) : std::next(value);
  }
  return PMIX_OPERATION_SUCCEEDED;
}

}  // namespace hlaunch
