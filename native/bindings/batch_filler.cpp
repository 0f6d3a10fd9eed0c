#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bindings/bindings.h"
#include "bindings/buffer.h"
#include "bindings/plan_column.h"
#include "bindings/python_around.h"
#include "bindings/python_rows.h"
#include "decode/batch_filler.h"

namespace st {
namespace {

struct ToldRows {
    RowTally tally;
    i64 newest_event_time_ms;
};

// Rows from and to, path, reason, remainder.
nb::typed<nb::list, nb::typed<nb::tuple, i64, i64, nb::str, nb::str, bool>> dead_rows_of(const ToldRows &told) {
    nb::list all;
    for (const DeadRows &dead : told.tally.dead_rows)
        all.append(nb::make_tuple(dead.row_from, dead.row_to, dead.path, dead.reason, dead.remainder));
    return all;
}

// Rows from and to, column whose value is missing.
nb::typed<nb::list, nb::typed<nb::tuple, i64, i64, i32>> filtered_rows_of(const ToldRows &told) {
    nb::list all;
    for (const FilteredRows &rows : told.tally.filtered_rows)
        all.append(nb::make_tuple(rows.row_from, rows.row_to, rows.column));
    return all;
}

using OptionalBytes = std::optional<nb::bytes>;

std::optional<std::string> copy_of(const OptionalBytes &bytes) {
    if (!bytes) return {};
    return std::string(bytes->c_str(), bytes->size());
}

PythonAround around_of(i32 partition, i64 offset, i64 timestamp_ms, const OptionalBytes &key,
                       const std::vector<std::pair<std::string, OptionalBytes>> &headers) {
    PythonAround around{partition, offset, timestamp_ms, copy_of(key), {}};
    for (const auto &[name, value] : headers) around.headers.emplace_back(name, copy_of(value));
    return around;
}

// A batch filler, and what of Python's it reads and writes.
class PythonBatchFiller {
  public:
    PythonBatchFiller(FormatName format, std::shared_ptr<const DecodePlan> plan)
        : batch_(format_of(format), plan), python_rows_(std::move(plan)) {}

    void open(nb::handle slot) {
        auto buffer = std::make_unique<Buffer>(slot);
        if (buffer->size < batch_.plan().layout.slot_bytes)
            throw std::invalid_argument("the slot is smaller than its layout");
        batch_.open(buffer->data, batch_.plan().layout.row_capacity);
        batch_.tally().clear();
        buffer_ = std::move(buffer);
    }

    bool fill(nb::bytes record, i64 from_row, std::optional<u32> until, nb::typed<nb::object, PythonAround> around) {
        limit(until);
        const RecordView view = PythonAround::view(record.data(), record.size(), native(around));
        record_ = record;
        around_ = std::move(around);
        in_record_ = true;
        batch_.look_ahead(&view, 1);
        batch_.begin(view, from_row);
        return more(until);
    }

    bool more(std::optional<u32> until) {
        if (!in_record_) throw std::invalid_argument("no record is begun");
        limit(until);
        WithoutGil released;
        return batch_.next();
    }

    bool fill_rows(nb::object rows, i64 first, std::optional<u32> until) {
        if (first < 0) throw std::invalid_argument("first must not be negative");
        limit(until);
        in_record_ = false;
        python_rows_.begin(rows.ptr(), first);
        batch_.begin(python_rows_);
        return batch_.next();
    }

    u32 close() {
        limit({});
        const u32 rows = batch_.close();
        buffer_.reset();
        return rows;
    }

    ToldRows take_tally() {
        ToldRows told{std::move(batch_.tally()), batch_.newest_event_time_ms()};
        batch_.tally().clear();
        return told;
    }

    ToldRows count(nb::typed<nb::list, nb::bytes> records, i64 from_row, std::optional<i64> most,
                   std::optional<nb::typed<nb::list, PythonAround>> around) {
        if (around && around->size() != records.size())
            throw std::invalid_argument("each record has one message around it");
        buffer_.reset();
        in_record_ = false;
        batch_.open();
        batch_.tally().clear();
        std::vector<RecordView> views;
        for (u64 i = 0; i < records.size(); ++i) {
            const nb::bytes record = nb::cast<nb::bytes>(records[i]);
            const PythonAround *message = around ? native((*around)[i]) : nullptr;
            views.push_back(PythonAround::view(record.data(), record.size(), message));
        }
        batch_.gather(!most && records.size() > 1);
        for (u64 i = 0; i < views.size(); ++i) {
            if (i % BatchFiller::AHEAD == 0)
                batch_.look_ahead(views.data() + i, std::min<u64>(BatchFiller::AHEAD, views.size() - i));
            const i64 left = most ? *most - batch_.tally().trained : std::numeric_limits<i64>::max();
            batch_.count(views[i], from_row, left);
            from_row = 0;
        }
        batch_.settle();
        batch_.gather(false);
        for (const LateRows &late : batch_.late()) batch_.tally().take_back(late.tally);
        batch_.late().clear();
        return take_tally();
    }

