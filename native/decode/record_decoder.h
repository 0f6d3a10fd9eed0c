// What all formats share around a record: the bytes no format takes, rows passed over, the fate of a row, the tally.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "decode/around_cells.h"
#include "decode/row_writer.h"
#include "decode/waiting_rows.h"

namespace st {

class RecordDecoder : public Decoder {
  public:
    explicit RecordDecoder(std::shared_ptr<const DecodePlan> plan)
        : plan_(plan), writer_(plan), can_gather_(plan->transforms && !plan->is_ragged && !plan->mixes_heads()),
          around_(std::move(plan)) {}

    i64 row() const final { return row_ - held_; }

    void begin(const RecordView &record, i64 from_row) final {
        row_ = 0;
        from_row_ = from_row;
        done_ = refused_ = held_ = false;
        at_hand_ = &record;
        if (around_.any()) around_.take(record);
        open(reinterpret_cast<const char *>(record.value), record.size);
    }

    std::string path(i32 column, i64 row) const final {
        if (column != NO_COLUMN && !plan_->columns[column].from.empty()) return plan_->columns[column].from;
        if (column != NO_COLUMN && plan_->columns[column].is_made) return plan_->columns[column].made_path();
        return cell_path(column, row);
    }

    bool gather(bool on) final {
        gathers_ = on && can_gather_;
        if (gathers_ && !waiting_) waiting_ = std::make_unique<WaitingRows>(plan_, writer_);
        if (gathers_) waiting_->await_row();
        else if (plan_->transforms) writer_.cell_row().move_to(writer_.transforms().cells, 0);
        return gathers_;
    }
    void number_record(u32 record) final { record_ = record; }
    void settle(RowSink &sink) final {
        if (waiting_) waiting_->settle(sink, late_);
    }

    bool next(RowSink &sink, RowTally &tally) final {
        if (held_) {
            if (sink.rows == sink.row_capacity || !writer_.put_held(sink.slot, sink.rows)) return false;
            held_ = false;
            count_trained(sink, tally);
        }
        while (!done_) {
            if (refused_) {
                end_remainder(tally, std::move(refused_path_), std::move(refused_reason_));
                return true;
            }
            if (row_ >= from_row_ && sink.rows == sink.row_capacity) {
                settle(sink);
                if (sink.rows == sink.row_capacity) return false;
            }
            step(sink, tally);
            if (held_) return false;
        }
        return true;
    }

  protected:
    // For formats whose records have a byte at least, of which the first is not 0: refuses those that cannot be one.
    bool is_refused(const char *bytes, u64 size) {
        if (size == 0) return refuse("$", "expected a record, got an empty value"), true;
        if (bytes[0] != 0 || size < 5) return false;
        const u32 id = __builtin_bswap32(load_little<u32>(bytes + 1));
        refuse("$", "starts like a Schema Registry frame (0 and schema id " + std::to_string(id) +
                        "); expected the plain record, written without the registry's serializer");
        return true;
    }

    // Finds the record's shape; calls refuse() if there is none.
    virtual void open(const char *bytes, u64 size) = 0;
    // As path(), of what stands in the record.
    virtual std::string cell_path(i32 column, i64 row) const = 0;
    // Passes at least one row, or ends the record, or refuses the rest of it.
    virtual void step(RowSink &sink, RowTally &tally) = 0;

    // The record, from the current row on, cannot be decoded.
    void refuse(std::string path, std::string reason) {
        refused_ = true;
        refused_path_ = std::move(path);
        refused_reason_ = std::move(reason);
    }

    const RecordView &at_hand() const { return *at_hand_; }   // the record
    bool passing() const { return row_ < from_row_; }

    void start_row(RowSink &sink) { writer_.start(passing() ? nullptr : sink.slot, sink.rows); }

    // The current row is read.
    void end_row(RowSink &sink, RowTally &tally) {
        if (writer_.is_empty()) [[unlikely]] {
            NameList others;
            list_names(others);
            writer_.refuse_empty(others);
        }
        if (around_.any()) around_.put(writer_);
        if (gathers_) {
            if (!passing() && waiting_->take(record_, row_)) {
                ++row_, ++sink.rows, ++tally.trained;
                if (waiting_->is_full()) settle(sink);
                return;
            }
            waiting_->give_back();
        }
        const RowEnd end = writer_.finish();
        const i64 row = row_++;
        if (row < from_row_) return;
        if (end == RowEnd::trained) [[likely]] {
            count_trained(sink, tally);
        } else if (end == RowEnd::held) {
            held_ = true;
        } else if (end == RowEnd::filtered) {
            tally.add_filtered(row, writer_.failed_column());
        } else {
            const i32 column = writer_.failed_column();
            tally.add_dead(row, column, writer_.reason(), [&](i64 at) { return path(column, at); });
        }
    }

    void end_record() { done_ = true; }

    // The names that the current row has; formats whose schema gives them list none.
    virtual void list_names(NameList &) {}

    // Whether the row that was read last waits for the next slot: no other may be read.
    bool held() const { return held_; }

    const std::string &column_name(u32 column) const { return plan_->columns[column].name; }
    bool wanted(i32 column) const { return column >= 0 && plan_->wanted[column]; }

    void never_gathers() { can_gather_ = false; }   // formats with blocks of their own

    std::shared_ptr<const DecodePlan> plan_;
    RowWriter writer_;
    i64 row_ = 0, from_row_ = 0;

  private:
    void count_trained(RowSink &sink, RowTally &tally) const {
        ++sink.rows;
        ++tally.trained;
        if (writer_.event_time_ms() > sink.newest_event_time_ms) sink.newest_event_time_ms = writer_.event_time_ms();
    }

    void end_remainder(RowTally &tally, std::string path, std::string reason) {
        done_ = true;
        const i64 row = row_++;
        if (row < from_row_) return;
        ++tally.dead;
        tally.dead_rows.push_back({row, row + 1, std::move(path), std::move(reason), true});
    }

    bool can_gather_, gathers_ = false;
    const RecordView *at_hand_ = nullptr;
    u32 record_ = 0;   // the number it was given
    std::unique_ptr<WaitingRows> waiting_;
    bool done_ = true, refused_ = false, held_ = false;
    std::string refused_path_, refused_reason_;

  protected:
    AroundCells around_;   // behind what every row needs
};

}  // namespace st
