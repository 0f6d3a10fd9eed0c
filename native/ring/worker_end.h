// A worker's end of the ring: its slots of the open round, its own words, and the right to average, which the last to
// publish claims.
#pragma once
#include "base/failpoint.h"
#include "ring/arena.h"
#include "ring/silence.h"

namespace st {

class WorkerEnd {
  public:
    WorkerEnd(Arena &arena, u32 worker) : arena_(arena), worker_(worker) {}

    const Arena &arena() const { return arena_; }
    u32 worker() const { return worker_; }

    // -- looks

    bool wait_ready(i64 deadline_ns) const {
        return control().coordinator_event.wait(deadline_ns, [&] { return control().coordinator.ready.load() != 0; });
    }
    // Told to leave, or the coordinator is silent.
    bool must_leave() {
        return silence_.lasts(control().coordinator) || control().supervisor.stop.load() == Stop::leave;
    }
    f32 learning_rate() const { return control().coordinator.learning_rate.load(); }
    u64 seed() const { return control().coordinator.seed.load(); }
    // A round's vectors are joined: what it starts from is not the result of the round before.
    bool joins() const { return control().coordinator.joins.load() != 0; }
    i64 finished_round() const { return control().averager.finished_round.load(); }
    i64 open_round() const { return finished_round() + 1; }
    // Ingest has ended and every round is averaged.
    bool all_averaged() const {
        return control().ingest.phase.load() == IngestPhase::ended &&
               finished_round() >= control().ingest.final_round.load();
    }

    // The open round may begin: what it starts from is in place.
    bool may_begin() const {
        return !joins() || open_round() <= control().coordinator.start_in_place.load();
    }
    // Until it may, or a time-out.
    bool wait_begin(i64 deadline_ns) const {
        return control().coordinator_event.wait(deadline_ns, [&] { return may_begin(); });
    }
    // The round's number in its lineage, which random numbers and the statistics pass go by.
    i64 in_lineage(i64 round) const { return round + control().coordinator.round_shift.load(); }

    // -- the open round: what it starts from, its slots and their results

    const u8 *start_of(i64 round) const { return arena_.mean(control().averager.mean_of(round - 1)); }
    i64 first_slot_of(i64 round) const {
        return control().averager.next_first_slot[AveragerWords::place(round - 1)];
    }
    // -1 while the round is open.
    i64 slots_of(i64 round) const {
        const RoundEntry &entry = arena_.round_entry(round);
        return entry.round.load() == round ? entry.slot_count.load() : -1;
    }
    bool wait_closed(i64 round, i64 wake_ns) const {
        return control().ingest_event.wait(wake_ns, [&] { return slots_of(round) >= 0; });
    }
    // Whether the round's `in_round`-th slot is there (filled) or never comes (none_left), by `wake_ns`.
    enum class Coming { filled, none_left, not_yet };
    Coming wait_slot(i64 round, i64 in_round, i64 slot, i64 wake_ns) const;
    const u8 *slot(i64 slot) const { return arena_.slot(slot); }
    u32 rows_of(i64 slot) const { return arena_.slot_header(slot).rows; }

    const SlotResult &result(i64 slot) const { return arena_.slot_result(slot); }
    // A former life died there too often.
    bool crashed(i64 slot) const { return result(slot).slot == slot && result(slot).rejected == Rejected::crashed; }

    // -- this worker's words

    i64 round() const { return own().round.load(); }
    // This worker's vector of the open round is fixed.
    bool published() const { return own().published_round.load() == open_round(); }
    void begin(i64 round) {
        own().round.store(round);
        ST_FAILPOINT("worker.begins");
    }
    void take(i64 slot) { own().slot.store(slot); }
    void trained(i64 slot, f64 loss_sum, f64 weight_sum);
    void reject(i64 slot);   // not finite
    void publish(f64 weight_sum);

    // -- averaging, by the one worker that has the claim

    bool all_published() const;
    bool claim() {
        u32 nobody = 0;
        return control().supervisor.averager.compare_exchange_strong(nobody, worker_ + 1);
    }
    void give_back() { control().supervisor.averager.store(0); }
    bool claimable() const { return all_published() && control().supervisor.averager.load() == 0; }
    f64 weight_sum_of(u32 worker) const { return control().workers[worker].weight_sum; }
    AveragerWords::Judged judged(i64 round) const { return control().averager.judged[AveragerWords::place(round)]; }
    void judge(i64 round, AveragerWords::Judged judged) {
        control().averager.judged[AveragerWords::place(round)] = judged;
    }
    // A mean buffer that is neither the round's start nor being published.
    i32 free_buffer(i64 round) const;
    u8 *mean(i32 buffer) { return arena_.mean(buffer); }
    void score(f64 loss_sum, f64 weight_sum) {
        control().averager.score_loss_sum = loss_sum;
        control().averager.score_weight_sum = weight_sum;
    }
    // Windows below this number may close.
    i64 windows_allowed() const { return control().coordinator.windows_allowed.load(); }
    void close_window(i64 round, bool closed) { arena_.round_entry(round).closed_window = closed; }
    // The round's result is in `buffer`; gives the claim back.
    void finish(i64 round, i32 buffer, i64 next_first_slot);
    // Wakes at `wake_ns`, when `round` is finished or when this worker may claim.
    bool wait_finished(i64 round, i64 wake_ns) const {
        return control().worker_event.wait(wake_ns, [&] { return finished_round() >= round || claimable(); });
    }

  private:
    Control &control() const { return arena_.control(); }
    WorkerWords &own() const { return control().workers[worker_]; }

    Arena &arena_;
    u32 worker_;
    Silence silence_;
};

}  // namespace st
