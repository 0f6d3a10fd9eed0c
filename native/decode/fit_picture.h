// A picture in another size: each point the mean of the area of the picture that it covers, rounded. Exact, so that no
// machine makes another one.
#pragma once
#include <algorithm>
#include <vector>

#include "base/types.h"

namespace st {

struct Area {
    u64 height, width;
};

// From [from.height, from.width, channels] to [to.height, to.width, channels].
inline void fit_picture(const u8 *points, Area from, u8 *fitted, Area to, u64 channels) {
    const u64 row = from.width * channels, area = from.height * from.width;
    std::vector<u64> sums(row);   // of a row of the result, in parts of 1 / to.height of a point
    const auto each_part = [](u64 at, u64 given, u64 wanted, auto use) {
        const u64 begin = at * given, end = begin + given;
        for (u64 i = begin / wanted; i * wanted < end; ++i)
            use(i, std::min((i + 1) * wanted, end) - std::max(i * wanted, begin));
    };
    for (u64 y = 0; y < to.height; ++y) {
        std::fill(sums.begin(), sums.end(), 0);
        each_part(y, from.height, to.height, [&](u64 i, u64 share) {
            for (u64 k = 0; k < row; ++k) sums[k] += share * points[i * row + k];
        });
        for (u64 x = 0; x < to.width; ++x)
            for (u64 c = 0; c < channels; ++c) {
                u64 sum = area / 2;
                each_part(x, from.width, to.width, [&](u64 i, u64 share) { sum += share * sums[i * channels + c]; });
                *fitted++ = static_cast<u8>(sum / area);
            }
    }
}

}  // namespace st
