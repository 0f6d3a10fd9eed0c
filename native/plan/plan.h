// What a worker, a predictor and a scorer know of a compiled model, whichever backend runs it.
#pragma once
#include "base/step.h"

namespace st {

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
    virtual void train(const u8 *slot) = 0;        // score, forward, backward, update; fills the step's results
    // Training ahead of a device: enqueue() takes the step block as it stands and may return before the step has run;
    // its slot must stay until collect(), which waits for all enqueued steps and gives their step blocks in order,
    // valid until the next call. At most steps_ahead() may wait for it, and no other call is made while one does.
    virtual u32 steps_ahead() const { return 1; }
    virtual void enqueue(const u8 *slot) { train(slot); }
    virtual const StepBlock *collect() { return &step(); }
    virtual void predict(const u8 *slot) = 0;      // leaves predictions of the rows present in output()
    virtual const f32 *output() const = 0;         // rows() x width()
    virtual u32 rows() const = 0;                  // the slot layout's row capacity
    virtual u32 width() const = 0;
};

}  // namespace st
