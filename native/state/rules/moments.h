// moments -- of standardised columns (base/moments.h): what was known merged with the shares, outliers held back.
#pragma once
#include "base/moments.h"
#include "base/power.h"
#include "state/parts.h"

namespace st::rules {

constexpr f64 LN_2 = 0.69314718055994531;
constexpr f64 LEAST_MOVED = 8;          // values: in a round of one row that row would be most of it

inline void begin_moments(const StateBlock &block, const RoundStart &start, const WorkerMemory &own) {
    u8 *base = own.base + block.part_offset;
    const u8 *from = start.first_moments ? start.first_moments + block.part_offset : start.mean + block.offset;
    if (from != base) std::memcpy(base, from, block.bytes());   // a first round begun again: its pass has made them
    std::memset(own.share + block.part_offset, 0, block.bytes());
}

// All shares of a round as one.
inline ColumnMoments gathered(const Contributions &all, u64 offset, u64 column) {
    ColumnMoments round{};
    for (const Contribution &each : all.each) {
        const ColumnMoments &share = reinterpret_cast<const ColumnMoments *>(each.vector + offset)[column];
        f64 raw_count = round.count;
        merge_moments(share.count, share.raw_mean, share.raw_squares, raw_count, round.raw_mean, round.raw_squares);
        merge_moments(share.count, share.mean, share.squares, round.count, round.mean, round.squares);
        round.outside += share.outside;
        round.least = nearer(share.least, round.least);
        round.clipped += share.clipped;
    }
    return round;
}

// A column's state after a round. Where most of a round lies beyond the reach the column has moved, and the values
// count as they came; fewer than that is what the reach is for. Where they outnumber all that was seen before, that was
// wrong.
inline void fold_column(ColumnMoments &column, const ColumnMoments &round) {
    if (round.count == 0) return;
    if (column.half_life > 0) {
        f64 kept = power(1 - LN_2 / column.half_life, static_cast<i64>(round.count));
        column.count *= kept;
        column.squares *= kept;
        column.outside *= kept;
    }
    bool most = 2 * round.outside > round.count;
    bool moved = most && round.outside >= LEAST_MOVED;
    if (most && round.outside > column.count) {
        moved = true;
        column.count = column.mean = column.squares = 0;
    }
    merge_moments(round.count, moved ? round.raw_mean : round.mean, moved ? round.raw_squares : round.squares,
                  column.count, column.mean, column.squares);
    if (!moved) {
        column.outside += round.outside;
        column.least = nearer(round.least, column.least);
    }
    column.clipped += round.clipped;
}

// Of a lineage's first round: its own pass has seen the values, and of the steps' shares only the cuts count.
inline void join_moments(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *joined) {
    ColumnMoments *to = reinterpret_cast<ColumnMoments *>(joined + block.offset);
    for (u64 c = 0; c < block.count() / moments_width; ++c) {
        to[c] = gathered(all, block.offset, c);
        if (!start.first_moments) continue;
        const ColumnMoments &first =
            reinterpret_cast<const ColumnMoments *>(start.first_moments + block.part_offset)[c];
        to[c] = {first.count, first.mean, first.squares, 0, 0, 0, first.outside, first.least,
                 first.clipped + to[c].clipped, first.mean, first.squares};
    }
}

inline void fold_moments(const StateBlock &block, const RoundStart &start, u8 *mean) {
    const ColumnMoments *known = reinterpret_cast<const ColumnMoments *>(start.mean + block.offset);
    ColumnMoments *to = reinterpret_cast<ColumnMoments *>(mean + block.offset);
    for (u64 c = 0; c < block.count() / moments_width; ++c) {
        const ColumnMoments round = to[c];
        to[c] = known[c];
        if (!start.first_moments) fold_column(to[c], round);
        else to[c] = {round.count, round.mean, round.squares, known[c].clip, known[c].half_life, known[c].floor,
                      round.outside, round.least, round.clipped, 0, 0};
    }
}

constexpr Rule moments{Dtype::f64, Part::statistics, false,
                       begin_moments, parts::as_stepped, join_moments, fold_moments, parts::whole};

}  // namespace st::rules
