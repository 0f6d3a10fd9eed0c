#include "train/rounds.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/power.h"
#include "train/first_moments.h"

namespace st {

namespace {

constexpr i64 LOOK_AGAIN_NS = 100'000'000;   // how long a wait may miss a ring that a killed process left out

}  // namespace

WorkerRounds::WorkerRounds(Arena &arena, u32 worker, f64 beta1, f64 beta2)
    : arena_(arena), worker_(worker), beta1_(beta1), beta2_(beta2) {
    const StateBlock *steps = arena.state_layout().find(OPTIMIZER_STEPS);
    if (steps) steps_offset_ = steps->part_offset;
    has_steps_ = steps;
    const Block *weights = arena.slot_layout().find("weight");
    if (!weights) mistake("a worker's slots", "a block named weight", "none");
    weights_offset_ = weights->offset;
}

bool WorkerRounds::must_leave() {
    const Control &control = arena_.control();
    return silence_.lasts(control.coordinator) || control.supervisor.stop.load() == static_cast<u32>(Stop::leave);
}

bool WorkerRounds::done() const {
    const Control &control = arena_.control();
    return control.ingest.phase.load() == static_cast<u32>(IngestPhase::ended) &&
           control.averager.finished_round.load() >= control.ingest.final_round.load();
}

bool WorkerRounds::ready(i64 deadline_ns) {
    Control &control = arena_.control();
    return control.coordinator_event.wait(deadline_ns, [&] { return control.coordinator.ready.load() != 0; });
}

RoundStart WorkerRounds::start() const {
    const AveragerWords &averager = arena_.control().averager;
    const u8 *mean = arena_.mean(averager.mean_buffer[(round_ + ANY_ROUNDS - 1) % ANY_ROUNDS].load());
    return {mean, statistics_done_ ? memory().base : nullptr};
}

bool WorkerRounds::published() const {
    const WorkerWords &words = arena_.control().workers[worker_];
    return words.phase.load() == static_cast<u32>(WorkerPhase::published) &&
           words.round.load() == arena_.control().averager.finished_round.load() + 1;
}

void WorkerRounds::begin() {
    const AveragerWords &averager = arena_.control().averager;
    i64 round = averager.finished_round.load() + 1;
    if (round != round_ || !in_round_) {
        rejected_.clear();
        statistics_done_ = false;
        words().attempt.store(0);
    }
    in_round_ = true;
    round_ = round;
    first_slot_ = averager.next_first_slot[(round_ + ANY_ROUNDS - 1) % ANY_ROUNDS];
    index_ = 0;
    steps_ = 0;
    weight_sum_ = 0;
    begin_round(arena_.state_layout(), start(), memory());
    base_steps_ = 0;
    if (has_steps_) std::memcpy(&base_steps_, memory().base + steps_offset_, sizeof base_steps_);
    words().round.store(round_);
    words().phase.store(static_cast<u32>(WorkerPhase::training));
}

bool WorkerRounds::round_closed() const {
    const RoundEntry &entry = arena_.round_entry(round_);
    return entry.round.load() == round_ && entry.slot_count.load() >= 0;
}

i64 WorkerRounds::next_slot(i64 deadline_ns) {
    Control &control = arena_.control();
    const RoundEntry &entry = arena_.round_entry(round_);
    for (;;) {
        i64 in_round = index_ * arena_.workers() + worker_, slot = first_slot_ + in_round;
        auto filled = [&] { return control.ingest.slots_filled.load() > slot; };
        auto none_left = [&] {
            if (entry.round.load() != round_) return false;
            i64 count = entry.slot_count.load();
            return count >= 0 && count <= in_round;
        };
        i64 wake = std::min(deadline_ns, monotonic_ns() + LOOK_AGAIN_NS);
        if (!control.ingest_event.wait(wake, [&] { return none_left() || filled(); })) {
            if (monotonic_ns() >= deadline_ns || must_leave() || done()) return -2;
            continue;
        }
        if (none_left()) return -1;
        ++index_;
        words().slot.store(slot);
        return slot;
    }
}

bool WorkerRounds::skipped(i64 slot) const {
    const SlotResult &result = arena_.slot_result(slot);
    if (result.slot == slot && result.rejected == static_cast<u32>(Rejected::crashed)) return true;
    return std::find(rejected_.begin(), rejected_.end(), slot) != rejected_.end();
}

// Whether a step on this batch changes parameters: the optimizer does nothing where all weights are 0.
bool WorkerRounds::has_weight(const u8 *slot) const {
    const f32 *weights = reinterpret_cast<const f32 *>(slot + weights_offset_);
    const f32 *end = weights + reinterpret_cast<const SlotHeader *>(slot)->rows;
    return std::any_of(weights, end, [](f32 weight) { return weight > 0; });
}

void WorkerRounds::before_step(StepBlock &step, i64 slot) {
    const CoordinatorWords &coordinator = arena_.control().coordinator;
    step.seed = coordinator.seed.load();
    step.round = round_;
    step.worker = static_cast<i32>(worker_);
    step.step_in_round = static_cast<i32>((slot - first_slot_) / arena_.workers());
    step.rows = arena_.slot_header(slot).rows;
    step.optimizer_step = base_steps_ + steps_ + 1;
    step.learning_rate = coordinator.learning_rate.load();
    step.beta1_power = power(beta1_, step.optimizer_step);
    step.beta2_power = power(beta2_, step.optimizer_step);
    step.loss_sum = step.weight_sum = 0;
    step.not_finite = 0;
}

bool WorkerRounds::after_step(const StepBlock &step, i64 slot) {
    SlotResult &result = arena_.slot_result(slot);
    result.slot = slot;
    result.worker = worker_;
    if (step.not_finite) {
        rejected_.push_back(slot);
        result.loss_sum = result.weight_sum = 0;
        result.rejected = static_cast<u32>(Rejected::not_finite);
        words().attempt.fetch_add(1);
        return false;
    }
    result.loss_sum = step.loss_sum;
    result.weight_sum = step.weight_sum;
    result.rejected = static_cast<u32>(Rejected::no);
    weight_sum_ += step.weight_sum;
    words().rows.fetch_add(step.rows);
    return true;
}

void WorkerRounds::publish() {
    share_round(arena_.state_layout(), start(), memory(), steps_);
    ST_FAILPOINT("worker.before_publish");
    words().slot.store(-1);
    words().weight_sum = weight_sum_;
    words().steps = steps_;
    words().phase.store(static_cast<u32>(WorkerPhase::published));
    arena_.control().worker_event.ring();
    ST_FAILPOINT("worker.published");
}

void WorkerRounds::statistics_pass() {
    first_moments(arena_, first_slot_, arena_.round_entry(round_).slot_count.load(), memory().base);
    statistics_done_ = true;
}

void WorkerRounds::restart(Plan &plan) {
    if (!in_flight_.empty()) plan.collect();   // of a round that is over or begun again: nobody wants the results
    in_flight_.clear();
    begin();
    plan.begin_round();
}

void WorkerRounds::enqueue(Plan &plan, i64 slot) {
    StepBlock &step = plan.step();
    before_step(step, slot);
    if (step.rows == 0) {
        after_step(step, slot);
        return;
    }
    const u8 *batch = arena_.slot(slot);
    plan.enqueue(batch);
    in_flight_.push_back(slot);
    steps_ += has_weight(batch);
    if (in_flight_.size() == plan.steps_ahead()) collect(plan);
}

void WorkerRounds::collect(Plan &plan) {
    if (in_flight_.empty()) return;
    const StepBlock *step = plan.collect();
    bool finite = true;
    for (u64 i = 0; finite && i < in_flight_.size(); ++i) finite = after_step(step[i], in_flight_[i]);
    in_flight_.clear();
    if (!finite) restart(plan);
}

RoundStatus WorkerRounds::train_round(Plan &plan, i64 deadline_ns) {
    if (!in_round_ || arena_.control().averager.finished_round.load() >= round_) restart(plan);
    if (first_of_lineage() && !statistics_done_) {
        Event &event = arena_.control().ingest_event;
        i64 wake = std::min(deadline_ns, monotonic_ns() + LOOK_AGAIN_NS);
        if (!event.wait(wake, [&] { return round_closed(); })) return RoundStatus::working;
        statistics_pass();
        plan.begin_round();
    }
    for (;;) {
        i64 slot = next_slot(deadline_ns);
        if (slot == -2) return RoundStatus::working;
        if (slot == -1) {
            if (in_flight_.empty()) break;
            collect(plan);
            continue;   // from the round's start where a step was not finite
        }
        if (skipped(slot)) continue;
        ST_FAILPOINT_AT("worker.at_slot", slot);
        enqueue(plan, slot);
        ST_FAILPOINT("worker.stepped");
    }
    plan.end_round();
    publish();
    return RoundStatus::finished;
}

bool WorkerRounds::all_published() const {
    const Control &control = arena_.control();
    i64 round = control.averager.finished_round.load() + 1;
    for (u32 w = 0; w < arena_.workers(); ++w) {
        const WorkerWords &words = control.workers[w];
        if (words.round.load() != round || words.phase.load() != static_cast<u32>(WorkerPhase::published)) return false;
    }
    return true;
}

bool WorkerRounds::diverges(i64 round, i64 slots) {
    AveragerWords &averager = arena_.control().averager;
    const AveragerWords::Judged before = averager.judged[(round + ANY_ROUNDS - 1) % ANY_ROUNDS];
    u32 rejected = 0;
    for (i64 k = 0; k < slots; ++k) rejected += arena_.slot_result(first_slot_ + k).rejected != 0;
    u32 recent_slots = before.slots + static_cast<u32>(slots);
    u32 recent_rejected = before.rejected + rejected;
    bool judged = recent_slots >= arena_.workers() * arena_.averaging_frequency();
    if (judged && recent_rejected > 1 && 2 * recent_rejected >= recent_slots) return true;
    averager.judged[round % ANY_ROUNDS] =
        judged ? AveragerWords::Judged{0, 0} : AveragerWords::Judged{recent_slots, recent_rejected};
    return false;
}

void WorkerRounds::average_into(i64 round, u8 *mean) {
    std::vector<Contribution> contributions;
    for (u32 w = 0; w < arena_.workers(); ++w)
        contributions.push_back({arena_.vector(w), arena_.control().workers[w].weight_sum});
    RoundStart from = start();
    from.first_moments = round == 0 ? memory().base : nullptr;
    fold_round(arena_.state_layout(), from, std::move(contributions), mean);
}

void WorkerRounds::score_means(Plan &plan, WorkerMemory memory) { scorer_ = {&plan, memory}; }

void WorkerRounds::score(const u8 *mean, i64 slots) {
    begin_round(arena_.state_layout(), {mean}, scorer_.memory);
    i64 slot = first_slot_ + slots - 1;
    StepBlock &step = scorer_.plan->step();
    before_step(step, slot);
    scorer_.plan->begin_round();
    if (step.rows > 0) scorer_.plan->train(arena_.slot(slot));
    arena_.control().averager.score_loss_sum = step.loss_sum;
    arena_.control().averager.score_weight_sum = step.weight_sum;
}

RoundStatus WorkerRounds::average_round() {
    Control &control = arena_.control();
    i64 round = control.averager.finished_round.load() + 1;
    if (round_ != round) {   // published by this worker's former life
        round_ = round;
        first_slot_ = control.averager.next_first_slot[(round + ANY_ROUNDS - 1) % ANY_ROUNDS];
    }
    i64 slots = arena_.round_entry(round).slot_count.load();
    if (diverges(round, slots)) return RoundStatus::diverged;
    i32 from = control.averager.mean_buffer[(round + ANY_ROUNDS - 1) % ANY_ROUNDS].load(), to = 0;
    i32 pinned = control.coordinator.pinned.load();
    while (to == from || to == pinned) ++to;
    ST_FAILPOINT("worker.averaging");
    average_into(round, arena_.mean(to));
    if (scorer_.plan) score(arena_.mean(to), slots);
    control.averager.next_first_slot[round % ANY_ROUNDS] = first_slot_ + slots;
    control.averager.mean_buffer[round % ANY_ROUNDS].store(to);
    ST_FAILPOINT("worker.before_finished");
    control.averager.finished_round.store(round);
    ST_FAILPOINT("worker.after_finished");
    control.supervisor.averager.store(0);
    control.worker_event.ring();
    return RoundStatus::finished;
}

RoundStatus WorkerRounds::finish(i64 deadline_ns) {
    Control &control = arena_.control();
    i64 round = words().round.load();
    auto finished = [&] { return control.averager.finished_round.load() >= round; };
    for (;;) {
        u32 free = 0;
        if (!finished() && all_published() && control.supervisor.averager.compare_exchange_strong(free, worker_ + 1)) {
            if (finished()) control.supervisor.averager.store(0);
            else return average_round();
        }
        auto due = [&] { return finished() || (all_published() && control.supervisor.averager.load() == 0); };
        bool woken = control.worker_event.wait(std::min(deadline_ns, monotonic_ns() + LOOK_AGAIN_NS), due);
        if (finished()) return RoundStatus::finished;
        if (must_leave()) return RoundStatus::leave;
        if (!woken && monotonic_ns() >= deadline_ns) return RoundStatus::working;
    }
}

void WorkerRounds::run_closed_round(Plan &plan) {
    in_round_ = false;
    while (train_round(plan, monotonic_ns() + LOOK_AGAIN_NS) != RoundStatus::finished) {}
    if (all_published()) average_round();
}

RoundStatus WorkerRounds::run(Plan &plan, i64 deadline_ns) {
    if (!ready(deadline_ns)) return must_leave() ? RoundStatus::leave : RoundStatus::working;
    for (;;) {
        if (must_leave()) return RoundStatus::leave;
        if (done()) return RoundStatus::finished;
        if (monotonic_ns() >= deadline_ns) return RoundStatus::working;
        if (!published() && train_round(plan, deadline_ns) != RoundStatus::finished) continue;
        RoundStatus status = finish(deadline_ns);
        if (status == RoundStatus::leave || status == RoundStatus::diverged) return status;
        if (status == RoundStatus::finished) in_round_ = false;
    }
}

}  // namespace st
