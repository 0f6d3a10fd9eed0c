#include "train/averager.h"

#include <cstring>
#include <vector>

#include "base/failpoint.h"

namespace st {

bool Averager::diverges(i64 round, i64 first_slot, i64 slots) {
    const AveragerWords::Judged before = end_.judged(round - 1);
    u32 rejected = 0;
    for (i64 k = 0; k < slots; ++k) rejected += end_.result(first_slot + k).rejected != Rejected::no;
    const u32 recent_slots = before.slots + static_cast<u32>(slots), recent_rejected = before.rejected + rejected;
    const bool judged = recent_slots >= arena_.workers() * arena_.averaging_frequency();
    if (judged && recent_rejected > 1 && 2 * recent_rejected >= recent_slots) return true;
    end_.judge(round, judged ? AveragerWords::Judged{0, 0} : AveragerWords::Judged{recent_slots, recent_rejected});
    return false;
}

void Averager::average_into(i64 round, u8 *mean) {
    std::vector<Contribution> contributions;
    for (u32 w = 0; w < arena_.workers(); ++w) contributions.push_back({arena_.vector(w), end_.weight_sum_of(w)});
    // the moments of a lineage's first round are in the base already: its own pass over the slots made it
    const u8 *first_moments = end_.in_lineage(round) == 0 ? arena_.memory(end_.worker()).base : nullptr;
    const StateLayout &layout = arena_.state_layout();
    const RoundStart start{end_.start_of(round), first_moments};
    if (!end_.joins()) return fold_round(layout, start, std::move(contributions), mean);
    std::memset(mean, 0, layout.state_bytes);   // what no worker contributes to is left alone
    join_round(layout, start, std::move(contributions), mean);
}

void Averager::score_mean(i64 round, i64 last_slot, i64 slots, u8 *mean) {
    StepBlock &step = scorer_.begin(arena_.state_layout(), mean);
    filler_.fill(step, last_slot, round, slots - 1, 1, end_.learning_rate());   // its update is thrown away
    scorer_.score(end_.slot(last_slot));
    end_.score(step.loss_sum, step.weight_sum);
}

bool Averager::average() {
    const i64 round = end_.open_round(), first_slot = end_.first_slot_of(round), slots = end_.slots_of(round);
    if (diverges(round, first_slot, slots)) return false;
    const i32 buffer = end_.free_buffer(round);
    ST_FAILPOINT("worker.averaging");
    u8 *mean = end_.mean(buffer);
    average_into(round, mean);
    const bool joins = end_.joins();
    end_.close_window(round, !joins && windows_.close(mean, end_.windows_allowed()));
    if (scorer_ && !joins) score_mean(round, first_slot + slots - 1, slots, mean);
    end_.finish(round, buffer, first_slot + slots);
    return true;
}

}  // namespace st
