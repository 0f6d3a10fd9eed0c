// What a step needs beyond its batch, read through a pointer so that a captured graph sees new values; the same on CPU.
#pragma once
#include "base/types.h"

namespace st {

struct StepBlock {
    u64 seed;
    i64 round;
    i32 worker;
    i32 step_in_round;
    i64 rows;                 // valid rows of the batch; rows behind them are zero with weight 0
    i64 optimizer_step;       // 1 for the lineage's first step: base of the round + steps in it
    f32 learning_rate;
    f32 reserved;
    f64 beta1_power, beta2_power;   // beta^optimizer_step, by repeated multiplication (no libm: same bits everywhere)
    // written by the step
    f64 loss_sum;             // sum of weight x loss over the batch, before the update
    f64 weight_sum;
    i32 not_finite;           // 1 if loss, parameters or optimizer state are not finite after the step
    i32 reserved2;
    u64 pad[5];
};
static_assert(sizeof(StepBlock) == 128);

#if !defined(__CUDACC_RTC__)   // kernels on CUDA see the step block only
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
#endif

}  // namespace st
