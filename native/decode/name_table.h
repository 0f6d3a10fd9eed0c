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
            while (entries_[at].size != NONE) at = (at + 1) & mask_;
            const u32 letters = static_cast<u32>(letters_.size());
            entries_[at] = {hash, static_cast<u32>(name.size()), letters, static_cast<i32>(i)};
            letters_ += name;
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
            if (entry.size != NONE) __builtin_prefetch(letters_.data() + entry.letters);
        }
        bool good = true;
        for (u32 i = 0; i < count; ++i) good &= (found[i] = find(names[i], hashes[i])) >= 0;
        return good;
    }

  private:
    static constexpr u32 NONE = ~u32{0};
    struct Entry {
        u32 hash = 0, size = NONE, letters = 0;
        i32 index = -1;
    };

    static u32 hash_of(std::string_view name) { return murmur3(name.data(), name.size(), 0); }

    i32 find(std::string_view name, u32 hash) const {
        for (u32 at = hash & mask_; entries_[at].size != NONE; at = (at + 1) & mask_) {
            const Entry &entry = entries_[at];
            if (entry.hash == hash && std::string_view(letters_.data() + entry.letters, entry.size) == name)
                return entry.index;
        }
        return -1;
    }

    std::vector<Entry> entries_ = std::vector<Entry>(1);   // open addressing, at most half full
    std::string letters_;
    u32 mask_ = 0;
};

}  // namespace st
