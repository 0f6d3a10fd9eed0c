// The job's columns compiled for decoding: what each is, where its cells go in a slot, what becomes of a row without.
// Made once per process from streamtrain/columns/schema.py; read-only afterwards, shared by all decoders.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "decode/key_tree.h"
#include "decode/kind.h"
#include "decode/transform_plan.h"
#include "ring/slot.h"

namespace st {

// keep: transforms read that it is missing. head: one of several labels, none of which a row must have; without all of
// them it is left out.
enum class Missing : u8 { dead_letter, skip, value, keep, head };

constexpr bool ends_row(Missing missing) { return missing <= Missing::skip; }

struct PlanColumn {
    std::string name;
    Missing missing = Missing::dead_letter;
    std::shared_ptr<Kind> kind;        // none: passed over, whatever its cells hold
    std::vector<std::string> blocks;   // of the slot, that its cells become
    std::string from;                  // of the message around the record: "key", "headers.tenant"; "": the record
    Path path = {};                    // of its cells in a row; empty: they stand at its name
    std::string place = {};            // the same behind a "$", for reasons; made of the name where it is not given
    bool is_made = false;              // by a transform: no record and no program gives its cells
    bool is_ragged = false;            // its cells lie in a ragged block

    std::string made_path() const { return "transforms." + name; }   // where it stands that a transform makes it
    bool in_record() const { return from.empty() && !is_made; }
    const char *expected() const { return kind ? kind->expected() : "anything"; }
};

// What lies in every row of a block that no column gives.
struct Constant {
    std::string block;
    f64 value;
};

struct DecodePlan {
    struct At {
        u64 offset, stride;   // of the block in the slot; bytes of a row of it, 0 of a ragged one
    };
    struct Bits {
        Place place;
        u32 bits;
    };

    std::vector<PlanColumn> columns;   // in written order
    std::vector<u32> array_columns;    // the order of array rows: those in the record
    std::vector<u32> short_columns;    // requests: of array rows that leave out label and weight; else empty
    std::vector<u8> wanted;            // by column: whether decoders look for it in the record
    SlotLayout layout;
    KeyTable names;                    // of all columns: how flat forms of a record address them
    KeyTree tree;                      // where rows hold the columns that are not passed over
    std::vector<At> blocks;            // by the layout's
    std::vector<Bits> constants;
    std::shared_ptr<const TransformPlan> transforms;   // none: nullptr
    bool is_ragged = false;            // a column has its cells in a ragged block
    bool refuses_empty = false;        // rows that name none of the columns are dead, whatever stands in for cells
    u32 heads = 0, made_heads = 0;     // columns with Missing::head, and those of them that transforms make
    u32 floats_block = 0;              // of the columns with a Kind::plain_float()
    bool has_doubles = false;          // they are float64 there; else float32

    // Throws std::invalid_argument if a column does not fit the layout (a mistake of ours, not of data).
    static std::shared_ptr<const DecodePlan> make(std::vector<PlanColumn> columns, std::vector<u32> short_columns,
                                                  SlotLayout layout, const std::vector<Constant> &constants = {},
                                                  std::shared_ptr<const TransformPlan> transforms = nullptr,
                                                  bool refuses_empty = false);

    // Some heads are in records and others are made: whether a row has any shows when its transforms have run.
    bool mixes_heads() const { return made_heads && made_heads < heads; }

    // A decoder may leave parts of a row it gave up behind `rows`.
    void clear_behind(u8 *slot, u32 rows) const { layout.clear_from(slot, rows); }
};

// Hands out the rows of a layout's blocks to columns, in the order they ask.
class SlotPlaces {
  public:
    explicit SlotPlaces(const DecodePlan &plan) : plan_(plan), used_(plan.blocks.size(), 0) {}

    void start(const PlanColumn &column) { column_ = &column, next_ = 0, any_ragged_ = false; }

    // The next `bytes` of a row of the column's next block.
    Place take(u32 bytes) {
        for (u32 b = 0; b < used_.size() && next_ < column_->blocks.size(); ++b) {
            if (column_->blocks[next_] != plan_.layout.blocks[b].name) continue;
            if (used_[b] + bytes > plan_.blocks[b].stride) break;
            ++next_;
            used_[b] += bytes;
            return {b, used_[b] - bytes};
        }
        return none();
    }

    // The next float of the column's next block: a float64 or a float32, as the block has it.
    Place take_float(bool &is_double) {
        is_double = false;
        for (const Block &block : plan_.layout.blocks)
            if (next_ < column_->blocks.size() && column_->blocks[next_] == block.name)
                is_double = block.dtype == Dtype::f64;
        return take(is_double ? sizeof(f64) : sizeof(f32));
    }

    // The column's next block, a ragged one of such elements, as a whole.
    Place take_ragged(u32 element_bytes) {
        for (u32 b = 0; b < used_.size() && next_ < column_->blocks.size(); ++b) {
            const Block &block = plan_.layout.blocks[b];
            if (column_->blocks[next_] != block.name) continue;
            if (!block.is_ragged() || bytes_of(block.dtype) != element_bytes || used_[b]) break;
            ++next_;
            used_[b] = any_ragged_ = 1;
            return {b, 0};
        }
        return none();
    }

    bool any_ragged() const { return any_ragged_; }   // of the column

  private:
    [[noreturn]] Place none() const {
        throw std::invalid_argument(column_->name + ": the slot layout has no place for it in its block");
    }

    const DecodePlan &plan_;
    std::vector<u32> used_;   // bytes of a row, by block
    const PlanColumn *column_ = nullptr;
    u64 next_ = 0;
    bool any_ragged_ = false;
};

// The names make_decoder() knows, in alphabetical order.
std::vector<std::string> decoder_formats();

}  // namespace st
