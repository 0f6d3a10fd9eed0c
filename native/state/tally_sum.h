// Tallies of logits (base/tally.h) outside of kernels: one added to another, and the figures they are for.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/tally.h"

namespace st {

struct Curves {
    f64 auc, average_precision;   // from 0 to 1; -1 where the tally is full or damaged: a snapshot has finite numbers
};

// Exact where the tally is not full: equal logits count half in the AUC, and the average precision has a threshold at
// each distinct logit. Without a positive or a negative row they are 0.5, and 0 without a positive one.
inline Curves curves_of(const f64 *tally) {
    const i64 count = tally_count(tally);
    if (count == TALLY_FULL) return {-1, -1};
    const TallyEntry *entries = tally_entries(tally);
    f64 negative = 0, pairs = 0, positive = 0, precision = 0, selected = 0;
    for (i64 i = 0; i < count; ++i) {
        const auto [below, above] = entries[i].weights;
        pairs += above * (negative + below / 2);
        negative += below;
    }
    for (i64 i = count; i-- > 0;) {
        const auto [below, above] = entries[i].weights;
        positive += above;
        selected += below + above;
        if (selected > 0) precision += above * positive / selected;
    }
    const f64 all = positive * negative, auc = all > 0 ? pairs / all : 0.5;
    const f64 average_precision = positive > 0 ? precision / positive : 0;
    if (!(auc >= 0 && auc < 2 && average_precision >= 0 && average_precision < 2)) return {-1, -1};
    return {std::min(auc, 1.0), std::min(average_precision, 1.0)};   // rounded sums may be above
}

// The bits of one double of marks; none where a snapshot has something else there.
inline u32 bits_of_marks(f64 marks) { return marks >= 0 && marks < 0x1p32 ? static_cast<u32>(marks) : 0; }

// Whether a full tally has marks of more logits than a tally can have entries.
inline bool has_many_marks(const f64 *tally) {
    i64 bits = 0;
    if (tally_count(tally) != TALLY_FULL) return false;
    for (i64 i = 0; i < TALLY_MARKS; ++i) bits += std::popcount(bits_of_marks(tally[TALLY_WIDTH + i]));
    return bits > TALLY_FEW_MARKS;
}

// Tallies merged in a given order.
class TallySum {
  public:
    void add(const f64 *tally) {
        if (tally_count(tally) == TALLY_FULL) {
            fill();
            for (u64 i = 0; i < marks_.size(); ++i)
                marks_[i] = bits_of_marks(marks_[i]) | bits_of_marks(tally[TALLY_WIDTH + i]);
        } else if (marks_.empty()) {
            merge(tally_entries(tally), tally_count(tally));
            if (entries_.size() > TALLY_ENTRIES) fill();
        } else {
            tally_mark(marks_.data(), tally_entries(tally), tally_count(tally));
        }
    }

    // Over whatever `to` has, of which only what it uses is touched.
    void write(f64 *to) const {
        if (!marks_.empty()) {
            tally_clear(to, TALLY_FULL);
            std::ranges::copy(marks_, tally_marks(to));
        } else {
            tally_clear(to, static_cast<i64>(entries_.size()));
            std::ranges::copy(entries_, tally_entries(to));
        }
    }

  private:
    void merge(const TallyEntry *its, i64 count) {
        const TallyEntry *end = its + count;
        const std::vector<TallyEntry> before = std::move(entries_);
        entries_.clear();
        for (const TallyEntry &known : before) {
            while (its < end && its->z < known.z) entries_.push_back(*its++);
            entries_.push_back(known);
            if (its == end || its->z != known.z) continue;
            for (int label : {0, 1}) entries_.back().weights[label] += its->weights[label];
            ++its;
        }
        entries_.insert(entries_.end(), its, end);
    }

    void fill() {
        if (!marks_.empty()) return;
        marks_.resize(TALLY_MARKS);
        tally_mark(marks_.data(), entries_.data(), static_cast<i64>(entries_.size()));
    }

    std::vector<TallyEntry> entries_;
    std::vector<f64> marks_;   // of a full one
};

}  // namespace st
