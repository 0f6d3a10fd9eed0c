// From topic to topic as Python sees it.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/plan_transforms.h"
#include "bindings/bound_producer.h"
#include "repack/repacker.h"

namespace st {
namespace {

std::vector<PlanColumn> columns_of(nb::list given) {
    std::vector<PlanColumn> made;
    for (nb::handle column : given) made.push_back(column_of(nb::cast<nb::dict>(column)));
    return made;
}

// The plan's columns that records give are the first of them, and the table's.
std::unique_ptr<Repacker> repacker_of(nb::handle from, nb::list columns, nb::handle transforms,
                                      const SlotLayout &layout, nb::dict constants, nb::list table_columns,
                                      nb::handle packed, const Repacking &wanted) {
    auto kept = std::make_shared<KeptRows>(columns_of(table_columns));
    std::vector<PlanColumn> compiled = columns_of(columns);
    for (u32 c = 0; c < kept->table().columns.size(); ++c) {
        PlanColumn &column = compiled.at(c);
        if (!column.in_record()) continue;
        if (!column.kind) column.missing = Missing::keep;
        column.kind = std::make_shared<KeepingKind>(column.kind, *kept, c);
    }
    std::vector<Constant> known;
    for (auto [block, value] : constants) known.push_back({nb::cast<std::string>(block), nb::cast<f64>(value)});
    const auto plan = DecodePlan::make(std::move(compiled), {}, layout, known, transforms_of(transforms), kept);
    return std::make_unique<Repacker>(format_of(from), plan, kept, format_of(packed), wanted);
}

nb::dict told(const Repacker &repacker) {
    const Repacked &told = repacker.told();
    nb::dict all;
    all["messages"] = told.messages;
    all["rows"] = told.rows;
    all["records"] = told.records;
    all["filtered"] = told.filtered;
    all["left_out"] = told.left_out;
    all["first"] = nb::cast(told.first);
    return all;
}

}  // namespace

void bind_repack(nb::module_ &m) {
    nb::enum_<Repacker::Until>(m, "RepackUntil")
        .value("TAKEN", Repacker::Until::taken)
        .value("DUE", Repacker::Until::due)
        .value("WAITS", Repacker::Until::waits);
    nb::class_<Repacker>(m, "Repacker")
        .def(nb::new_([](nb::handle from, nb::list columns, nb::handle transforms, const SlotLayout &layout,
                         nb::dict constants, nb::list table_columns, nb::handle packed, const std::string &source,
                         const std::string &to, i32 key_column, u32 pack, u64 most_bytes) {
                 return repacker_of(from, columns, transforms, layout, constants, table_columns, packed,
                                    {source, to, key_column, pack, most_bytes});
             }),
             nb::arg("format"), nb::arg("columns"), nb::arg("transforms").none(), nb::arg("layout"),
             nb::arg("constants"), nb::arg("table_columns"), nb::arg("packed"), nb::arg("source"), nb::arg("to"),
             nb::arg("key_column"), nb::arg("pack"), nb::arg("most_bytes"))
        .def("start", &Repacker::start, nb::arg("source"), nb::arg("offsets"), nb::call_guard<WithoutGil>())
        .def(
            "take",
            [](Repacker &self, Source &source, int wait_ms) { return self.take(source, wait_ms * i64{1'000'000}); },
            nb::arg("source"), nb::arg("wait_ms"), nb::call_guard<WithoutGil>())
        .def("decode", nb::overload_cast<Source &, u64, u64>(&Repacker::decode), nb::arg("source"),
             nb::arg("most_records"), nb::arg("most_bytes"), nb::call_guard<WithoutGil>())
        .def(
            "write",
            [](Repacker &self, BoundTransactionalProducer &producer, i32 partitions) {
                return self.write(producer.producer(), partitions);
            },
            nb::arg("producer"), nb::arg("partitions"), nb::call_guard<WithoutGil>())
        .def("done", &Repacker::done)
        .def_prop_ro("positions", &Repacker::positions)
        .def_prop_ro("waiting", &Repacker::waiting)
        .def("told", &told);
}

}  // namespace st
