// One msgpack item at a time, from a padded copy: heads are read without asking, then checked against the end.
#pragma once
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "decode/padded_copy.h"

namespace st {

struct MsgpackItem {
    enum Kind : u8 { nil, boolean, integer, real, text, binary, extension, array, map };
    Kind kind = nil;
    bool negative = false;   // integer: of the magnitude; boolean: its value
    u64 count = 0;           // integer: magnitude; text, binary, extension: bytes; array: elements; map: pairs
    f64 number = 0;          // real
    const char *data = nullptr;

    std::string_view view() const { return {data, count}; }
    const char *name() const {
        static constexpr const char *NAMES[] = {"nil",    "a boolean", "an integer", "a number", "text",
                                                "binary", "an extension", "an array", "a map"};
        return NAMES[kind];
    }
};

template <class T>
T load_big(const char *p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
    return value;
}

class MsgpackText {
  public:
    void load(const char *bytes, u64 size) {
        copy_.load(bytes, size);
        end_ = copy_.end();
        problem_.clear();
    }
    const char *begin() const { return copy_.begin(); }
    const char *end() const { return end_; }
    const std::string &problem() const { return problem_; }

    const char *broken(const char *p, std::string what) {
        problem_ = std::move(what) + " at byte " + std::to_string(p - begin());
        return nullptr;
    }

    // Reads one item's head, and its bytes if it has any (not the elements of an array or a map); returns what follows,
    // or nullptr with problem(). A count that the bytes left cannot hold is refused here.
    const char *read(const char *p, MsgpackItem &item) {
        if (p >= end_) return broken(p, "expected a value, got the record's end");
        const char *const start = p;
        const u8 tag = static_cast<u8>(*p++);
        if (tag < 0x80) return integer(item, tag, false, p);
        if (tag >= 0xe0) return integer(item, 0x100u - tag, true, p);
        if (tag < 0x90) return claim(start, p, item, MsgpackItem::map, tag & 15, 2);
        if (tag < 0xa0) return claim(start, p, item, MsgpackItem::array, tag & 15, 1);
        if (tag < 0xc0) return bytes(start, p, item, MsgpackItem::text, tag & 31);
        return read_long(start, p, item, tag);
    }

    // Passes one value of any kind: a count of what is still due stands for the nesting, so depth costs nothing.
    const char *skip(const char *p) {
        MsgpackItem item;
        for (u64 due = 1; due; --due) {
            p = read(p, item);
            if (!p) return nullptr;
            if (item.kind == MsgpackItem::array) due += item.count;
            if (item.kind == MsgpackItem::map) due += 2 * item.count;
        }
        return p;
    }

  private:
    const char *read_long(const char *start, const char *p, MsgpackItem &item, u8 tag) {
        using Item = MsgpackItem;
        switch (tag) {
            case 0xc0: item.kind = Item::nil; return p;
            case 0xc2:
            case 0xc3: item.kind = Item::boolean; item.negative = tag & 1; return p;
            case 0xc4: return bytes(start, p + 1, item, Item::binary, load_big<u8>(p));
            case 0xc5: return bytes(start, p + 2, item, Item::binary, load_big<u16>(p));
            case 0xc6: return bytes(start, p + 4, item, Item::binary, load_big<u32>(p));
            case 0xc7: return bytes(start, p + 2, item, Item::extension, load_big<u8>(p));
            case 0xc8: return bytes(start, p + 3, item, Item::extension, load_big<u16>(p));
            case 0xc9: return bytes(start, p + 5, item, Item::extension, load_big<u32>(p));
            case 0xca: return real(start, p + 4, item, std::bit_cast<f32>(load_big<u32>(p)));
            case 0xcb: return real(start, p + 8, item, std::bit_cast<f64>(load_big<u64>(p)));
            case 0xcc: return whole(start, p + 1, item, load_big<u8>(p));
            case 0xcd: return whole(start, p + 2, item, load_big<u16>(p));
            case 0xce: return whole(start, p + 4, item, load_big<u32>(p));
            case 0xcf: return whole(start, p + 8, item, load_big<u64>(p));
            case 0xd0: return signed_whole(start, p + 1, item, static_cast<i8>(load_big<u8>(p)));
            case 0xd1: return signed_whole(start, p + 2, item, static_cast<std::int16_t>(load_big<u16>(p)));
            case 0xd2: return signed_whole(start, p + 4, item, static_cast<i32>(load_big<u32>(p)));
            case 0xd3: return signed_whole(start, p + 8, item, static_cast<i64>(load_big<u64>(p)));
            case 0xd4:
            case 0xd5:
            case 0xd6:
            case 0xd7:
            case 0xd8: return bytes(start, p + 1, item, Item::extension, u64{1} << (tag - 0xd4));
            case 0xd9: return bytes(start, p + 1, item, Item::text, load_big<u8>(p));
            case 0xda: return bytes(start, p + 2, item, Item::text, load_big<u16>(p));
            case 0xdb: return bytes(start, p + 4, item, Item::text, load_big<u32>(p));
            case 0xdc: return claim(start, p + 2, item, Item::array, load_big<u16>(p), 1);
            case 0xdd: return claim(start, p + 4, item, Item::array, load_big<u32>(p), 1);
            case 0xde: return claim(start, p + 2, item, Item::map, load_big<u16>(p), 2);
            case 0xdf: return claim(start, p + 4, item, Item::map, load_big<u32>(p), 2);
            default: return broken(start, "expected a value, got byte 193, which msgpack does not use,");
        }
    }

    static const char *integer(MsgpackItem &item, u64 magnitude, bool negative, const char *p) {
        item.kind = MsgpackItem::integer;
        item.count = magnitude;
        item.negative = negative;
        return p;
    }
    const char *whole(const char *start, const char *p, MsgpackItem &item, u64 value) {
        return p > end_ ? cut(start) : integer(item, value, false, p);
    }
    const char *signed_whole(const char *start, const char *p, MsgpackItem &item, i64 value) {
        return p > end_ ? cut(start) : integer(item, value < 0 ? 0 - static_cast<u64>(value) : value, value < 0, p);
    }
    const char *real(const char *start, const char *p, MsgpackItem &item, f64 value) {
        item.kind = MsgpackItem::real;
        item.number = value;
        return p > end_ ? cut(start) : p;
    }
    const char *bytes(const char *start, const char *p, MsgpackItem &item, MsgpackItem::Kind kind, u64 size) {
        if (p > end_ || size > static_cast<u64>(end_ - p)) return cut(start);
        item.kind = kind;
        item.count = size;
        item.data = p;
        return p + size;
    }
    const char *claim(const char *start, const char *p, MsgpackItem &item, MsgpackItem::Kind kind, u64 count,
                      u64 least) {
        if (p > end_) return cut(start);
        item.kind = kind;
        item.count = count;
        if (count * least <= static_cast<u64>(end_ - p)) return p;   // every element takes a byte
        return broken(start, std::string(item.name()) + " claims " + std::to_string(count) + " elements, but " +
                                 std::to_string(end_ - p) + " bytes follow");
    }
    const char *cut(const char *start) { return broken(start, "the record ends inside the value"); }

    PaddedCopy copy_;
    const char *end_ = nullptr;
    std::string problem_;
};

}  // namespace st
