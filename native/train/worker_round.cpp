#include "train/worker_round.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/failpoint.h"
#include "train/first_moments.h"

namespace st {

WorkerRound::WorkerRound(Arena &arena, WorkerEnd &end, const StepFiller &filler)
    : arena_(arena), end_(end), filler_(filler) {
    const StateBlock *steps = arena.state_layout().find(OPTIMIZER_STEPS);
    if (steps) steps_offset_ = steps->part_offset;
    has_steps_ = steps;
    standing_ = arena.state_layout().find(SCHEDULE_STANDING);
    const Block *weights = arena.slot_layout().find("weight");
    if (!weights) mistake("a worker's slots", "a block named weight", "none");
    weights_offset_ = weights->offset;
    const auto changes = [](const StateBlock &block) { return block.rule->settle || block.rule->vacated; };
    mean_is_own_ = arena_.workers() == 1 && std::ranges::none_of(arena_.state_layout().blocks, changes);
}

void WorkerRound::begin() {
    const i64 round = end_.open_round();
    if (round != round_ || !in_round_) {
        rejected_.clear();
        statistics_done_ = false;
    }
    in_round_ = true;
    round_ = round;
    first_slot_ = end_.first_slot_of(round);
    index_ = 0;
    steps_ = 0;
    weight_sum_ = 0;
    WorkerMemory own = memory();
    own.has_start = mean_round_ >= 0 && mean_round_ == round - 1;
    mean_round_ = -1;
    begin_round(arena_.state_layout(), start(), own);
    base_steps_ = 0;
    if (has_steps_) std::memcpy(&base_steps_, memory().base + steps_offset_, sizeof base_steps_);
    f64 left = 1;
    if (standing_) std::memcpy(&left, memory().base + standing_->part_offset, sizeof left);
    rate_ = rate_of_ ? rate_of_(base_steps_, left) : end_.learning_rate();
    end_.begin(round_);
}

i64 WorkerRound::next_slot(i64 deadline_ns) {
    for (;;) {
        const i64 in_round = index_ * arena_.workers() + end_.worker(), slot = first_slot_ + in_round;
        switch (end_.wait_slot(round_, in_round, slot, std::min(deadline_ns, monotonic_ns() + LOOK_AGAIN_NS))) {
            case WorkerEnd::Coming::not_yet:
                if (monotonic_ns() >= deadline_ns || end_.must_leave() || end_.all_averaged()) return AT_DEADLINE;
                continue;
            case WorkerEnd::Coming::none_left: return NO_MORE;
            case WorkerEnd::Coming::filled: break;
        }
        ++index_;
        end_.take(slot);
        return slot;
    }
}

bool WorkerRound::skipped(i64 slot) const {
    return end_.crashed(slot) || std::find(rejected_.begin(), rejected_.end(), slot) != rejected_.end();
}

// Whether a step on this batch changes parameters: the optimizer does nothing where all weights are 0.
bool WorkerRound::has_weight(const u8 *slot) const {
    const f32 *weights = reinterpret_cast<const f32 *>(slot + weights_offset_);
    const f32 *end = weights + reinterpret_cast<const SlotHeader *>(slot)->rows;
    return std::any_of(weights, end, [](f32 weight) { return weight > 0; });
}

bool WorkerRound::after_step(const StepBlock &step, i64 slot) {
    if (step.not_finite) {
        rejected_.push_back(slot);
        end_.reject(slot);
        return false;
    }
    end_.trained(slot, step.loss_sum, step.weight_sum);
    weight_sum_ += step.weight_sum;
    return true;
}

RoundStart WorkerRound::start() const {
    return {end_.start_of(round_), statistics_done_ ? memory().base : nullptr};
}

void WorkerRound::publish() {
    share_round(arena_.state_layout(), start(), memory(), steps_);
    end_.publish(weight_sum_);
}

bool WorkerRound::statistics_pass(i64 deadline_ns) {
    if (end_.in_lineage(round_) != 0 || statistics_done_) return true;
    if (!end_.wait_closed(round_, std::min(deadline_ns, monotonic_ns() + LOOK_AGAIN_NS))) return false;
    std::vector<const u8 *> slots;
    for (i64 at = 0; at < end_.slots_of(round_); ++at) slots.push_back(arena_.slot(first_slot_ + at));
    first_moments(arena_.state_layout(), arena_.slot_layout(), slots, memory().base);
    return statistics_done_ = true;
}

void WorkerRound::restart(Plan &plan) {
    if (!in_flight_.empty()) plan.collect();   // of a round that is over or begun again: nobody wants the results
    in_flight_.clear();
    begin();
    plan.begin_round();
}

void WorkerRound::enqueue(Plan &plan, i64 slot) {
    StepBlock &step = plan.step();
    filler_.fill(step, slot, round_, slot - first_slot_, base_steps_ + steps_ + 1, rate_);
    if (step.rows == 0) {
        after_step(step, slot);
        return;
    }
    const u8 *batch = end_.slot(slot);
    plan.enqueue(batch);
    in_flight_.push_back(slot);
    steps_ += has_weight(batch);
    if (in_flight_.size() == plan.steps_ahead()) collect(plan);
}

void WorkerRound::collect(Plan &plan) {
    if (in_flight_.empty()) return;
    const StepBlock *step = plan.collect();
    bool finite = true;
    for (u64 i = 0; finite && i < in_flight_.size(); ++i) finite = after_step(step[i], in_flight_[i]);
    in_flight_.clear();
    if (!finite) restart(plan);
}

bool WorkerRound::train(Plan &plan, i64 deadline_ns) {
    if (!in_round_ || end_.finished_round() >= round_) restart(plan);
    if (!statistics_done_) {
        if (!statistics_pass(deadline_ns)) return false;
        if (statistics_done_) plan.begin_round();   // its base is another now
    }
    for (;;) {
        const i64 slot = next_slot(deadline_ns);
        if (slot == AT_DEADLINE) return false;
        if (slot == NO_MORE) {
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
    return true;
}

}  // namespace st
