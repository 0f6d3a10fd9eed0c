// What every record format offers: rows of one record, a slot's worth at a time. One decoder serves one thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/schema_name.h"
#include "decode/record_format.h"
#include "ring/dead_rows.h"
#include "ring/slot.h"
#include "source/record.h"

namespace st {

// The rows still free in the slot being filled; decoders write row `rows` and count it up.
struct RowSink {
    u8 *slot = nullptr;             // slot start; block b of the plan's layout lies at slot + layout.blocks[b].offset
    u32 rows = 0;                   // rows used
    u32 row_capacity = 0;
    i64 newest_event_time_ms = -1;  // raised by the event_time column
};

// Rows [row_from, row_to) of the current record were left out because this column, with missing = "skip", is missing;
// without a column (-1) by the job's `where`.
struct FilteredRows {
    i64 row_from, row_to;
    i32 column;
};

// What the last next() did with the rows it passed.
struct RowTally {
    u32 trained = 0, dead = 0, filtered = 0;
    std::vector<DeadRows> dead_rows;
    std::vector<FilteredRows> filtered_rows;
    void clear() {
        trained = dead = filtered = 0;
        dead_rows.clear();
        filtered_rows.clear();
    }

    // Rows in a row with the same column are one entry; dead ones with the same reason as well, under the first's path.
    void add_filtered(i64 row, i32 column) {
        ++filtered;
        if (!filtered_rows.empty() && filtered_rows.back().row_to == row && filtered_rows.back().column == column)
            ++filtered_rows.back().row_to;
        else filtered_rows.push_back({row, row + 1, column});
    }
    template <class Path>   // of a row
    void add_dead(i64 row, i32 column, const std::string &reason, Path path) {
        ++dead;
        if (!dead_rows.empty()) {
            DeadRows &last = dead_rows.back();
            if (last.row_to == row && !last.remainder && last.column == column && last.reason == reason) {
                ++last.row_to;
                return;
            }
        }
        dead_rows.push_back({row, row + 1, path(row), reason, false, column});
    }

    // Rows that were told as trained and came to a bad end after all.
    void take_back(const RowTally &late) {
        trained -= late.dead + late.filtered;
        dead += late.dead;
        filtered += late.filtered;
        dead_rows.insert(dead_rows.end(), late.dead_rows.begin(), late.dead_rows.end());
        filtered_rows.insert(filtered_rows.end(), late.filtered_rows.begin(), late.filtered_rows.end());
    }
};

// What became, after all, of rows that were told as trained: those of one record, by the number it was given.
struct LateRows {
    u32 record;
    RowTally tally;   // of dead and filtered ones
};

// Rows of any kind, a slot's worth at a time.
class RowSource {
  public:
    virtual ~RowSource() = default;
    // Writes rows until the last one is passed (true) or sink.rows == sink.row_capacity (false); adds to the tally.
    virtual bool next(RowSink &sink, RowTally &tally) = 0;
};

// A schema that a record names, and what was read by it.
struct NamedSchema {
    SchemaName name;
    const SchemaSource::Answer *answer = nullptr;
};

class Decoder : public RowSource {
  public:
    // Starts a record; it must stay in place until it is done or the next begin(). Rows before `from_row` are passed
    // over unreported (a run that resumes inside a record).
    virtual void begin(const RecordView &record, i64 from_row) = 0;
    // Time and memory are linear in the record's size over all calls of a record. Never throws for what the bytes hold.
    bool next(RowSink &sink, RowTally &tally) override = 0;
    // Rows of the record passed so far, counting dead and filtered ones.
    virtual i64 row() const = 0;
    // Whether the record's form holds any number of rows (an array of rows, columns) or is one row alone; packed, which
    // has one form only, by their number. Known after next().
    virtual bool many() const = 0;
    // Whether the record that was begun last needs a schema that is not known yet: it is to be begun again, later.
    virtual bool waits() const { return false; }

    // Whether rows may wait for others of their block before they are transformed, which goes sooner then. next() tells
    // them as trained, and settle() finishes them: what became of some after all is then in late(), by the number that
    // their record was given before next(). No row waits where the sink is full.
    // gather(): false where none will, whatever was asked.
    virtual bool gather(bool) { return false; }
    virtual void number_record(u32) {}
    virtual void settle(RowSink &) {}
    std::vector<LateRows> &late() { return late_; }
    // What the record that was begun last names; nothing where it is broken before that, or names none.
    const NamedSchema &schema() const { return schema_; }
    // Where the cell of `column` stands in the current record, or its row (-1): as DeadRows::path.
    virtual std::string path(i32 column, i64 row) const = 0;

  protected:
    NamedSchema schema_;
    std::vector<LateRows> late_;
};

struct DecodePlan;   // compiled from the job's columns: decode/decode_plan.h

std::unique_ptr<Decoder> make_decoder(const RecordFormat &format, std::shared_ptr<const DecodePlan> plan);

}  // namespace st
