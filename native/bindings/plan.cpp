// Compiled plans as Python sees them: run a phase on a slot's address, read the step block and the output.
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>

#include "base/chain.h"
#include "base/fail.h"
#include "bindings/bindings.h"
#include "plan/cpu_plan.h"
#include "plan/foreign_plan.h"

namespace st {
namespace {

using ArgumentPlace = std::tuple<u32, u64, u64, i64, u64>;                                      // see PlanArgument
using Arguments = std::vector<std::pair<ArgumentPlace, std::vector<ArgumentPlace>>>;
using Calls = std::vector<std::tuple<std::string, std::string, Arguments, u32, u32>>;   // see PlanCall
using Stretches = std::vector<std::pair<bool, Calls>>;                                  // see PlanStretch

PlanArgument argument_of(const ArgumentPlace &place) {
    const auto &[memory, bits, row_bytes, own, element] = place;
    if (memory >= std::size(memory_names)) mistake("plan", "a memory of PLAN_MEMORIES", std::to_string(memory));
    return {static_cast<Memory>(memory), bits, row_bytes, own, element};
}

std::vector<PlanCall> calls_of(const Calls &calls) {
    std::vector<PlanCall> out;
    for (const auto &[kernel, types, arguments, outside, chain] : calls) {
        PlanCall call{kernel, types, {}, outside, chain};
        for (const auto &[place, table] : arguments) {
            PlanArgument &argument = call.arguments.emplace_back(argument_of(place));
            for (const ArgumentPlace &each : table) argument.table.push_back(argument_of(each));
        }
        out.push_back(std::move(call));
    }
    return out;
}

std::vector<PlanStretch> stretches_of(const Stretches &stretches) {
    std::vector<PlanStretch> out;
    for (const auto &[by_tiles, calls] : stretches) out.push_back({by_tiles, calls_of(calls)});
    return out;
}

template <class T>
std::array<T, phase_count> by_phase(std::map<std::string, T> given) {
    std::array<T, phase_count> found;
    for (auto &[name, value] : given) {
        const auto *at = std::find(std::begin(phase_names), std::end(phase_names), name);
        if (at == std::end(phase_names)) mistake("plan", "a phase of PLAN_PHASES", name);
        found[static_cast<u64>(at - phase_names)] = std::move(value);
    }
    return found;
}

const u8 *slot_at(const Plan &plan, u64 address) {
    if (address == 0 || address % 64 != 0)
        mistake("plan", "a slot's address, a multiple of 64", std::to_string(address));
    const auto *header = reinterpret_cast<const SlotHeader *>(address);
    if (header->rows > plan.rows())
        mistake("plan", "a slot of at most " + std::to_string(plan.rows()) + " rows", std::to_string(header->rows));
    return reinterpret_cast<const u8 *>(address);
}

template <class A>
auto plain(A argument) {
    if constexpr (std::is_pointer_v<A>) return reinterpret_cast<u64>(argument);
    else return argument;
}

using SlotCall = nb::typed<nb::callable, void(u64)>;   // with the slot's address
using RoundCall = nb::typed<nb::callable, void()>;

// A Python callable as std::function, pointers as addresses; the plan keeps it alive and takes the GIL around it.
template <class R, class... A>
std::function<R(A...)> called(nb::callable callable) {
    auto held = std::shared_ptr<nb::callable>(new nb::callable(std::move(callable)), [](nb::callable *object) {
        WithGil held_gil;
        delete object;
    });
    return [held](A... arguments) -> R {
        WithGil held_gil;
        nb::object result = (*held)(plain(arguments)...);
        if constexpr (!std::is_void_v<R>) return reinterpret_cast<R>(nb::cast<u64>(result));
    };
}

nb::ndarray<nb::numpy, f32, nb::ndim<2>> output_of(nb::handle self) {
    Plan &plan = nb::cast<Plan &>(self);
    auto *data = const_cast<f32 *>(plan.output());
    return nb::ndarray<nb::numpy, f32, nb::ndim<2>>(data, {plan.rows(), plan.width()}, self);
}

void bind_step(nb::module_ &m) {
    nb::class_<StepBlock>(m, "StepBlock")
        .def("__init__", [](StepBlock *self) { new (self) StepBlock{}; })
        .def_rw("rows", &StepBlock::rows)
        .def_rw("learning_rate", &StepBlock::learning_rate)
        .def_rw("loss_sum", &StepBlock::loss_sum)
        .def_rw("objective_sum", &StepBlock::objective_sum)
        .def_rw("weight_sum", &StepBlock::weight_sum)
        .def_rw("active_rows", &StepBlock::active_rows)
        .def_rw("gradient_norm", &StepBlock::gradient_norm)
        .def_rw("not_finite", &StepBlock::not_finite)
        .def_rw("random", &StepBlock::random)
        .def_rw("number", &StepBlock::number)
        .def_static("at", [](u64 address) { return reinterpret_cast<StepBlock *>(address); }, nb::arg("address"),
                    nb::rv_policy::reference)   // of a plan that outlives it
        .def_prop_ro("address", [](StepBlock &self) { return reinterpret_cast<u64>(&self); });
    m.attr("STEP_BYTES") = sizeof(StepBlock);
}

}  // namespace

void bind_plan(nb::module_ &m) {
    bind_step(m);
    nb::dict memories;
    for (u32 at = 0; at < std::size(memory_names); ++at) memories[memory_names[at]] = at;
    m.attr("PLAN_MEMORIES") = memories;
    m.attr("CHAIN_ROWS") = CHAIN_ROWS;
    m.attr("MAX_PLAN_THREADS") = MAX_PLAN_THREADS;
    nb::dict phases;
    for (const char *name : phase_names) phases[name] = nb::make_tuple(name);
    for (const WholePhase &each : whole_phases) {
        nb::list parts;
        for (Phase part : each.parts) parts.append(phase_names[static_cast<u32>(part)]);
        phases[phase_names[static_cast<u32>(each.whole)]] = nb::tuple(parts);
    }
    m.attr("PLAN_PHASES") = phases;
    nb::class_<Plan> plan(m, "Plan");
    for (u32 at = 0; at < phase_count; ++at)
        plan.def(phase_names[at],
                 [at](Plan &self, u64 slot) { self.run(static_cast<Phase>(at), slot_at(self, slot)); },
                 nb::arg("slot_address"), nb::call_guard<WithoutGil>(),
                 "Runs the phase; UserMistake if the plan was not compiled for it.");
    plan
        .def_prop_ro("step", &Plan::step, nb::rv_policy::reference_internal)
        .def("begin_round", &Plan::begin_round, nb::call_guard<WithoutGil>())
        .def("end_round", &Plan::end_round, nb::call_guard<WithoutGil>())
        .def_prop_ro("steps_ahead", &Plan::steps_ahead, "Steps that may be enqueued before collect().")
        .def("enqueue", [](Plan &self, u64 slot) { self.enqueue(slot_at(self, slot)); }, nb::arg("slot_address"),
             nb::call_guard<WithoutGil>())
        .def("collect", [](Plan &self) { return reinterpret_cast<u64>(self.collect()); },
             nb::call_guard<WithoutGil>(),
             "Waits for the enqueued steps; returns the address of their step blocks, in order.")
        .def("output", &output_of)
        .def_prop_ro("output_address", [](const Plan &self) { return reinterpret_cast<u64>(self.output()); })
        .def_prop_ro("rows", &Plan::rows)
        .def_prop_ro("width", &Plan::width);

    nb::class_<CpuPlan, Plan>(m, "CpuPlan", nb::dynamic_attr())
        .def("__init__",
             [](CpuPlan *self, const std::map<std::string, Stretches> &phases, u64 workspace_bytes,
                const std::vector<std::pair<u64, nb::bytes>> &constants, u64 output_offset, u32 rows, u32 width,
                u64 state, u64 base, u64 share, const std::string &isa, u32 outside, u32 tile_rows, u32 threads,
                u64 own_bytes) {
                 std::map<std::string, std::vector<PlanStretch>> stretches;
                 for (const auto &[name, calls] : phases) stretches[name] = stretches_of(calls);
                 PlanDescription description{by_phase(std::move(stretches)), workspace_bytes, {}, output_offset,
                                             rows, width, isa, outside, tile_rows, threads, own_bytes};
                 for (const auto &[offset, content] : constants)
                     description.constants.emplace_back(offset, std::string(content.c_str(), content.size()));
                 new (self) CpuPlan(description, {reinterpret_cast<u8 *>(state), reinterpret_cast<const u8 *>(base),
                                                  reinterpret_cast<u8 *>(share)});
             },
             nb::arg("phases"), nb::arg("workspace_bytes"), nb::arg("constants"), nb::arg("output_offset"),
             nb::arg("rows"), nb::arg("width"), nb::arg("state"), nb::arg("base"), nb::arg("share"),
             nb::arg("isa") = "", nb::arg("outside") = 0, nb::arg("tile_rows") = 0, nb::arg("threads") = 1,
             nb::arg("own_bytes") = 0,
             "`phases`: the stretches of each, as PlanStretch, PlanCall and PlanArgument say.")
        .def("set_outside",
             [](CpuPlan &self, u32 at, nb::typed<nb::callable, void(i64, u64)> call) {
                 self.set_outside(at, called<void, i64, u64>(std::move(call)));
             },
             nb::arg("at"), nb::arg("call"),
             "Sets the call out of the plan of that number; it gets the rows present and the slot's address.")
        .def_prop_ro("work_address", [](const CpuPlan &self) { return reinterpret_cast<u64>(self.work()); });

    nb::class_<ForeignPlan, Plan>(m, "ForeignPlan", nb::dynamic_attr())
        .def("__init__",
             [](ForeignPlan *self, u32 rows, u32 width, const std::map<std::string, SlotCall> &phases,
                RoundCall begin_round, RoundCall end_round, std::optional<SlotCall> enqueue,
                std::optional<nb::typed<nb::callable, u64()>> collect, u32 steps_ahead) {
                 if (enqueue.has_value() != collect.has_value() || steps_ahead < 1 || (!enqueue && steps_ahead > 1))
                     mistake("plan", "enqueue and collect with steps_ahead, or none of them", "something else");
                 std::map<std::string, std::function<void(const u8 *)>> each;
                 for (const auto &[name, call] : phases) each[name] = called<void, const u8 *>(call);
                 ForeignPlan::Calls calls{by_phase(std::move(each)), called<void>(begin_round),
                                          called<void>(end_round), {}, {}, steps_ahead};
                 if (enqueue) calls.enqueue = called<void, const u8 *>(*enqueue);
                 if (collect) calls.collect = called<const StepBlock *>(*collect);
                 new (self) ForeignPlan(rows, width, std::move(calls));
             },
             nb::arg("rows"), nb::arg("width"), nb::arg("phases"), nb::arg("begin_round"), nb::arg("end_round"),
             nb::arg("enqueue") = nb::none(), nb::arg("collect") = nb::none(), nb::arg("steps_ahead") = 1);
}

}  // namespace st
