// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/kubernetes/api_objects.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "openssl/evp.h"
#include "proto/base/wall_time.h"

namespace hlaunch {
namespace {

using nlohmann::json;

constexpr char kManagedBy[] = "app.kubernetes.io/managed-by";
constexpr char kInstance[] = "app.kubernetes.io/instance";
constexpr char kJob[] = "hlaunch/job";  // Annotations.
constexpr char kWriter[] = "hlaunch/writer";
constexpr char kRecord[] = "record";
constexpr size_t kReadable = 40;  // Letters of a job's id in the name of its object.
constexpr size_t kDigits = 32;    // Digits of the id's hash there.

std::string Text(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t Number(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

json Part(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : json();
}

json Parse(absl::string_view text) {
  return json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string Dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Returns the metadata of an existing object, or of one that will be created.
json MetadataOf(const ApiPlace& place, const std::string& text, const std::string& name) {
  if (!text.empty()) return Parse(text);
  return {{"name", name},
          {"namespace", place.name_space},
          {"labels", {{kManagedBy, "hlaunch"}, {kInstance, place.name}}}};
}

// Returns the metadata without managedFields, which only the API server needs and which are large.
json Kept(json metadata) {
  if (metadata.is_object()) metadata.erase("managedFields");
  return metadata;
}

std::string Sha256(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
}

RecordObject RecordOf(const json& object) {
  RecordObject record;
  const json metadata = Part(object, "metadata");
  record.name = Text(metadata, "name");
  record.version = Text(metadata, "resourceVersion");
  record.metadata = Dump(Kept(metadata));
  const json annotations = Part(metadata, "annotations");
  record.job_id = Text(annotations, kJob);
  record.writer = Text(annotations, kWriter);
  absl::Base64Unescape(Text(Part(object, "binaryData"), kRecord), &record.packed);
  return record;
}

}  // namespace

std::string LeasesPath(const ApiPlace& place) {
  return absl::StrCat("/apis/coordination.k8s.io/v1/namespaces/", place.name_space, "/leases");
}

std::string LeasePath(const ApiPlace& place) {
  return absl::StrCat(LeasesPath(place), "/", place.name);
}

std::string RecordsPath(const ApiPlace& place) {
  return absl::StrCat("/api/v1/namespaces/", place.name_space, "/configmaps");
}

std::string RecordPath(const ApiPlace& place, const std::string& object_name) {
  return absl::StrCat(RecordsPath(place), "/", object_name);
}

std::string RecordsQuery(const ApiPlace& place, int limit, const std::string& more) {
  std::string query = absl::StrCat("?labelSelector=", kManagedBy, "%3Dhlaunch%2C", kInstance, "%3D",
                                   place.name, "&limit=", limit);
  if (!more.empty()) {
    absl::StrAppend(
        &query, "&continue=",
        absl::StrReplaceAll(
            more,
            {{"%", "%25"}, {"+", "%2B"}, {"&", "%26"}, {"=", "%3D"}, {"#", "%23"}, {" ", "%20"}}));
  }
  return query;
}

// A name may only have small letters, digits and hyphens, so the hash makes it unique.
std::string RecordName(const ApiPlace& place, const std::string& job_id) {
  std::string readable = absl::AsciiStrToLower(job_id.substr(0, kReadable));
  std::replace_if(
      readable.begin(), readable.end(), [](char c) { return !absl::ascii_isalnum(c); }, '-');
  return absl::StrCat(place.name, "-", readable, "-", Sha256(job_id).substr(0, kDigits));
}

std::string LeaseBody(const ApiPlace& place, const LeaseObject& lease) {
  return Dump({{"apiVersion", "coordination.k8s.io/v1"},
               {"kind", "Lease"},
               {"metadata", MetadataOf(place, lease.metadata, place.name)},
               {"spec",
                {{"holderIdentity", lease.holder},
                 {"leaseDurationSeconds", lease.seconds},
                 {"leaseTransitions", lease.transitions},
                 {"acquireTime", lease.acquired},
                 {"renewTime", lease.renewed}}}});
}

std::string RecordBody(const ApiPlace& place, const RecordObject& record) {
  json metadata = MetadataOf(place, record.metadata, RecordName(place, record.job_id));
  metadata["annotations"][kJob] = record.job_id;
  metadata["annotations"][kWriter] = record.writer;
  return Dump({{"apiVersion", "v1"},
               {"kind", "ConfigMap"},
               {"metadata", std::move(metadata)},
               {"binaryData", {{kRecord, absl::Base64Escape(record.packed)}}}});
}

std::string DeleteBody(const RecordObject& record) {
  return Dump({{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"preconditions", {{"resourceVersion", record.version}}}});
}

absl::StatusOr<LeaseObject> ReadLease(absl::string_view text) {
  const json object = Parse(text);
  const json metadata = Part(object, "metadata");
  LeaseObject lease;
  lease.version = Text(metadata, "resourceVersion");
  if (lease.version.empty()) return absl::DataLossError("it is no Lease");
  lease.metadata = Dump(Kept(metadata));
  const json spec = Part(object, "spec");
  lease.holder = Text(spec, "holderIdentity");
  lease.seconds = Number(spec, "leaseDurationSeconds");
  lease.transitions = Number(spec, "leaseTransitions");
  lease.acquired = Text(spec, "acquireTime");
  lease.renewed = Text(spec, "renewTime");
  return lease;
}

absl::StatusOr<RecordObject> ReadRecord(absl::string_view text) {
  RecordObject record = RecordOf(Parse(text));
  if (record.version.empty()) return absl::DataLossError("it is no ConfigMap");
  return record;
}

absl::StatusOr<RecordPage> ReadRecordPage(absl::string_view text) {
  const json object = Parse(text);
  const json items = Part(object, "items");
  if (!object.is_object() || !(items.is_array() || items.is_null())) {
    return absl::DataLossError("it is no list of ConfigMaps");
  }
  RecordPage page;
  for (const json& item : items) page.records.push_back(RecordOf(item));
  page.more = Text(Part(object, "metadata"), "continue");
  return page;
}

std::string MessageIn(absl::string_view text) { return Text(Parse(text), "message"); }

std::string MicroTime(int64_t wall_ms) {
  std::string text = WallTime(wall_ms);
  text.insert(text.size() - 1, "000");
  return text;
}

}  // namespace hlaunch
