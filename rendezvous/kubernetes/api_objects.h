// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What hlaunch keeps in Kubernetes: one Lease, and one ConfigMap per job; as values and as the
// JSON of its API. Pure. What a reader does not know of `metadata` stays there: a person may have
// added labels and owners.

namespace hlaunch {

// Where the objects of one service, or of several that share them, are.
struct ApiPlace {
  std::string name_space;
  std::string name = "hlaunch";  // Of the Lease; names of ConfigMaps begin with it.
};

struct LeaseObject {
  std::string metadata;  // JSON, as the API server last gave it. Empty: there is no object yet.
  std::string version;   // Its resourceVersion, to be compared alone.
  std::string holder;    // Empty: nobody.
  int64_t seconds = 0;   // It is good for so long after each renewal.
  int64_t transitions = 0;
  std::string acquired, renewed;  // For people.
};

struct RecordObject {
  std::string name, metadata, version;
  std::string job_id;  // For people: the object's name tells jobs apart.
  std::string writer;  // Who wrote it last: a holder and its term.
  std::string packed;  // packed_record.h
};

struct RecordPage {
  std::vector<RecordObject> records;
  std::string more;  // Names the next page; empty: there is none.
};

std::string LeasesPath(const ApiPlace& place);
std::string LeasePath(const ApiPlace& place);
std::string RecordsPath(const ApiPlace& place);
std::string RecordPath(const ApiPlace& place, const std::string& object_name);
// Of those of this place alone, `limit` at once.
std::string RecordsQuery(const ApiPlace& place, int limit, const std::string& more);

// Of a job's ConfigMap. Different jobs have different ones.
std::string RecordName(const ApiPlace& place, const std::string& job_id);

// The body of a POST where there is no object yet, else of a PUT, which is refused unless the
// object is the one that `metadata` is of.
std::string LeaseBody(const ApiPlace& place, const LeaseObject& lease);
std::string RecordBody(const ApiPlace& place, const RecordObject& record);
// The body of a DELETE of the object that `record` is.
std::string DeleteBody(const RecordObject& record);

// Errors:
//   DataLoss - it is none.
absl::StatusOr<LeaseObject> ReadLease(absl::string_view json);
absl::StatusOr<RecordObject> ReadRecord(absl::string_view json);
absl::StatusOr<RecordPage> ReadRecordPage(absl::string_view json);

// What the API server says of a request that it refuses.
std::string MessageIn(absl::string_view json);

// "2026-11-22T19:00:00.000000Z", of wall time in milliseconds.
std::string MicroTime(int64_t wall_ms);

}  // namespace hlaunch
