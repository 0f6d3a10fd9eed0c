// What a worker, a predictor and a scorer know of a compiled model, whichever backend runs it.
#pragma once
#include <string>

#include "base/fail.h"
#include "base/step.h"

namespace st {

// What a plan can be asked to do with a slot's rows; of what calls each is made, compute/builder.py says. A plan has
// those that it was compiled for.
enum class Phase : u32 {
    forward = 0,      // values as training has them, loss and scores; fills the step's results
    gradient = 1,     // behind a forward of the same slot: the way back
    update = 2,       // behind its gradient: parameters follow it; what the rows add to the statistics
    sum = 3,          // behind its gradient: adds it to sums of the plan's
    evaluate = 4,     // scores as predictions are; fills the step's results
    statistics = 5,   // the same, and what the rows add to the statistics
    predict = 6,      // leaves predictions of the rows present in output()
    train = 7,        // the calls of a forward, a gradient and an update in one
    objective = 8     // of a forward, a gradient and a sum
};
constexpr const char *phase_names[] = {"forward", "gradient", "update", "sum", "evaluate", "statistics", "predict",
                                       "train", "objective"};
constexpr u32 phase_count = sizeof phase_names / sizeof phase_names[0];

// The phases that are several in one, and those, each of which goes on with what the one before it has left.
struct WholePhase {
    Phase whole;
    Phase parts[3];
};
constexpr WholePhase whole_phases[] = {{Phase::train, {Phase::forward, Phase::gradient, Phase::update}},
                                       {Phase::objective, {Phase::forward, Phase::gradient, Phase::sum}}};

constexpr bool goes_on(Phase phase) {
    for (const WholePhase &each : whole_phases)
        if (phase == each.parts[1] || phase == each.parts[2]) return true;
    return false;
}

// Before a phase runs: nothing is known of its batch.
inline void begin_step(StepBlock &step, Phase phase, i64 rows) {
    step.rows = static_cast<i32>(rows);
    if (phase == Phase::predict || goes_on(phase)) return;
    step.loss_sum = step.objective_sum = step.weight_sum = 0;
    step.gradient_norm = 0;
    step.not_finite = 0;
    step.active_rows = 0;
}

[[noreturn]] inline void no_phase(Phase phase) {
    mistake("plan", "a phase that it was compiled for", phase_names[static_cast<u32>(phase)]);
}

// A compiled plan, bound for its life to a state (in place), a base and a share of the statistics part, a workspace.
class Plan {
  public:
    virtual ~Plan() = default;
    virtual StepBlock &step() = 0;
    // The state, base or share were written by others (a round's start): a device plan brings them to its memory.
    virtual void begin_round() {}
    // State and share in host memory become what the steps since begin_round() made of them.
    virtual void end_round() {}
    // `slot` is the start of a slot of the plan's SlotLayout. None of these allocates after the first call.
    virtual void run(Phase phase, const u8 *slot) = 0;   // Mistake where it was not compiled for the phase
    void train(const u8 *slot) { run(Phase::train, slot); }
    void predict(const u8 *slot) { run(Phase::predict, slot); }
    // Training ahead of a device: enqueue() takes the step block as it stands and may return before the step has run;
    // its slot must stay until collect(), which waits for all enqueued steps and gives their step blocks in order,
    // valid until the next call. At most steps_ahead() may wait for it, and no other call is made while one does.
    virtual u32 steps_ahead() const { return 1; }
    virtual void enqueue(const u8 *slot) { train(slot); }
    virtual const StepBlock *collect() { return &step(); }
    virtual const f32 *output() const = 0;   // rows() x width()
    virtual u32 rows() const = 0;            // the slot layout's row capacity
    virtual u32 width() const = 0;
};

}  // namespace st
