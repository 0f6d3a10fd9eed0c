// Names → their place in a list. Many are looked up together: what a look-up waits for is memory.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "decode/murmur3.h"
#include "decode/row_mask.h"

namespace st {

class NameTable {
  public:
    NameTable() = default;
    explicit NameTable(const std::vector<std::string> &names) {
        u64 size = 16;
        while (size < names.size() * 2) size *= 2;
        mask_ = static_cast<u32>(size - 1);
        entries_.resize(size);
        for (u32 i = 0; i < names.size(); ++i) {
            const std::string &name = names[i];
            const u32 hash = hash_of(name);
            u32 at = hash & mask_;
            while (entries_[at].index >= 0) at = (at + 1) & mask_;
            entries_[at] = {hash, static_cast<i32>(i)};
            letters_ += name;
            ends_.push_back(static_cast<u32>(letters_.size()));
        }
    }

    // -1: no such name.
    i32 find(std::string_view name) const { return find(name, hash_of(name)); }

    // Of `count` names, at most BLOCK_ROWS; false where one is none of them.
    bool find(const std::string_view *names, u32 count, i32 *found) const {
        u32 hashes[BLOCK_ROWS];
        for (u32 i = 0; i < count; ++i) {
            hashes[i] = hash_of(names[i]);
            __builtin_prefetch(&entries_[hashes[i] & mask_]);
        }
        for (u32 i = 0; i < count; ++i) {
            const Entry &entry = entries_[hashes[i] & mask_];
            if (entry.index >= 0) __builtin_prefetch(letters_.data() + ends_[static_cast<u32>(entry.index)]);
        }
        bool good = true;
        for (u32 i = 0; i < count; ++i) good &= (found[i] = find(names[i], hashes[i])) >= 0;
        return good;
    }

  private:
    struct Entry {   // small: most of a look-up's time is the way to memory
        u32 hash = 0;
        i32 index = -1;
    };

    static u32 hash_of(std::string_view name) { return murmur3(name.data(), name.size(), 0); }

    i32 find(std::string_view name, u32 hash) const {
        for (u32 at = hash & mask_; entries_[at].index >= 0; at = (at + 1) & mask_)
            if (entries_[at].hash == hash && name_at(static_cast<u32>(entries_[at].index)) == name)
                return entries_[at].index;
        return -1;
    }

    std::string_view name_at(u32 index) const {
        const u32 from = index ? ends_[index - 1] : 0;
        return {letters_.data() + from, ends_[index] - from};
    }

    std::vector<Entry> entries_ = std::vector<Entry>(1);   // open addressing, at most half full
    std::string letters_;
    std::vector<u32> ends_;   // of each name in the letters
    u32 mask_ = 0;
};

}  // namespace st
