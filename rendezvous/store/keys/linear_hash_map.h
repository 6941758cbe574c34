// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "rendezvous/store/keys/heap_bytes.h"

namespace hlaunch {

// A map from texts to values that grows and shrinks by one bucket with each key (linear hashing).
// So no call has to move all keys, and memory is given back as keys go; a table that doubles would
// stand still for a second at some millions of keys, and take half as much memory again meanwhile.
//
// An entry stays where it is until it is erased. Not thread-safe. It is moved, not copied; one that
// was moved from may only be destroyed or assigned to.
template <typename Value>
class LinearHashMap {
 public:
  // A key and its value. The key's bytes follow the object.
  class Entry {
   public:
    absl::string_view key() const {
      return {reinterpret_cast<const char*>(this + 1), static_cast<size_t>(key_size_)};
    }
    Value value{};

   private:
    friend class LinearHashMap;
    Entry* next_ = nullptr;  // In the same bucket.
    uint32_t hash_ = 0;
    uint32_t key_size_ = 0;
  };

  // Goes over all entries, in no order. Valid while no key is added or erased.
  class Iterator {
   public:
    Iterator() = default;
    const Entry& operator*() const { return *entry_; }
    const Entry* operator->() const { return entry_; }
    bool operator==(const Iterator& other) const { return entry_ == other.entry_; }
    Iterator& operator++() {
      entry_ = entry_->next_;
      SkipEmpty();
      return *this;
    }

   private:
    friend class LinearHashMap;
    explicit Iterator(const LinearHashMap* map) : map_(map) { SkipEmpty(); }
    void SkipEmpty() {
      while (entry_ == nullptr && bucket_ < map_->buckets_) entry_ = map_->Bucket(bucket_++);
    }
    const LinearHashMap* map_ = nullptr;
    size_t bucket_ = 0;  // The next one.
    const Entry* entry_ = nullptr;
  };

  LinearHashMap() = default;
  ~LinearHashMap() { Clear(); }
  LinearHashMap(LinearHashMap&& other) noexcept { Swap(other); }
  LinearHashMap& operator=(LinearHashMap&& other) noexcept {
    Swap(other);
    return *this;
  }

  // What a key and its value take of memory, without what the value has on the heap.
  static size_t EntryBytes(absl::string_view key) {
    return HeapBytes(sizeof(Entry) + key.size()) + sizeof(Entry*);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Iterator begin() const { return Iterator(this); }
  Iterator end() const { return Iterator(); }

  // Null if there is no such key.
  Entry* Find(absl::string_view key) const {
    if (size_ == 0) return nullptr;
    const uint32_t hash = HashOf(key);
    Entry* entry = Bucket(BucketOf(hash));
    while (entry != nullptr && (entry->hash_ != hash || entry->key() != key)) entry = entry->next_;
    return entry;
  }

  // Adds `key` with an empty value. Requires: there is no such key.
  Entry& Add(absl::string_view key) {
    Grow();
    Entry* entry = new (::operator new(sizeof(Entry) + key.size())) Entry;
    entry->hash_ = HashOf(key);
    entry->key_size_ = static_cast<uint32_t>(key.size());
    if (!key.empty()) std::memcpy(static_cast<void*>(entry + 1), key.data(), key.size());
    Push(BucketOf(entry->hash_), entry);
    ++size_;
    return *entry;
  }

  // Erases an entry of this map.
  void Erase(Entry& entry) {
    Entry** link = &Bucket(BucketOf(entry.hash_));
    while (*link != &entry) link = &(*link)->next_;
    *link = entry.next_;
    Destroy(&entry);
    --size_;
    Shrink();
  }

 private:
  static constexpr size_t kPageBuckets = 512;
  using Page = std::unique_ptr<Entry*[]>;

  static uint32_t HashOf(absl::string_view key) {
    return static_cast<uint32_t>(absl::Hash<absl::string_view>()(key));
  }
  static void Destroy(Entry* entry) {
    entry->~Entry();
    ::operator delete(entry);
  }

  Entry*& Bucket(size_t index) const { return pages_[index / kPageBuckets][index % kPageBuckets]; }

  // The buckets before buckets_ - half_ are split already: a further bit of the hash tells which of
  // the two it is.
  size_t BucketOf(uint32_t hash) const {
    const size_t index = hash & (2 * half_ - 1);
    return index < buckets_ ? index : index - half_;
  }

  void Push(size_t bucket, Entry* entry) {
    entry->next_ = Bucket(bucket);
    Bucket(bucket) = entry;
  }

  // Makes one more bucket, from the half of another.
  void Grow() {
    if (buckets_ / kPageBuckets == pages_.size()) {
      pages_.push_back(std::make_unique<Entry*[]>(kPageBuckets));
    }
    if (buckets_ == 2 * half_) half_ = buckets_;
    ++buckets_;
    if (buckets_ > 1) Spread(buckets_ - 1 - half_);
  }

  // Merges the last bucket into the one of which it was a half. One spare page is kept.
  void Shrink() {
    const size_t last = --buckets_;
    if (last == half_ && half_ > 1) half_ /= 2;
    Spread(last);
    if (pages_.size() > 1 && (pages_.size() - 2) * kPageBuckets >= buckets_) pages_.pop_back();
  }

  // Puts each entry of `bucket` where it belongs.
  void Spread(size_t bucket) {
    Entry* entry = std::exchange(Bucket(bucket), nullptr);
    while (entry != nullptr) {
      Entry* const next = entry->next_;
      Push(BucketOf(entry->hash_), entry);
      entry = next;
    }
  }

  void Swap(LinearHashMap& other) {
    std::swap(pages_, other.pages_);
    std::swap(half_, other.half_);
    std::swap(buckets_, other.buckets_);
    std::swap(size_, other.size_);
  }

  void Clear() {
    for (size_t i = 0; i < buckets_; ++i) {
      for (Entry* entry = Bucket(i); entry != nullptr;) Destroy(std::exchange(entry, entry->next_));
    }
  }

  std::vector<Page> pages_;
  size_t half_ = 1;     // A power of two; buckets_ is at most twice as much.
  size_t buckets_ = 0;  // As many as entries.
  size_t size_ = 0;
};

}  // namespace hlaunch
