// vocabulary -- which values have ids (base/vocabulary.h). At a round's end its values are counted; those not seen for
// evict_ms of event time are forgotten; those counted `admit` times ask for ids, the highest count first, of equal ones
// the smaller hash: free ids, the lowest first, then that of a value counted less, the least first, which is forgotten.
// The others are candidates: where there are more than capacity, the count of the first without room is taken off all
// (Misra, Gries: Finding repeated elements, 1982). The clock is the latest of the rounds' medians of when each value
// was seen last, so that no few wrong times move it.
#pragma once
#include <algorithm>
#include <tuple>

#include "base/vocabulary.h"
#include "state/parts.h"

namespace st::rules {

struct SeenValue {
    i64 hash, count, newest_ms;
    i64 entry = 0;   // 0: of none yet
};

// The highest count first; of equal ones the smaller hash.
inline bool counted_more(const SeenValue &a, const SeenValue &b) {
    return a.count != b.count ? a.count > b.count : static_cast<u64>(a.hash) < static_cast<u64>(b.hash);
}

// The round's values by hash, those of all shares as one; of what the start does not know as many as a share has room
// for.
class VocabularyJoin {
  public:
    VocabularyJoin(const StateBlock &block, const RoundStart &start, const Contributions &all)
        : known_{reinterpret_cast<const i64 *>(start.mean + block.offset), static_cast<i64>(block.rows()) - 1} {
        for (const Contribution &each : all.each) {
            const KnownVocabulary share{reinterpret_cast<const i64 *>(each.vector + block.offset), known_.capacity};
            shift_ = std::max(shift_, std::clamp<i64>(share.head().shift, 0, 63));
            for (i64 e = 1; e <= std::min(share.head().used, share.entries()); ++e) {
                const VocabularyEntry &its = share.entry(e);
                seen_.push_back({its.hash, its.count, its.newest_ms});
            }
        }
        merge_equal();
        for (SeenValue &its : seen_) its.entry = known_.find(its.hash);
        for (;; ++shift_) {
            std::erase_if(seen_, [&](const SeenValue &its) {
                return its.entry == 0 && !vocabulary_holds(its.hash, known_.head().rounds, shift_);
            });
            if (static_cast<i64>(seen_.size()) <= known_.entries() || shift_ >= 63) return;
        }
    }

    // As a share, without an index.
    void write(u8 *joined) const {
        const Vocabulary to{reinterpret_cast<i64 *>(joined), known_.capacity};
        to.head() = {.used = std::min(static_cast<i64>(seen_.size()), to.entries()), .shift = shift_};
        for (i64 e = 1; e <= to.head().used; ++e) {
            const SeenValue &its = seen_[static_cast<u64>(e) - 1];
            to.entry(e) = {its.hash, its.count, its.newest_ms};
        }
    }

  private:
    void merge_equal() {
        std::sort(seen_.begin(), seen_.end(), [](const SeenValue &a, const SeenValue &b) { return a.hash < b.hash; });
        u64 kept = 0;
        for (const SeenValue &its : seen_) {
            if (kept && seen_[kept - 1].hash == its.hash) {
                seen_[kept - 1].count += its.count;
                seen_[kept - 1].newest_ms = std::max(seen_[kept - 1].newest_ms, its.newest_ms);
            } else {
                seen_[kept++] = its;
            }
        }
        seen_.resize(kept);
    }

    const KnownVocabulary known_;
    i64 shift_ = 0;
    std::vector<SeenValue> seen_;
};

class VocabularyFold {
  public:
    VocabularyFold(const StateBlock &block, u8 *mean, std::vector<SeenValue> seen)
        : to_{reinterpret_cast<i64 *>(mean + block.offset), static_cast<i64>(block.rows()) - 1}, head_(to_.head()),
          seen_(std::move(seen)) {}

    void fold() {
        advance();
        count();
        forget_old();
        admit();
        keep();
        ++head_.rounds;
    }

  private:
    void advance() {
        std::vector<i64> times;
        for (const SeenValue &its : seen_)
            if (its.newest_ms > 0) times.push_back(its.newest_ms);
        if (times.empty()) return;
        auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
        std::nth_element(times.begin(), middle, times.end());
        head_.clock_ms = std::max(head_.clock_ms, *middle);
    }

    // Those known; the others ask for a place.
    void count() {
        for (const SeenValue &its : seen_) {
            const i64 newest = its.newest_ms > 0 ? std::min(its.newest_ms, head_.clock_ms) : head_.clock_ms;
            if (its.entry == 0) {
                asking_.push_back({its.hash, its.count, newest});
                continue;
            }
            VocabularyEntry &entry = to_.entry(its.entry);
            entry.count += its.count;
            entry.newest_ms = std::max(entry.newest_ms, newest);
        }
    }

    void forget_old() {
        const bool forgets = head_.evict_ms > 0 && head_.clock_ms > head_.evict_ms;
        const i64 oldest = forgets ? head_.clock_ms - head_.evict_ms : 0;
        for (i64 e = 1; e <= to_.entries(); ++e) {
            const VocabularyEntry its = to_.entry(e);
            if (its.count > 0 && forgets && its.newest_ms < oldest) {
                if (e <= to_.capacity) ++head_.evicted;
                to_.take(e);
            }
            if (to_.entry(e).count == 0) any_free_id_ |= e <= to_.capacity;
            else if (e <= to_.capacity) least_ = std::min(least_, its.count);
            else asking_.push_back({its.hash, its.count, its.newest_ms, e});
        }
        if (forgets)
            std::erase_if(asking_, [&](const SeenValue &its) { return its.entry == 0 && its.newest_ms < oldest; });
    }

