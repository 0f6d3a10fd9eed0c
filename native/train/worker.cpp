#include "train/worker.h"

#include <algorithm>

namespace st {

WorkerStatus Worker::finish(i64 deadline_ns) {
    const i64 round = end_.round();
    for (;;) {
        if (end_.finished_round() < round && end_.all_published() && end_.claim()) {
            if (end_.finished_round() >= round) end_.give_back();
            else return averager_.average() ? WorkerStatus::finished : WorkerStatus::diverged;
        }
        const bool woken = end_.wait_finished(round, std::min(deadline_ns, monotonic_ns() + LOOK_AGAIN_NS));
        if (end_.finished_round() >= round) return WorkerStatus::finished;
        if (end_.must_leave()) return WorkerStatus::leave;
        if (!woken && monotonic_ns() >= deadline_ns) return WorkerStatus::working;
    }
}

void Worker::run_closed_round(Plan &plan) {
    round_.leave();
    while (!round_.train(plan, monotonic_ns() + LOOK_AGAIN_NS)) {}
    if (end_.all_published()) averager_.average();
}

WorkerStatus Worker::run(Plan &plan, i64 deadline_ns) {
    if (!end_.wait_ready(deadline_ns)) return end_.must_leave() ? WorkerStatus::leave : WorkerStatus::working;
    for (;;) {
        if (end_.must_leave()) return WorkerStatus::leave;
        if (end_.all_averaged()) return WorkerStatus::finished;
        if (monotonic_ns() >= deadline_ns) return WorkerStatus::working;
        if (!end_.wait_begin(std::min(deadline_ns, monotonic_ns() + LOOK_AGAIN_NS))) continue;
        if (!end_.published() && !round_.train(plan, deadline_ns)) continue;
        const WorkerStatus status = finish(deadline_ns);
        if (status == WorkerStatus::leave || status == WorkerStatus::diverged) return status;
        if (status == WorkerStatus::finished) scores_means_ ? round_.leave() : round_.leave_for_next();
    }
}

}  // namespace st
