// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/cluster/frame.h"
#include "proto/cluster/host_name.h"
#include "proto/cluster/json_fields.h"

// A file of messages (cluster_messages.cc, job_messages.cc) names the fields of a message to these
// two, one for writing and one for reading. Both have the same calls, so that they cannot differ.
// Only for such files. Values, except for what JsonFields requires.

namespace hlaunch {

inline constexpr size_t kMaxWords = 20'000;
inline constexpr size_t kMaxWord = 128 << 10;  // The kernel's limit for a word or a variable.

// Writes a message's fields.
class MessageWriter {
 public:
  void Text(const char* name, const std::string* value, size_t = 0) { out_[name] = *value; }
  // Text for people. It is cut to what a reader accepts, because people need only its beginning.
  void Prose(const char* name, const std::string* value, size_t max = JsonFields::kMaxText) {
    out_[name] = BeginningOf(*value, max);
  }
  void Host(const char* name, const std::string* value) { out_[name] = *value; }
  void Texts(const char* name, const std::vector<std::string>* value, size_t, size_t = 0) {
    out_[name] = *value;
  }
  void Hosts(const char* name, const std::vector<std::string>* value, size_t) {
    out_[name] = *value;
  }
  void Variables(const char* name, const std::vector<std::string>* value) { out_[name] = *value; }
  void Log(const char* name, const std::string* value) { out_[name] = WithoutZeroBytes(*value); }
  void Flag(const char* name, const bool* value) { out_[name] = *value; }
  template <typename T>
  void Number(const char* name, const T* value, int64_t = 0, int64_t = 0) {
    out_[name] = *value;
  }
  void ExitCode(const char* name, const std::optional<int>* value) {
    if (value->has_value()) out_[name] = **value;
  }
  void Share(const char* name, const double* value) { out_[name] = *value; }
  void Numbers(const char* name, const std::vector<int>* value, size_t) { out_[name] = *value; }
  void Jobs(const char* name, const std::vector<uint64_t>* value, size_t) { out_[name] = *value; }
  template <typename T, size_t N>
  void State(const char* name, const T* value, const char* const (&names)[N]) {
    out_[name] = names[static_cast<size_t>(*value)];
  }
  template <typename T>
  void Message(const char* name, const T* value, absl::StatusOr<T> (*)(const nlohmann::json&)) {
    out_[name] = ToJson(*value);
  }
  template <typename T>
  void Messages(const char* name, const std::vector<T>* values, size_t,
                absl::StatusOr<T> (*)(const nlohmann::json&)) {
    nlohmann::json list = nlohmann::json::array();
    for (const T& value : *values) list.push_back(ToJson(value));
    out_[name] = std::move(list);
  }
  void Ordered(const char*, const int*, const int*) {}

  nlohmann::json Take() { return std::move(out_); }

 private:
  nlohmann::json out_ = nlohmann::json::object();
};

// Reads a message's fields. Keeps the first error, as JsonFields does.
class MessageReader {
 public:
  MessageReader(const nlohmann::json& object, const char* what) : fields_(object, what) {}

  void Text(const char* name, std::string* value, size_t max = JsonFields::kMaxText) {
    fields_.Text(name, value, max);
  }
  void Prose(const char* name, std::string* value, size_t max = JsonFields::kMaxText) {
    Text(name, value, max);
  }
  // An empty text means no host.
  void Host(const char* name, std::string* value) {
    Text(name, value);
    if (!value->empty() && !IsClusterHostName(*value)) fields_.Refuse(name, kNoHost);
  }
  void Texts(const char* name, std::vector<std::string>* value, size_t count, size_t max) {
    fields_.Texts(name, value, count, max);
  }
  void Hosts(const char* name, std::vector<std::string>* value, size_t count) {
    Texts(name, value, count, kMaxHostName);
    if (!std::all_of(value->begin(), value->end(), IsClusterHostName)) {
      fields_.Refuse(name, kNoHost);
    }
  }
  void Variables(const char* name, std::vector<std::string>* value) {
    Texts(name, value, kMaxWords, kMaxWord);
    const bool all = std::all_of(value->begin(), value->end(), [](const std::string& variable) {
      return variable.find('=') != std::string::npos && variable[0] != '=';
    });
    if (!all) fields_.Refuse(name, "must be a list of NAME=value");
  }
  void Log(const char* name, std::string* value) { Text(name, value, kMaxClusterFrame); }
  void Flag(const char* name, bool* value) { fields_.Flag(name, value); }
  void Number(const char* name, int* value, int min = 0, int max = INT_MAX) {
    fields_.Number(name, value, min, max);
  }
  void Number(const char* name, int64_t* value) { fields_.Number(name, value, 0, INT64_MAX); }
  void Number(const char* name, uint64_t* value) { fields_.Number(name, value); }
  void Number(const char* name, uint32_t* value) {
    int64_t number = *value;
    fields_.Number(name, &number, 0, UINT32_MAX);
    *value = static_cast<uint32_t>(number);
  }
  void ExitCode(const char* name, std::optional<int>* value) {
    if (!fields_.Has(name)) return;
    int code = 0;
    fields_.Number(name, &code, 0, UINT8_MAX);
    *value = code;
  }
  // -1: unknown.
  void Share(const char* name, double* value) { fields_.Real(name, value, -1, 1); }
  void Numbers(const char* name, std::vector<int>* value, size_t count) {
    fields_.Numbers(name, value, 0, INT_MAX, count);
  }
  void Jobs(const char* name, std::vector<uint64_t>* value, size_t count) {
    fields_.Numbers(name, value, count);
  }
  template <typename T, size_t N>
  void State(const char* name, T* value, const char* const (&names)[N]) {
    std::string text = names[static_cast<size_t>(*value)];
    Text(name, &text);
    const auto found = std::find(std::begin(names), std::end(names), text);
    if (found == std::end(names)) return fields_.Refuse(name, "must be a state that there is");
    *value = static_cast<T>(found - std::begin(names));
  }
  template <typename T>
  void Message(const char* name, T* value, absl::StatusOr<T> (*read)(const nlohmann::json&)) {
    const nlohmann::json* object = fields_.Object(name);
    if (object != nullptr) Keep(read(*object), value);
  }
  template <typename T>
  void Messages(const char* name, std::vector<T>* values, size_t count,
                absl::StatusOr<T> (*read)(const nlohmann::json&)) {
    for (const nlohmann::json* object : fields_.Objects(name, count)) {
      values->emplace_back();
      Keep(read(*object), &values->back());
    }
  }
  // Checks the two ends of a range.
  void Ordered(const char* name, const int* least, const int* most) {
    if (*least > *most) fields_.Refuse(name, "must not be less than the least number");
  }

  const absl::Status& status() const { return fields_.status(); }

 private:
  static constexpr char kNoHost[] = "must be a host's name";

  template <typename T>
  void Keep(absl::StatusOr<T> read, T* value) {
    fields_.Merge(read.status());
    if (read.ok()) *value = *std::move(read);
  }

  JsonFields fields_;
};

}  // namespace hlaunch
