// The supervisor's end of the ring: makes the arena, tells the processes to drain or to leave, and clears up after a
// worker that has died.
#pragma once
#include "base/fail.h"
#include "ring/arena.h"

namespace st {

// A worker as the supervisor sees it.
struct WorkerLook {
    i64 round, slot;      // slot in hand, -1 none
};

class SupervisorEnd {
  public:
    explicit SupervisorEnd(Arena &arena) : arena_(arena) {}

    void tell(Stop stop) {
        Control &control = arena_.control();
        control.supervisor.stop.store(stop);
        control.ingest_event.ring();
        control.coordinator_event.ring();
        control.worker_event.ring();
    }

    WorkerLook worker(u32 worker) const {
        const WorkerWords &words = arena_.control().workers[checked(worker)];
        return {words.round.load(), words.slot.load()};
    }

    // Once the worker's process is dead and waited for: what it may have left claimed is free again.
    void clear_dead(u32 worker) {
        Control &control = arena_.control();
        u32 claim = checked(worker) + 1;
        control.supervisor.averager.compare_exchange_strong(claim, 0);
        control.supervisor.worker_deaths.fetch_add(1);
        control.workers[worker].slot.store(-1);
        control.worker_event.ring();
    }

    // While the slot's worker is dead: its next life leaves the slot out.
    void reject(i64 slot, u32 worker) {
        arena_.slot_result(slot) = SlotResult{.slot = slot, .rejected = Rejected::crashed, .worker = checked(worker)};
    }

  private:
    u32 checked(u32 worker) const {
        if (worker >= arena_.workers())
            mistake("worker", "one below " + std::to_string(arena_.workers()), std::to_string(worker));
        return worker;
    }

    Arena &arena_;
};

}  // namespace st