    u32 rows() const { return batch_.rows(); }
    i64 record_rows() const { return batch_.record().row(); }

  private:
    static const PythonAround *native(nb::handle around) {
        return around.is_none() ? nullptr : &nb::cast<const PythonAround &>(around);
    }

    void limit(std::optional<u32> until) {
        if (!buffer_) throw std::invalid_argument("no slot is open");
        const u32 capacity = batch_.plan().layout.row_capacity;
        if (until.value_or(capacity) > capacity || until.value_or(capacity) < batch_.rows())
            throw std::invalid_argument("a batch has its rows at least, and at most the layout's");
        batch_.limit(until.value_or(capacity));
    }

    BatchFiller batch_;
    PythonRows python_rows_;
    std::unique_ptr<Buffer> buffer_;   // the open slot
    nb::object record_, around_;       // at hand: they stay in place
    bool in_record_ = false;
};

}  // namespace

void bind_batch_filler(nb::module_ &m) {
    nb::class_<ToldRows>(m, "RowTally",
                         "The outcomes of rows. `newest_event_time_ms` is -1 if no trained row has an event time.")
        .def_prop_ro("trained", [](const ToldRows &told) { return told.tally.trained; })
        .def_prop_ro("dead", [](const ToldRows &told) { return told.tally.dead; })
        .def_prop_ro("filtered", [](const ToldRows &told) { return told.tally.filtered; })
        .def_ro("newest_event_time_ms", &ToldRows::newest_event_time_ms)
        .def_prop_ro("dead_rows", &dead_rows_of)
        .def_prop_ro("filtered_rows", &filtered_rows_of);
    nb::class_<PythonAround>(m, "RecordAround",
                             "The message metadata of a record: partition, offset, timestamp, key and headers.")
        .def(nb::new_(&around_of), nb::arg("partition"), nb::arg("offset"), nb::arg("timestamp_ms"),
             nb::arg("key").none(), nb::arg("headers"));
    using Filler = PythonBatchFiller;
    nb::class_<Filler>(m, "BatchFiller",
                       "Rows of records, or of Python, into slots of the plan's layout. One thread at a time.")
        .def(
            "__init__",
            [](Filler *self, FormatName format, std::shared_ptr<DecodePlan> plan) {
                new (self) Filler(format, std::move(plan));
            },
            nb::arg("format"), nb::arg("plan"))
        .def("open", &Filler::open, nb::arg("slot"), "Opens an empty batch in these bytes.")
        .def("fill", &Filler::fill, nb::arg("record"), nb::arg("from_row") = 0, nb::arg("until") = nb::none(),
             nb::arg("around") = nb::none(),
             "Takes a record's rows; False if the batch has `until` rows, or all it can hold, before the record's end.")
        .def("more", &Filler::more, nb::arg("until") = nb::none(), "Goes on with that record.")
        .def("fill_rows", &Filler::fill_rows, nb::arg("rows"), nb::arg("first") = 0, nb::arg("until") = nb::none(),
             "Takes a dict, a list of values or a list of rows from the `first` on, as fill().")
        .def("close", &Filler::close,
             "Ends the batch: its slot holds the number of its rows and is zero behind them. Returns that number.")
        .def("take_tally", &Filler::take_tally,
             "Returns the tally of rows passed since the batch was opened or the last tally was taken.\n\n"
             "The event time is that of the batch.")
        .def("count", &Filler::count, nb::arg("records"), nb::arg("from_row") = 0, nb::arg("most") = nb::none(),
             nb::arg("around") = nb::none(),
             "Returns the tally of all rows of these records, up to the first `most` that can be trained.\n\n"
             "The first record starts at `from_row`. No rows are kept, and no batch is open afterwards.")
        .def_prop_ro("rows", &Filler::rows, "Rows in the batch.")
        .def_prop_ro("record_rows", &Filler::record_rows, "Rows of the record at hand, passed so far.");
}

}  // namespace st
