// outer -- the velocity of the parameter whose name stands behind OUTER_VELOCITY: by it the mean goes on from round to
// round in the direction of what the workers have made together, Nesterov's step on its distance from the start
// (Douillard et al.: DiLoCo, 2023). v = momentum v + (start - mean), mean = start - rate (start - mean + momentum v).
#pragma once
#include <cmath>

#include "state/parts.h"

namespace st::rules {

using OuterValue = f32;

// Where nobody trained all stays; where the step is not finite the mean does.
inline void settle_outer(const StateLayout &layout, const StateBlock &block, const RoundStart &start,
                         f64 weight_sum, u8 *mean) {
    const std::string prefix = OUTER_VELOCITY;
    const StateBlock *its = block.name.starts_with(prefix) ? layout.find(block.name.substr(prefix.size())) : nullptr;
    const StateBlock *settings = layout.find(OUTER_SETTINGS);
    if (!its || !settings || !(weight_sum > 0)) return;
    const f64 *chosen = reinterpret_cast<const f64 *>(start.mean + settings->offset);
    const f64 rate = chosen[0], momentum = chosen[1];
    const f32 *before = reinterpret_cast<const f32 *>(start.mean + its->offset);
    f32 *after = reinterpret_cast<f32 *>(mean + its->offset);
    OuterValue *velocity = reinterpret_cast<OuterValue *>(mean + block.offset);
    for (u64 i = 0, n = its->count(); i < n; ++i) {
        const f64 way = f64{before[i]} - f64{after[i]};
        const OuterValue next = static_cast<OuterValue>(momentum * velocity[i] + way);
        const f32 stepped = static_cast<f32>(before[i] - rate * (way + momentum * next));
        const bool finite = std::isfinite(next) && std::isfinite(stepped);
        velocity[i] = finite ? next : 0;
        after[i] = finite ? stepped : after[i];
    }
}

constexpr Rule outer{parts::dtype_of(OuterValue{}), Part::statistics, false, parts::gathered_from_zero,
                     parts::as_stepped, parts::left_alone, parts::as_started, parts::whole, nullptr, settle_outer};

}  // namespace st::rules
