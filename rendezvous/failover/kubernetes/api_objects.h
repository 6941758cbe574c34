// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The objects that hlaunch keeps in Kubernetes, one Lease and one ConfigMap per job, as values and
// as JSON of its API. Pure. Unknown fields of `metadata` are kept: a person may have added labels
// and owners.

namespace hlaunch {

// Says where the objects of one service, or of several that share them, are.
struct ApiPlace {
  std::string name_space;
  std::string name = "hlaunch";  // The Lease's name; names of ConfigMaps begin with it.
};

struct LeaseObject {
  std::string metadata;  // JSON, as the API server last gave it. Empty: there is no object yet.
  std::string version;   // The resourceVersion; only for comparison.
  std::string holder;    // Empty if no process holds the lease.
  int64_t seconds = 0;   // The lease is valid for this long after each renewal.
  int64_t transitions = 0;
  std::string acquired, renewed;  // For people.
};

struct RecordObject {
  std::string name, metadata, version;
  std::string job_id;  // For people: the object's name tells jobs apart.
  std::string writer;  // The last writer: a holder and its term.
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
// Selects the records of this place only, `limit` per page.
std::string RecordsQuery(const ApiPlace& place, int limit, const std::string& more);

// Returns the name of a job's ConfigMap. Different jobs have different names.
std::string RecordName(const ApiPlace& place, const std::string& job_id);

// Returns the body of a POST if there is no object yet, else of a PUT. The server refuses the PUT
// if the object has changed since `metadata` was read.
std::string LeaseBody(const ApiPlace& place, const LeaseObject& lease);
std::string RecordBody(const ApiPlace& place, const RecordObject& record);
// Returns the body of a DELETE. The server refuses it if the object has changed since `record` was
// read.
std::string DeleteBody(const RecordObject& record);

// Errors:
//   DataLoss - `json` is no such object.
absl::StatusOr<LeaseObject> ReadLease(absl::string_view json);
absl::StatusOr<RecordObject> ReadRecord(absl::string_view json);
absl::StatusOr<RecordPage> ReadRecordPage(absl::string_view json);

// Returns what the API server says about a request that it refuses.
std::string MessageIn(absl::string_view json);

// Returns the wall time in milliseconds as "2026-11-22T19:00:00.000000Z".
std::string MicroTime(int64_t wall_ms);

}  // namespace hlaunch
