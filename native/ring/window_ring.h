// Closes windows of scored rows at the ends of rounds. A window's beginning is in the state (the blocks
// `window.<score>`, the last ones of the layout); the scores at its end go into a ring in the arena, from which the
// coordinator takes them.
#pragma once
#include <cstring>
#include <utility>

#include "ring/arena.h"
#include "state/tally_sum.h"

namespace st {

class WindowRing {
  public:
    // `least`: rows from which on a window closes.
    WindowRing(const Arena &arena, i64 least) : arena_(arena), least_(least) {
        const StateLayout &layout = arena.state_layout();
        rows_ = layout.find(SCORE_ROWS);
        closed_ = layout.find(WINDOWS_CLOSED);
        for (const StateBlock &score : layout.blocks) {
            if (!score.name.starts_with(SCORE)) continue;
            if (const StateBlock *curves = layout.find(curves_name(score.name))) tallies_.emplace_back(&score, curves);
            const StateBlock *begun = layout.find(WINDOW + score.name.substr(std::strlen(SCORE)));
            if (begun) pairs_.emplace_back(&score, begun);
            if (begun && &score == rows_) begun_rows_ = begun;
        }
    }

    // Whether the open window closes with this mean, which then begins the next one: it has its rows, and the ring has
    // room for it. A function of its arguments: a round that is averaged again closes the same.
    bool close(u8 *mean, i64 allowed) const {
        if (!closed_ || !begun_rows_) return false;
        i64 &number = word(mean, *closed_);
        if (number >= allowed || word(mean, *rows_) - word(mean, *begun_rows_) < least_) return false;
        for (auto [score, begun] : pairs_) std::memcpy(mean + begun->offset, mean + score->offset, score->bytes());
        for (auto [tally, curves] : tallies_) close(doubles(mean, *tally), doubles(mean, *curves));
        std::memcpy(arena_.window(number), mean + arena_.state_layout().windows_offset, arena_.window_bytes());
        ++number;
        return true;
    }

  private:
    // Where the window has the figures of that tally; "": it is none.
    static std::string curves_name(const std::string &score) {
        if (!score.ends_with(DISTINCT)) return "";
        const u64 head = std::strlen(SCORE), rest = std::strlen(DISTINCT);
        return WINDOW + score.substr(head, score.size() - head - rest) + CURVES;
    }

    static void close(f64 *tally, f64 *curves) {
        const auto [auc, average_precision] = curves_of(tally);
        curves[0] = auc, curves[1] = average_precision;
        tally_clear(tally, has_many_marks(tally) ? TALLY_FULL : 0);
    }

    static f64 *doubles(u8 *mean, const StateBlock &block) { return reinterpret_cast<f64 *>(mean + block.offset); }
    static i64 &word(u8 *mean, const StateBlock &block) { return *reinterpret_cast<i64 *>(mean + block.offset); }

    const Arena &arena_;
    const i64 least_;
    const StateBlock *rows_ = nullptr, *begun_rows_ = nullptr, *closed_ = nullptr;
    std::vector<std::pair<const StateBlock *, const StateBlock *>> pairs_;   // a score, and where the window has it
    std::vector<std::pair<const StateBlock *, const StateBlock *>> tallies_; // a tally, and where its figures go
};

}  // namespace st
