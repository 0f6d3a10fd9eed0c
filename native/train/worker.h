// A worker's life: round after round until the run ends.
#pragma once
#include "train/averager.h"
#include "train/worker_round.h"

namespace st {

enum class WorkerStatus : u32 {
    working = 0,     // the deadline passed; call again
    finished = 1,    // ingest has ended and every round is averaged
    leave = 2,       // told to leave, or the coordinator has stopped beating
    diverged = 3,    // half of the last slots were rejected
};

class Worker {
  public:
    Worker(Arena &arena, u32 worker)
        : end_(arena, worker), filler_(end_), round_(arena, end_, filler_),
          averager_(arena, end_, filler_) {}
    Worker(const Worker &) = delete;
    Worker &operator=(const Worker &) = delete;

    WorkerRound &round() { return round_; }   // the memory a plan is bound to
    i64 round_number() const { return end_.round(); }   // of the one begun

    // Scores every mean on its round's last slot with a plan of its own.
    void score_means(MeanScorer scorer) {
        averager_.score_means(scorer);
        scores_means_ = true;
    }

    // Waits for READY, then works until the deadline or the end.
    WorkerStatus run(Plan &plan, i64 deadline_ns);

    // Trains the round that is filled and closed, publishes, and averages when every other worker has published:
    // replay, where workers take turns in one thread.
    void run_closed_round(Plan &plan);

  private:
    // After publishing: averages the round, or waits until it is.
    WorkerStatus finish(i64 deadline_ns);

    WorkerEnd end_;
    StepFiller filler_;
    WorkerRound round_;
    Averager averager_;
    bool scores_means_ = false;   // a step on the mean, which changes more than scores
};

}  // namespace st
