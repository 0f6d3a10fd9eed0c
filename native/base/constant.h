// The constant prediction over classes: the shares of the classes' weights so far, half a row added to each (Krichevsky
// and Trofimov: The performance of universal encoding, 1981). A row is scored before it is counted.
#pragma once
#include "base/in_order.h"
#include "base/math.h"

namespace st {
inline namespace ST_ISA {

constexpr f64 constant_prior = 0.5;

struct ConstantScore {
    f64 loss, right;   // sum of -weight log(share of the row's class); weight of the rows whose class led
};

// Which class leads: the first of the heaviest.
struct Leader {
    f64 weight = -1;
    i64 at = 0;

    ST_MEMBER void see(i64 k, f64 its) {
        if (its > weight || (its == weight && k < at)) weight = its, at = k;
    }
};

// Scores rows of weight > 0 in order, and adds their weights to share_k; what was seen before is base_k + share_k.
// class_of(i) is one of the classes for any i.
template <class ClassOf>
ST_INLINE ConstantScore score_constant(i64 rows, i64 classes, const f64 *base_k, f64 *share_k, const f32 *weight_r,
                                       ClassOf class_of) {
    const f64 prior = constant_prior * f64(classes);
    f64 total = 0;
    Leader leader;
    for (i64 k = 0; k < classes; ++k) {
        f64 seen = base_k[k] + share_k[k];
        total += seen;
        leader.see(k, seen);
    }
    meet();
    auto loss_of = [&](f64 weight, f64 seen, f64 all) {
        return weight > 0 ? -weight * log((seen + constant_prior) / (all + prior)) : 0.0;
    };
#if ST_CUDA
    f64 loss = 0, right = 0;
    for (i64 first = 0; first < rows; first += lanes) {
        i64 i = first + threadIdx.x;
        f64 weight = i < rows && weight_r[i] > 0 ? f64(weight_r[i]) : 0.0, before_all = total;
        i64 mine = weight > 0 ? class_of(i) : -1;
        f64 share = mine >= 0 ? share_k[mine] : 0.0, base = mine >= 0 ? base_k[mine] : 0.0;
        bool last = mine >= 0;
        for (i64 other = 0; other < lanes; ++other) {
            i64 its = __shfl_sync(every_lane, mine, other);
            f64 its_weight = __shfl_sync(every_lane, weight, other);
            if (other < threadIdx.x) before_all += its_weight;
            if (other < threadIdx.x && its == mine) share += its_weight;
            last = last && !(other > threadIdx.x && its == mine);
            total += its_weight;
        }
        for (i64 other = 0; other < lanes; ++other) {
            i64 its = __shfl_sync(every_lane, mine, other);
            f64 after = __shfl_sync(every_lane, base + (share + weight), other);
            if (other == threadIdx.x && mine == leader.at) right += weight;
            if (its >= 0) leader.see(its, after);
        }
        loss += loss_of(weight, base + share, before_all);
        if (last) share_k[mine] = share + weight;
        __syncwarp();
    }
    return {together(loss), together(right)};
#else
    f64 loss[lanes] = {}, seen[lanes], all[lanes], weights[lanes], right = 0;
    for (i64 first = 0; first < rows; first += lanes) {
        i64 count = smaller(rows - first, lanes);
        for (i64 lane = 0; lane < count; ++lane) {
            i64 k = class_of(first + lane);
            f64 weight = weight_r[first + lane] > 0 ? f64(weight_r[first + lane]) : 0.0;
            weights[lane] = weight;
            seen[lane] = base_k[k] + share_k[k];
            all[lane] = total;
            if (k == leader.at) right += weight;
            share_k[k] += weight;
            total += weight;
            leader.see(k, base_k[k] + share_k[k]);
        }
        ST_FOR(lane, count) loss[lane] += loss_of(weights[lane], seen[lane], all[lane]);
    }
    return {together(loss), right};
#endif
}

// log(a (a + 1) ... (a + k - 1)) = log Gamma(a + k) - log Gamma(a) for whole k >= 0 and a > 0, in place of each a:
// small a by the product, the rest by Stirling's series, whose first term left out is 1e-14 at 16.
template <int count>
ST_INLINE void log_rising(f64 *a, f64 *k) {
    f64 product[count];
    for (int j = 0; j < count; ++j)
        for (product[j] = 1; a[j] < 16 && k[j] > 0; a[j] += 1, k[j] -= 1) product[j] *= a[j];
    auto tail = [](f64 x) {
        f64 t = 1 / (x * x);
        return fma(fma(fma(-1.0 / 1680, t, 1.0 / 1260), t, -1.0 / 360), t, 1.0 / 12) / x;
    };
    for (int j = 0; j < count; ++j) {
        f64 end = a[j] + k[j], rest = k[j] * (log(end) - 1) + (tail(end) - tail(a[j]));
        a[j] = log(product[j]) + ((a[j] - 0.5) * log1p(k[j] / a[j]) + rest);
    }
}

// What score_constant() gives for so many rows of each of two classes, all of weight 1, where the leading class keeps
// the lead whatever their order: then neither figure depends on it.
ST_INLINE ConstantScore score_constant_far(f64 seen0, f64 seen1, f64 count0, f64 count1) {
    f64 a[4] = {seen0 + constant_prior, seen1 + constant_prior, seen0 + seen1 + 2 * constant_prior, 1};
    f64 k[4] = {count0, count1, count0 + count1, 0};   // the fourth fills a vector
    log_rising<4>(a, k);
    return {a[2] - a[0] - a[1], seen1 > seen0 ? count1 : count0};
}

}  // namespace ST_ISA
}  // namespace st
