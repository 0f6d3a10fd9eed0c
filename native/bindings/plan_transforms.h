// A job's transforms as Schema.native_transforms() describes them.
#pragma once
#include "bindings/plan_column.h"

namespace st {

inline std::optional<CellStandIn> stand_in_of(nb::dict given, Holds holds) {
    if (!given.contains("stand_in")) return {};
    const nb::handle value = given["stand_in"];
    CellStandIn made;
    if (holds == Holds::number) made.number = nb::cast<f64>(value);
    if (holds == Holds::time) made.time = nb::cast<i64>(value);
    if (holds == Holds::text) made.text = nb::cast<std::string>(value);
    if (holds == Holds::hash) made.hash = nb::cast<u64>(value);
    return made;
}

inline Reading reading_of(nb::dict given) {
    const Holds holds = holds_of(nb::cast<std::string>(given["holds"]));
    return {nb::cast<u32>(given["column"]), holds, stand_in_of(given, holds)};
}

inline Step step_of(nb::dict given, u32 &next_cell) {
    Step step;
    CellPlaces places{nb::cast<std::vector<u32>>(given["sources"]), {}};
    for (nb::handle each : nb::cast<nb::list>(given["results"])) {
        const nb::dict result = nb::cast<nb::dict>(each);
        const Holds holds = holds_of(nb::cast<std::string>(result["holds"]));
        Made made{next_cell++, holds, !result["column"].is_none(), 0, stand_in_of(result, holds)};
        if (made.becomes_column) made.column = nb::cast<u32>(result["column"]);
        places.results.push_back(made.cell);
        step.results.push_back(std::move(made));
    }
    for (const u32 source : places.sources)
        if (source >= next_cell) throw std::invalid_argument("a transform reads what is made after it");
    step.transform = make_transform(nb::cast<std::string>(given["transform"]), std::move(places),
                                    options_of(nb::cast<nb::dict>(given["options"])));
    return step;
}

inline std::shared_ptr<const TransformPlan> transforms_of(nb::handle given) {
    if (given.is_none()) return nullptr;
    const nb::dict told = nb::cast<nb::dict>(given);
    auto plan = std::make_shared<TransformPlan>();
    for (nb::handle each : nb::cast<nb::list>(told["readings"]))
        plan->readings.push_back(reading_of(nb::cast<nb::dict>(each)));
    u32 next_cell = static_cast<u32>(plan->readings.size());
    for (nb::handle each : nb::cast<nb::list>(told["steps"]))
        plan->steps.push_back(step_of(nb::cast<nb::dict>(each), next_cell));
    plan->where = nb::cast<i32>(told["where"]);
    plan->event_cell = nb::cast<i32>(told["event_cell"]);
    plan->where_columns = nb::cast<std::vector<u32>>(told["where_columns"]);
    return plan;
}

}  // namespace st
