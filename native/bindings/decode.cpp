#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bindings/bindings.h"
#include "bindings/buffer.h"
#include "bindings/plan_column.h"
#include "bindings/python_rows.h"
#include "decode/decoder.h"
#include "decode/decode_plan.h"

namespace st {
namespace {

std::shared_ptr<const DecodePlan> plan_of(nb::list columns, std::vector<u32> short_columns, const SlotLayout &layout) {
    std::vector<PlanColumn> compiled;
    for (nb::handle column : columns) compiled.push_back(column_of(nb::cast<nb::dict>(column)));
    return DecodePlan::make(std::move(compiled), std::move(short_columns), layout);
}

nb::list dead_rows_of(const RowTally &tally) {
    nb::list all;
    for (const DeadRows &dead : tally.dead_rows)
        all.append(nb::make_tuple(dead.row_from, dead.row_to, dead.path, dead.reason, dead.remainder));
    return all;
}

nb::list filtered_rows_of(const RowTally &tally) {
    nb::list all;
    for (const FilteredRows &rows : tally.filtered_rows)
        all.append(nb::make_tuple(rows.row_from, rows.row_to, rows.column));
    return all;
}

nb::tuple result_of(bool done, const RowSink &sink, const RowTally &tally) {
    return nb::make_tuple(done, sink.rows, tally.trained, tally.dead, tally.filtered, sink.newest_event_time_ms,
                          dead_rows_of(tally), filtered_rows_of(tally));
}

RowSink sink_of(const DecodePlan &plan, const Buffer &slot, u32 rows, u32 row_capacity) {
    if (slot.size < plan.layout.slot_bytes) throw std::invalid_argument("the slot is smaller than its layout");
    if (row_capacity > plan.layout.row_capacity || rows > row_capacity)
        throw std::invalid_argument("rows must not exceed the row capacity, nor that the layout's");
    return {slot.data, rows, row_capacity, -1};
}

// A decoder and the record it is in; the record's bytes object is kept while it is read.
class PythonDecoder {
  public:
    PythonDecoder(const std::string &format, std::shared_ptr<const DecodePlan> plan)
        : plan_(plan), decoder_(make_decoder(format, std::move(plan))) {}

    void begin(nb::bytes record, i64 from_row) {
        record_ = record;
        decoder_->begin(static_cast<const u8 *>(record.data()), record.size(), from_row);
    }

    nb::tuple next(nb::handle slot, u32 rows, u32 row_capacity) {
        const Buffer buffer(slot);
        RowSink sink = sink_of(*plan_, buffer, rows, row_capacity);
        RowTally tally;
        bool done;
        {
            nb::gil_scoped_release released;
            done = decoder_->next(sink, tally);
        }
        return result_of(done, sink, tally);
    }

    i64 row() const { return decoder_->row(); }
    bool many() const { return decoder_->many(); }

    // Whole records one after another, as ingest has them; stops where the slot is full. Gives the number of records
    // done too.
    nb::tuple decode_many(nb::list records, nb::handle slot, u32 rows, u32 row_capacity) {
        const Buffer buffer(slot);
        RowSink sink = sink_of(*plan_, buffer, rows, row_capacity);
        RowTally tally;
        bool done = true;
        u64 count = 0;
        for (; done && count < records.size(); count += done) {
            const nb::bytes record = nb::cast<nb::bytes>(records[count]);
            decoder_->begin(static_cast<const u8 *>(record.data()), record.size(), 0);
            done = decoder_->next(sink, tally);
        }
        return nb::make_tuple(count, sink.rows, tally.trained, tally.dead, tally.filtered, sink.newest_event_time_ms);
    }

  private:
    std::shared_ptr<const DecodePlan> plan_;
    std::unique_ptr<Decoder> decoder_;
    nb::object record_;
};

nb::tuple fill(PythonRows &rows, nb::handle given, nb::handle slot, u32 used, u32 row_capacity, i64 first) {
    if (first < 0) throw std::invalid_argument("first must not be negative");
    const Buffer buffer(slot);
    RowSink sink = sink_of(rows.plan(), buffer, used, row_capacity);
    RowTally tally;
    const bool done = rows.fill(given.ptr(), first, sink, tally);
    return result_of(done, sink, tally);
}

}  // namespace

void bind_decode(nb::module_ &m) {
    m.def(
        "murmur3", [](nb::bytes text, u32 seed) { return murmur3(text.data(), text.size(), seed); }, nb::arg("text"),
        nb::arg("seed"));
    m.def("decoder_formats", &decoder_formats);
    nb::class_<DecodePlan>(m, "DecodePlan")
        .def(nb::new_(&plan_of), nb::arg("columns"), nb::arg("short_columns"), nb::arg("layout"))
        .def_prop_ro("layout", [](const DecodePlan &plan) { return plan.layout; })
        .def("clear_behind", [](const DecodePlan &plan, nb::handle slot, u32 rows) {
            const Buffer buffer(slot);
            sink_of(plan, buffer, rows, plan.layout.row_capacity);
            plan.clear_behind(buffer.data, rows);
        }, nb::arg("slot"), nb::arg("rows"));
    nb::class_<PythonDecoder>(m, "Decoder")
        .def(
            "__init__",
            [](PythonDecoder *self, const std::string &format, std::shared_ptr<DecodePlan> plan) {
                new (self) PythonDecoder(format, std::move(plan));
            },
            nb::arg("format"), nb::arg("plan"))
        .def("begin", &PythonDecoder::begin, nb::arg("record"), nb::arg("from_row") = 0)
        .def("next", &PythonDecoder::next, nb::arg("slot"), nb::arg("rows"), nb::arg("row_capacity"))
        .def("decode_many", &PythonDecoder::decode_many, nb::arg("records"), nb::arg("slot"), nb::arg("rows"),
             nb::arg("row_capacity"))
        .def_prop_ro("row", &PythonDecoder::row)
        .def_prop_ro("many", &PythonDecoder::many);
    nb::class_<PythonRows>(m, "RowFiller")
        .def(
            "__init__",
            [](PythonRows *self, std::shared_ptr<DecodePlan> plan) { new (self) PythonRows(std::move(plan)); },
            nb::arg("plan"))
        .def("fill", &fill, nb::arg("rows"), nb::arg("slot"), nb::arg("used"), nb::arg("row_capacity"),
             nb::arg("first") = 0);
}

}  // namespace st
