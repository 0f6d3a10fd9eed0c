// Parts of a time by a zone's clock: year to second, weekday (0: Monday), day of the year; or points on a circle.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

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
        i64 days[BLOCK_ROWS], parts[BLOCK_ROWS];
        i32 of_day[BLOCK_ROWS];   // seconds
        Span offset;
        for (u32 i = 0; i < count; ++i) {
            i64 seconds = floor_of(times[i], 1000);
            if (!zone_.empty() && times[i] != NO_TIME) {
                if (seconds < offset.from || seconds >= offset.to) offset = offset_at(seconds);
                seconds += offset.seconds;
            }
            days[i] = floor_of(seconds, 86400);
            of_day[i] = static_cast<i32>(seconds - days[i] * 86400);
        }
        for (u64 k = 0; k < parts_.size(); ++k) {
            tell(parts_[k], days, of_day, count, parts);
            if (cyclic_) put_points(cells, k, times, parts, count);
            else put_parts(cells, k, times, parts, count);
        }
    }

  private:
    enum class Part : u8 { year, month, day, hour, minute, second, weekday, day_of_year };
    static constexpr u32 PARTS = 8;
    static constexpr const char *NAMES[PARTS] = {"year",   "month",  "day",     "hour",
                                                 "minute", "second", "weekday", "day_of_year"};
    static constexpr i64 FIRST[PARTS] = {0, 1, 1, 0, 0, 0, 0, 1}, COUNTS[PARTS] = {1, 12, 31, 24, 60, 60, 7, 366};
    struct Point {
        f64 sine, cosine;
    };
    struct Date {
        i64 year, month, day, day_of_year;
    };
    struct Span {   // of time, in which a clock differs by so many seconds
        i64 from = 0, to = 0, seconds = 0;
    };

    static u32 part_of(const std::string &name) {
        for (u32 i = 0; i < PARTS; ++i)
            if (name == NAMES[i]) return i;
        throw std::invalid_argument("time: no part is named " + name);
    }

    static i64 floor_of(i64 value, i64 by) { return value / by - (value % by < 0); }

    void put_parts(Cells &cells, u64 k, const i64 *times, const i64 *parts, u32 count) const {
        f64 *to = result(cells, k).numbers.data();
        for (u32 i = 0; i < count; ++i) to[i] = times[i] == NO_TIME ? NO_NUMBER : static_cast<f64>(parts[i]);
    }

    void put_points(Cells &cells, u64 k, const i64 *times, const i64 *parts, u32 count) const {
        f64 *sines = result(cells, 2 * k).numbers.data(), *cosines = result(cells, 2 * k + 1).numbers.data();
        const Point *const points = turns_[k].data(), none{NO_NUMBER, NO_NUMBER};
        for (u32 i = 0; i < count; ++i) {
            const Point &point = times[i] == NO_TIME ? none : points[parts[i] - FIRST[parts_[k]]];
            sines[i] = point.sine, cosines[i] = point.cosine;
        }
    }

    // One part of each time: of days since 1970 and seconds of a day.
    static void tell(u32 part, const i64 *days, const i32 *of_day, u32 count, i64 *to) {
        const auto each = [=](auto value) {
            for (u32 i = 0; i < count; ++i) to[i] = value(i);
        };
        switch (static_cast<Part>(part)) {
            case Part::hour: return each([=](u32 i) { return of_day[i] / 3600; });
            case Part::minute: return each([=](u32 i) { return of_day[i] / 60 % 60; });
            case Part::second: return each([=](u32 i) { return of_day[i] % 60; });
            case Part::weekday: return each([=](u32 i) { return days[i] + 3 - 7 * floor_of(days[i] + 3, 7); });
            default: break;
        }
        i64 known = days[0];
        Date date = date_of(known);   // most times of a block are of one day
        each([&](u32 i) {
            if (days[i] != known) date = date_of(known = days[i]);
            switch (static_cast<Part>(part)) {
                case Part::year: return date.year;
                case Part::month: return date.month;
                case Part::day: return date.day;
                default: return date.day_of_year;
            }
        });
    }

    static Date date_of(i64 days) {
        // Howard Hinnant: chrono-compatible low-level date algorithms; a year begins in March
        const i64 shifted = days + 719468, era = floor_of(shifted, 146097), of_era = shifted - era * 146097;
        const i64 year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
        const i64 from_march = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        const i64 month_from_march = (5 * from_march + 2) / 153;
        const i64 day = from_march - (153 * month_from_march + 2) / 5 + 1;
        const i64 month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
        const i64 year = year_of_era + era * 400 + (month <= 2);
        const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        return {year, month, day, month <= 2 ? from_march - 305 : from_march + 60 + leap};
    }

    // Of moments (seconds since 1970), ascending, each followed by the offset that holds from it on; the first holds
    // before, too.
    Span offset_at(i64 seconds) const {
        u64 low = 0, high = zone_.size() / 2;
        while (high - low > 1) {
            const u64 middle = (low + high) / 2;
            (zone_[2 * middle] <= seconds ? low : high) = middle;
        }
        constexpr i64 EVER = std::numeric_limits<i64>::max();
        const u64 next = 2 * low + 2;
        return {low ? zone_[2 * low] : -EVER, next < zone_.size() ? zone_[next] : EVER, zone_[2 * low + 1]};
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
