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

// Reads one JSON object, nested at most 16 deep.
//
// Errors:
//   InvalidArgument - it is something else, or not JSON; the message says what and where.
absl::StatusOr<nlohmann::json> ParseObject(absl::string_view text);

// `json` as text; bytes in it that are no UTF-8 are replaced.
std::string TextOf(const nlohmann::json& json);

// `text` with U+FFFD in place of each zero byte, which readers of a text refuse.
std::string WithoutZeroBytes(absl::string_view text);

// The beginning of `text` that a reader accepts: UTF-8 without a zero byte, and at most `max` bytes
// in whole characters.
std::string BeginningOf(absl::string_view text, size_t max);

// Reads the fields of a JSON object from outside, one after another. If a field is missing, its
// variable keeps its value; if it is there, it must have the right type and keep its limits. Fields
// that are not read are for later versions. The first error is kept; after it no variable changes.
//
// Belongs to one thread; `object` must outlive it.
class JsonFields {
 public:
  static constexpr size_t kMaxText = 4096;

  // `what` is the name of the object in messages.
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
  // The object, or the objects of a list; null or empty if the field is missing or wrong.
  const nlohmann::json* Object(const char* name);
  std::vector<const nlohmann::json*> Objects(const char* name, size_t max_count);
  // Adds an error that the caller found in a field.
  void Refuse(const char* name, absl::string_view why);
  // Adds the first error of a part of this object that was read separately.
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
