// Repeated fields of one row as lists: gathered as they come, packed or one by one, wherever in the message, and given
// to the row when it is read.
#pragma once
#include <bit>

#include "decode/protobuf_bytes.h"
#include "decode/protobuf_program.h"

namespace st {

// Whole milliseconds of google.protobuf.Timestamp, of the years 1 to 9999.
[[gnu::noinline]] inline const char *put_timestamp(ProtoBytes &bytes, RowWriter &writer, const Kind &kind, u32 column,
                                                   const char *p, const char *const end) {
    i64 seconds, nanos;
    bool good;
    if (!(p = bytes.timestamp(p, end, seconds, nanos, good))) return nullptr;
    constexpr i64 LEAST_S = -62'135'596'800, MOST_S = 253'402'300'799;
    if (good && seconds >= LEAST_S && seconds <= MOST_S && nanos >= 0 && nanos < 1'000'000'000)
        kind.moment(writer, column, seconds * 1000 + nanos / 1'000'000, {1, 1});
    else
        writer.wrong(column, "a Timestamp of " + std::to_string(seconds) + " s and " + std::to_string(nanos) + " ns");
    return p;
}

class ProtoMany {
  public:
    // A number as it lies there; of a text its size, and where it is.
    struct Element {
        u64 raw;
        const char *at;
    };

    // A row begins.
    void clear() {
        for (List &list : lists_) list.is_open = false;
        any_ = false;
    }

    // What comes at p in the place of the field, of whatever wire type: what follows it, or nullptr. What cannot be its
    // values is told of the cell alone.
    const char *take(const ProtoStep &step, ProtoBytes &bytes, const char *p, const char *end, u8 wire) {
        List &list = open(step);
        const char *const from = p;
        if (!(p = bytes.skip(p, end, wire))) return nullptr;
        const bool is_text = step.type == ProtoType::text;
        if (wire == static_cast<u8>(step.each) && !is_text) {
            one(list, bytes, from, p);
        } else if (wire != static_cast<u8>(ProtoWire::length)) {
            list.wrong = "wire type " + std::to_string(wire) + " in the place of " + step.article;
        } else {
            u64 size;
            const char *at = bytes.length(from, end, size);
            if (is_text) list.elements.push_back({size, at});
            while (!is_text && at != p && (at = one(list, bytes, at, p))) {}
            if (!at) list.wrong = std::string(step.article) + ", of which the last is cut short";
        }
        return p;
    }

    // These columns have no cell after all.
    void drop(const std::vector<u32> &columns) {
        if (!any_) return;
        for (List &list : lists_)
            if (list.is_open && std::ranges::find(columns, static_cast<u32>(list.step.column)) != columns.end())
                list.is_open = false;
    }

    // The row is read: each list, element by element.
    template <class Put>
    void put(RowWriter &writer, Put put) const {
        if (!any_) return;
        for (const List &list : lists_) {
            if (!list.is_open) continue;
            const u32 column = static_cast<u32>(list.step.column);
            const bool is_list = writer.form(column) == CellForm::list;
            if (!is_list || !list.wrong.empty()) {
                writer.wrong(column, is_list ? list.wrong : list.step.article);
                continue;
            }
            writer.open_list(column);
            for (const Element &element : list.elements) {
                writer.next_element();
                put(list.step, element);
            }
            writer.close_list(column);
        }
    }

  private:
    struct List {
        bool is_open = false;
        ProtoStep step;
        std::string wrong;   // why it is none
        std::vector<Element> elements;
    };

    List &open(const ProtoStep &step) {
        if (step.list >= lists_.size()) lists_.resize(step.list + 1);
        List &list = lists_[step.list];
        if (!list.is_open) {
            list.is_open = any_ = true;
            list.step = step;
            list.wrong.clear();
            list.elements.clear();
        }
        return list;
    }

    // What follows the number at p, or nullptr.
    static const char *one(List &list, ProtoBytes &bytes, const char *p, const char *end) {
        u64 raw = 0;
        const u64 width = list.step.each == ProtoWire::fixed32 ? 4 : list.step.each == ProtoWire::fixed64 ? 8 : 0;
        if (width == 0) {
            if (!(p = bytes.varint(p, end, raw))) return nullptr;
        } else {
            if (static_cast<u64>(end - p) < width) return nullptr;
            std::memcpy(&raw, p, width);
            p += width;
        }
        list.elements.push_back({raw, nullptr});
        return p;
    }

    bool any_ = false;
    std::vector<List> lists_;   // by ProtoStep::list
};

}  // namespace st
