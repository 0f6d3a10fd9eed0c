// What a column is: how its cells become elements of a slot's blocks, in what words they are refused, what stands in
// for a missing one. A kind is a header of decode/kinds/, named by its stem; one object serves one column.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decode/cell_type.h"
#include "decode/options.h"
#include "decode/text_hash.h"

namespace st {

class RowWriter;
class SlotPlaces;
struct ColumnSpan;
struct RowBlock;
struct RowMask;

// Where a column's elements lie: bytes into the row of a block.
struct Place {
    u32 block = 0, offset = 0;
};

constexpr u32 NO_FLOAT = ~u32{0};

// A column of floats that takes any number whose square fits float32 as it is.
struct PlainFloat {
    Place place;
    bool is_double;   // in the slot; else a float32
    f64 stand_in;     // for a missing cell whose policy is a value
};

// What stands in a cell: one value; a list of any number of them; such a list of pairs, or a map.
enum class CellForm : u8 { value, list, pairs };

// A count of time: milliseconds of one.
struct TimeUnit {
    i64 numerator, divisor;
};

// Made from its options, given its places in the slot by DecodePlan::make; read-only afterwards and shared by decoders.
// Encoders make kinds too, which have no place.
class Kind {
  public:
    virtual ~Kind() = default;

    virtual const char *expected() const = 0;   // "number", for reasons

    // Takes its places. Throws std::invalid_argument where the layout has none (a mistake of ours, not of data).
    virtual void place(SlotPlaces &places) = 0;

    // A cell of column `c` of the row being written: put, or refused by row.wrong(). What a kind does not take apart
    // comes as the number it is.
    virtual void number(RowWriter &row, u32 c, f64 value) const = 0;
    virtual void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const {   // exact up to 64 bits
        number(row, c, integer_number(magnitude, negative));
    }
    virtual void long_integer(RowWriter &row, u32 c, f64 rounded, std::string_view) const { number(row, c, rounded); }
    virtual void boolean(RowWriter &row, u32 c, bool value) const { number(row, c, value); }
    // A time since 1970 in a unit that the record tells: to what is no time the number that it is.
    virtual void moment(RowWriter &row, u32 c, i64 count, TimeUnit) const {
        integer(row, c, count < 0 ? 0 - static_cast<u64>(count) : static_cast<u64>(count), count < 0);
    }
    // In what its cells count; nullptr of what is no time.
    virtual const TimeUnit *time_unit() const { return nullptr; }
    virtual void text(RowWriter &row, u32 c, std::string_view utf8) const;   // never empty
    // The same in a format that has nothing but texts, where a number is one too.
    virtual void written(RowWriter &row, u32 c, std::string_view utf8) const { text(row, c, utf8); }
    // Of texts that are no value: whether one stands for a missing cell.
    virtual bool is_missing_word(std::string_view) const { return false; }
    // Whether a plain number's text is that number: not where a comma stands before the fraction.
    virtual bool reads_points() const { return true; }
    virtual void hashed(RowWriter &row, u32 c, const TextHash &hash) const;
    virtual void bytes(RowWriter &row, u32 c, std::string_view raw) const;

    // A missing cell whose policy is a value.
    virtual void stand_in(RowWriter &row, u32 c) const = 0;

    // Of a list the elements come between these two as cells do, of a pair its parts: RowWriter::open_list().
    virtual CellForm form() const { return CellForm::value; }
    virtual void start_list(RowWriter &, u32) const {}
    virtual void end_list(RowWriter &, u32) const {}
    virtual void end_pair(RowWriter &, u32) const {}
    virtual void pair(RowWriter &, u32, u64 /*index*/, f64) const {}   // a whole one of an open list
    // Where features stand in namespaces: whose it takes; nullptr: all that no other column takes.
    virtual const std::vector<std::string> *namespaces() const { return nullptr; }

    // Of texts that come as words and codes: what is worth knowing of a word once, not below 0, or NO_WORD of one whose
    // cells go by text(); a cell of a word; and what is as good as knowing the stand-in's.
    static constexpr i32 NO_WORD = -1;
    virtual i32 word(std::string_view) const { return NO_WORD; }
    virtual void put_word(RowWriter &row, u32 c, std::string_view utf8, i32) const { text(row, c, utf8); }
    virtual i32 stand_in_word() const { return NO_WORD; }

    // Whole columns. Whether spans of these cells go into rows at once; the cells of one, nulls among them replaced by
    // others of the same rows (false where one does not fit, so that rows are read one by one); the stand-in, by
    // rows.fill().
    virtual bool takes_spans(CellType) const { return false; }
    virtual bool put_span(const ColumnSpan &, u32, RowBlock &) const { return false; }
    virtual bool put_texts(const std::string_view *, RowBlock &) const { return false; }   // of text, UTF-8, none empty
    virtual bool stand_in_span(RowBlock &) const { return false; }
    // Of a ragged block, whose rows follow each other: the same of spans of lists of these cells, in rows that are not
    // missing, and the stand-in in the others.
    virtual bool takes_lists(CellType) const { return false; }
    virtual bool put_lists(const ColumnSpan &, u32, RowBlock &, const RowMask & /*missing*/) const { return false; }

    // All in one block. nullptr: not of them.
    virtual const PlainFloat *plain_float() const { return nullptr; }

    // What looks at its cells before they are decoded: LookAhead. nullptr: nothing.
    virtual std::shared_ptr<Kind> ahead() const { return nullptr; }

    // On the way into records: the cells are floats in the slot; and any value may be rounded to float32 so early; or
    // none may; they stand for their text, whatever they are; a text fits.
    virtual bool is_float() const { return false; }
    virtual bool narrows() const { return false; }
    virtual bool is_exact() const { return false; }
    virtual bool is_text() const { return false; }
    virtual bool takes_text() const { return is_text(); }
    virtual bool takes_bytes() const { return false; }
    virtual bool takes_names() const { return is_text(); }   // an enum's value is its name, and not its number
    virtual bool refuses_text() const { return !takes_text(); }

    // By which a record may hold the hashes of its texts in their place. nullptr: by none.
    virtual const TextHasher *hasher() const { return nullptr; }
};

// A kind by its file's stem. Throws std::invalid_argument for a name no kind has. `column`: its name.
std::unique_ptr<Kind> make_kind(const std::string &kind, const std::string &column, const Options &options);

// Puts before the fraction of a number's text what stands there in texts of the kind.
inline void put_point(std::string &digits, const Kind *kind) {
    if (const u64 at = digits.find('.'); kind && !kind->reads_points() && at != digits.npos) digits[at] = ',';
}

std::vector<std::string> column_kinds();   // the names make_kind() knows, in alphabetical order

}  // namespace st
