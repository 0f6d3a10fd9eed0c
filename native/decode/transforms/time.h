// Parts of a time by a zone's clock: year to second, weekday (0: Monday), day of the year; or points on a circle.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "decode/transform.h"

namespace st::transforms {

class Time final : public Transform {
  public:
    Time(CellPlaces places, const Options &options)
        : Transform(std::move(places)), zone_(options.get<std::vector<i64>>("zone")),
          cyclic_(options.get<bool>("cyclic")) {
        for (const std::string &part : options.get<std::vector<std::string>>("parts")) parts_.push_back(part_of(part));
        if (places_.results.size() != parts_.size() * (cyclic_ ? 2 : 1))
            throw std::invalid_argument("time: expected a result for each part");
        for (u64 k = 0; cyclic_ && k < parts_.size(); ++k) turns_.push_back(turns(COUNTS[parts_[k]]));
    }

    void run(Cells &cells, u32 count) const override {
        const i64 *times = source(cells).times.data();
        for (u32 i = 0; i < count; ++i) {
            if (times[i] == NO_TIME) {
                for (u64 k = 0; k < places_.results.size(); ++k) result(cells, k).numbers[i] = NO_NUMBER;
                continue;
            }
            const std::array<i64, PARTS> told = tell(times[i]);
            for (u64 k = 0; k < parts_.size(); ++k) {
                const i64 value = told[parts_[k]];
                if (!cyclic_) {
                    result(cells, k).numbers[i] = static_cast<f64>(value);
                    continue;
                }
                const Point &point = turns_[k][static_cast<u64>(value - FIRST[parts_[k]])];
                result(cells, 2 * k).numbers[i] = point.sine;
                result(cells, 2 * k + 1).numbers[i] = point.cosine;
            }
        }
    }

  private:
    static constexpr u32 PARTS = 8;
    static constexpr const char *NAMES[PARTS] = {"year",   "month",  "day",     "hour",
                                                 "minute", "second", "weekday", "day_of_year"};
    static constexpr i64 FIRST[PARTS] = {0, 1, 1, 0, 0, 0, 0, 1}, COUNTS[PARTS] = {1, 12, 31, 24, 60, 60, 7, 366};
    struct Point {
        f64 sine, cosine;
    };

    static u32 part_of(const std::string &name) {
        for (u32 i = 0; i < PARTS; ++i)
            if (name == NAMES[i]) return i;
        throw std::invalid_argument("time: no part is named " + name);
    }

    static i64 floor_of(i64 value, i64 by) { return value / by - (value % by < 0); }

    std::array<i64, PARTS> tell(i64 ms) const {
        i64 seconds = floor_of(ms, 1000);
        if (!zone_.empty()) seconds += offset_s(seconds);
        const i64 days = floor_of(seconds, 86400), of_day = seconds - days * 86400;
        // Howard Hinnant: chrono-compatible low-level date algorithms; a year begins in March
        const i64 shifted = days + 719468, era = floor_of(shifted, 146097), of_era = shifted - era * 146097;
        const i64 year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
        const i64 from_march = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        const i64 month_from_march = (5 * from_march + 2) / 153;
        const i64 day = from_march - (153 * month_from_march + 2) / 5 + 1;
        const i64 month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
        const i64 year = year_of_era + era * 400 + (month <= 2);
        const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        const i64 day_of_year = month <= 2 ? from_march - 305 : from_march + 60 + leap;
        const i64 weekday = days + 3 - 7 * floor_of(days + 3, 7);
        return {year, month, day, of_day / 3600, of_day / 60 % 60, of_day % 60, weekday, day_of_year};
    }

    // Of moments (seconds since 1970), ascending, each followed by the offset that holds from it on; the first holds
    // before, too.
    i64 offset_s(i64 seconds) const {
        u64 low = 0, high = zone_.size() / 2;
        while (high - low > 1) {
            const u64 middle = (low + high) / 2;
            (zone_[2 * middle] <= seconds ? low : high) = middle;
        }
        return zone_[2 * low + 1];
    }

    // Sine and cosine of each part of a turn, by way of an eighth of it: exact where a side is 0 or 1.
    static std::vector<Point> turns(i64 count) {
        std::vector<Point> points;
        for (i64 part = 0; part < count; ++part) {
            const i64 octant = 8 * part / count, rest = 8 * part % count;
            const f64 of_octant = static_cast<f64>(octant & 1 ? count - rest : rest) / static_cast<f64>(count);
            const f64 angle = of_octant * 0.78539816339744830962;   // pi / 4
            f64 sine = angle * series(angle * angle, 1), cosine = series(angle * angle, 0);
            if (octant == 1 || octant == 2 || octant == 5 || octant == 6) std::swap(sine, cosine);
            points.push_back({octant >= 4 ? -sine : sine, octant >= 2 && octant <= 5 ? -cosine : cosine});
        }
        return points;
    }

    // Taylor's series up to the 20th power: 1 - square / ((1 + first) (2 + first)) * (1 - ...).
    static f64 series(f64 square, i64 first) {
        f64 value = 1;
        for (i64 power = 18 + first; power >= first; power -= 2)
            value = 1 - square * value / static_cast<f64>((power + 1) * (power + 2));
        return value;
    }

    const std::vector<i64> zone_;
    const bool cyclic_;
    std::vector<u32> parts_;
    std::vector<std::vector<Point>> turns_;
};

inline std::unique_ptr<Transform> time(CellPlaces places, const Options &options) {
    return std::make_unique<Time>(std::move(places), options);
}

}  // namespace st::transforms