    void admit() {
        std::vector<SeenValue> wanting, others;
        for (const SeenValue &its : asking_) {
            const bool may = its.count >= head_.admit && (any_free_id_ || its.count > least_);
            (may ? wanting : others).push_back(its);
        }
        std::sort(wanting.begin(), wanting.end(), counted_more);
        u64 at = 0;
        for (i64 id = 1; any_free_id_ && id <= to_.capacity && at < wanting.size(); ++id)
            if (to_.entry(id).count == 0) settle(wanting[at++], id);
        const std::vector<SeenValue> least = least_counted(wanting.size() - at);
        for (const SeenValue &its : least) {
            if (wanting[at].count <= its.count) break;
            to_.take(its.entry);
            ++head_.evicted;
            settle(wanting[at++], its.entry);
        }
        others.insert(others.end(), wanting.begin() + static_cast<std::ptrdiff_t>(at), wanting.end());
        asking_ = std::move(others);
    }

    // Ids that were given before this round, as many as there are of the least counted, those first.
    std::vector<SeenValue> least_counted(u64 most) const {
        std::vector<SeenValue> found;
        if (most == 0) return found;
        std::vector<bool> is_new(static_cast<u64>(to_.capacity) + 1);
        for (i64 id : given_) is_new[static_cast<u64>(id)] = true;
        for (i64 id = 1; id <= to_.capacity; ++id) {
            const VocabularyEntry &its = to_.entry(id);
            if (!is_new[static_cast<u64>(id)]) found.push_back({its.hash, its.count, its.newest_ms, id});
        }
        const auto worse = [](const SeenValue &a, const SeenValue &b) { return counted_more(b, a); };
        const u64 first = std::min<u64>(most, found.size());
        std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(first), found.end(), worse);
        found.resize(first);
        return found;
    }

    void settle(const SeenValue &its, i64 id) {
        if (its.entry > 0) to_.take(its.entry);
        to_.put(id, its.hash, its.count, its.newest_ms);
        given_.push_back(id);
    }

    void keep() {
        if (static_cast<i64>(asking_.size()) > to_.capacity) {
            std::vector<i64> counts;
            for (const SeenValue &its : asking_) counts.push_back(its.count);
            const auto first_out = counts.begin() + to_.capacity;
            std::nth_element(counts.begin(), first_out, counts.end(), std::greater<>());
            const i64 less = *first_out;
            for (SeenValue &its : asking_) {
                its.count -= less;
                if (its.entry == 0) continue;
                if (its.count > 0) to_.entry(its.entry).count = its.count;
                else to_.take(its.entry);
            }
            std::erase_if(asking_, [](const SeenValue &its) { return its.count <= 0; });
        }
        i64 free = to_.capacity;   // the places behind it are looked at
        for (const SeenValue &its : asking_) {
            if (its.entry != 0) continue;
            while (++free <= to_.entries() && to_.entry(free).count != 0) {}
            if (free > to_.entries()) break;
            to_.put(free, its.hash, its.count, its.newest_ms);
        }
    }

    const Vocabulary to_;
    VocabularyHead &head_;
    std::vector<SeenValue> seen_, asking_;
    std::vector<i64> given_;      // ids, in this round
    bool any_free_id_ = false;    // before this round
    i64 least_ = INT64_MAX;   // counted, of those with an id
};

inline void join_vocabulary(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *joined) {
    std::memset(joined + block.offset, 0, block.bytes());
    VocabularyJoin(block, start, all).write(joined + block.offset);
}

inline void fold_vocabulary(const StateBlock &block, const RoundStart &start, u8 *mean) {
    const i64 capacity = static_cast<i64>(block.rows()) - 1;
    const KnownVocabulary known{reinterpret_cast<const i64 *>(start.mean + block.offset), capacity};
    const KnownVocabulary share{reinterpret_cast<const i64 *>(mean + block.offset), capacity};
    std::vector<SeenValue> seen;
    for (i64 e = 1; e <= share.head().used; ++e) {
        const VocabularyEntry &its = share.entry(e);
        seen.push_back({its.hash, its.count, its.newest_ms, known.find(its.hash)});
    }
    parts::as_started(block, start, mean);
    VocabularyFold(block, mean, std::move(seen)).fold();
}

inline void vacated_vocabulary(const StateBlock &block, const RoundStart &start, const u8 *mean,
                               std::vector<u64> &rows) {
    const i64 capacity = static_cast<i64>(block.rows()) - 1;
    const KnownVocabulary before{reinterpret_cast<const i64 *>(start.mean + block.offset), capacity};
    const KnownVocabulary after{reinterpret_cast<const i64 *>(mean + block.offset), capacity};
    if (before.head().evicted == after.head().evicted) return;
    for (i64 id = 1; id <= capacity; ++id) {
        const VocabularyEntry &was = before.entry(id), &is = after.entry(id);
        if (was.count > 0 && (is.count == 0 || is.hash != was.hash)) rows.push_back(static_cast<u64>(id));
    }
}

constexpr Rule vocabulary{Dtype::i64, Part::statistics, false, parts::gathered_from_zero, parts::as_stepped,
                          join_vocabulary, fold_vocabulary, parts::whole, vacated_vocabulary};

}  // namespace st::rules
