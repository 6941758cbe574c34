// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace hlaunch {

// One JSON object, nested at most 16 deep.
//
// Errors:
//   InvalidArgument - it is something else, or not JSON; the message says what and where.
absl::StatusOr<nlohmann::json> ParseObject(absl::string_view text);

// `json` as text; what is not UTF-8 in it is replaced.
std::string TextOf(const nlohmann::json& json);

// `text` with U+FFFD where a zero byte is, which no reader of a text takes.
std::string WithoutZeroBytes(absl::string_view text);

// `text` as a reader takes it: UTF-8 without a zero byte, and at most `max` bytes of it, in whole
// characters.
std::string BeginningOf(absl::string_view text, size_t max);

// Reads the fields of a JSON object that comes from outside, one after another. A field that is
// missing keeps the value that its variable has; one that is there must have the right type and
// keep its limits. Fields that nobody reads are for later versions. The first error is kept, and no
// field is changed any more.
//
// Belongs to one thread; `object` must outlive it.
class JsonFields {
 public:
  static constexpr size_t kMaxText = 4096;

  // `what` is how messages name the object.
  JsonFields(const nlohmann::json& object, absl::string_view what);

  bool Has(const char* name) const;
  // Text is UTF-8 without a zero byte.
  void Text(const char* name, std::string* value, size_t max = kMaxText);
  void Texts(const char* name, std::vector<std::string>* value, size_t max_count,
             size_t max = kMaxText);
  void Flag(const char* name, bool* value);
  void Number(const char* name, int* value, int min, int max);
  void Number(const char* name, int64_t* value, int64_t min, int64_t max);
  void Number(const char* name, uint64_t* value);
  void Real(const char* name, double* value, double min, double max);
  void Numbers(const char* name, std::vector<int>* value, int min, int max, size_t max_count);
  void Numbers(const char* name, std::vector<uint64_t>* value, size_t max_count);
  // The object, or the objects of a list; null, none: the field is missing or wrong.
  const nlohmann::json* Object(const char* name);
  std::vector<const nlohmann::json*> Objects(const char* name, size_t max_count);
  // An error of the caller's own about a field.
  void Refuse(const char* name, absl::string_view why);
  // The first error of a part of this object that was read by itself.
  void Merge(const absl::Status& status);

  // InvalidArgument - a field is wrong; the message names it and what was expected.
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const char* name, const char* expected,
                             bool (*fits)(const nlohmann::json&));

  const nlohmann::json& object_;
  const std::string what_;
  absl::Status status_;
};

}  // namespace hlaunch
