// Times written as text → milliseconds since 1970: ISO 8601, or a format of strptime's directives.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace st {

// What a text has told of a moment.
struct TimeFields {
    i64 year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, nanosecond = 0;
    i64 offset_s = 0;         // east of Greenwich
    bool has_offset = false;
    i64 day_of_year = 0;      // 0: not told
    int half = -1;            // of a day of twice 12 hours: 0 before noon, 1 after
};

// Days since 1970-01-01 of a day of the Gregorian calendar (Howard Hinnant: chrono-compatible low-level date
// algorithms).
inline i64 days_from_civil(i64 year, i64 month, i64 day) {
    year -= month <= 2;
    const i64 era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    const i64 of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

inline i64 days_in_month(i64 year, i64 month) {
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    constexpr i64 DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return DAYS[month - 1] + (leap && month == 2);
}

class TimeText {
  public:
    // `format`: "iso8601", or characters that stand for themselves and %Y %y %m %d %j %b %B %H %I %p %M %S %f %z %%.
    // `zone`: of texts that tell none, the local times (seconds since 1970) from which an offset holds, ascending, each
    // followed by that offset in seconds; empty: such texts are no time. Throws std::invalid_argument for a format with
    // another directive.
    TimeText(std::string format, std::vector<i64> zone) : format_(std::move(format)), zone_(std::move(zone)) {
        if (format_ == "iso8601") format_.clear();
        constexpr std::string_view DIRECTIVES = "YymdjbBHIpMSfz%";
        for (u64 at = format_.find('%'); at != format_.npos; at = format_.find('%', at + 2))
            if (at + 1 == format_.size() || DIRECTIVES.find(format_[at + 1]) == DIRECTIVES.npos)
                throw std::invalid_argument("parse: no directive " + format_.substr(at, 2));
    }

    // False for what is no time. Whole milliseconds, rounded down. 23:59:60 is the next second.
    bool parse(std::string_view text, i64 &ms) const {
        TimeFields fields;
        Reader reader{text.data(), text.data() + text.size()};
        const bool read = format_.empty() ? iso(reader, fields) : by_format(reader, fields);
        return read && reader.at == reader.end && moment(fields, ms);
    }

  private:
    struct Reader {
        const char *at, *end;

        bool has(char c) const { return at != end && *at == c; }
        bool take(char c) { return has(c) && ++at; }
        // From `least` to `most` digits.
        bool number(u32 least, u32 most, i64 &value) {
            const char *const begin = at;
            for (value = 0; at != end && at - begin < most && *at >= '0' && *at <= '9'; ++at)
                value = value * 10 + (*at - '0');
            return at - begin >= least;
        }
        // Of a second: digits beyond the ninth tell nothing.
        bool fraction(i64 &nanosecond) {
            const char *const begin = at;
            i64 unit = 100'000'000;
            for (nanosecond = 0; at != end && *at >= '0' && *at <= '9'; ++at, unit /= 10)
                nanosecond += unit * (*at - '0');
            return at != begin;
        }
        // Z, +01:00, +0100 or +01.
        bool offset(TimeFields &fields) {
            fields.has_offset = true;
            if (take('Z') || take('z')) return true;
            const bool west = has('-');
            if (!take('+') && !take('-')) return false;
            i64 hours, minutes = 0;
            if (!number(2, 2, hours)) return false;
            if (take(':') || (at != end && *at >= '0' && *at <= '9')) {
                if (!number(2, 2, minutes)) return false;
            }
            fields.offset_s = (west ? -1 : 1) * (hours * 3600 + minutes * 60);
            return hours < 24 && minutes < 60;
        }
        // One of names, three letters of it or all, whatever their case.
        template <u64 N>
        bool name(const std::array<std::string_view, N> &names, bool whole, i64 &index) {
            for (index = 0; index < static_cast<i64>(N); ++index) {
                const std::string_view wanted = whole ? names[index] : names[index].substr(0, 3);
                if (static_cast<u64>(end - at) < wanted.size()) continue;
                const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
                if (!std::equal(wanted.begin(), wanted.end(), at, same)) continue;
                at += wanted.size();
                return true;
            }
            return false;
        }
    };

    static bool iso(Reader &reader, TimeFields &to) {
        if (!reader.number(4, 4, to.year) || !reader.take('-') || !reader.number(2, 2, to.month) || !reader.take('-') ||
            !reader.number(2, 2, to.day))
            return false;
        if (reader.at == reader.end) return true;   // its first moment
        if (!reader.take('T') && !reader.take('t') && !reader.take(' ')) return false;
        if (!reader.number(2, 2, to.hour) || !reader.take(':') || !reader.number(2, 2, to.minute)) return false;
        if (reader.take(':')) {
            if (!reader.number(2, 2, to.second)) return false;
            if ((reader.take('.') || reader.take(',')) && !reader.fraction(to.nanosecond)) return false;
        }
        return reader.at == reader.end || reader.offset(to);
    }

    bool by_format(Reader &reader, TimeFields &to) const {
        for (u64 i = 0; i < format_.size(); ++i) {
            const bool directive = format_[i] == '%' && format_[++i] != '%';
            if (directive ? !read(format_[i], reader, to) : !reader.take(format_[i])) return false;
        }
        return true;
    }

    static bool read(char directive, Reader &reader, TimeFields &to) {
        static constexpr std::array<std::string_view, 12> MONTHS = {"january", "february", "march",     "april",
                                                                    "may",     "june",     "july",      "august",
                                                                    "september", "october", "november", "december"};
        static constexpr std::array<std::string_view, 2> HALVES = {"am", "pm"};
        i64 value;
        switch (directive) {
            case 'Y': return reader.number(4, 4, to.year);
            case 'y':
                if (!reader.number(2, 2, value)) return false;
                to.year = value + (value < 69 ? 2000 : 1900);   // as POSIX has it
                return true;
            case 'm': return reader.number(1, 2, to.month);
            case 'd': return reader.number(1, 2, to.day);
            case 'j': return reader.number(1, 3, to.day_of_year) && to.day_of_year > 0;
            case 'b':
            case 'B': return reader.name(MONTHS, directive == 'B', value) && (to.month = value + 1, true);
            case 'I':
                if (to.half < 0) to.half = 0;
                return reader.number(1, 2, to.hour) && to.hour >= 1 && to.hour <= 12;
            case 'H': return reader.number(1, 2, to.hour);
            case 'p': return reader.name(HALVES, true, value) && (to.half = static_cast<int>(value), true);
            case 'M': return reader.number(1, 2, to.minute);
            case 'S': return reader.number(1, 2, to.second);
            case 'f': return reader.fraction(to.nanosecond);
            case 'z': return reader.offset(to);
            default: return false;
        }
    }

    bool moment(TimeFields &of, i64 &ms) const {
        if (of.half >= 0) of.hour = of.hour % 12 + 12 * of.half;
        if (of.year < 1 || of.month < 1 || of.month > 12 || of.day < 1) return false;
        if (of.hour > 23 || of.minute > 59 || of.second > 60) return false;
        if (of.day > days_in_month(of.year, of.month) || of.day_of_year > 337 + days_in_month(of.year, 2)) return false;
        const i64 days = of.day_of_year ? days_from_civil(of.year, 1, of.day_of_year)
                                        : days_from_civil(of.year, of.month, of.day);
        const i64 local = ((days * 24 + of.hour) * 60 + of.minute) * 60 + of.second;
        if (!of.has_offset && !offset_of(local, of.offset_s)) return false;
        ms = (local - of.offset_s) * 1000 + of.nanosecond / 1'000'000;
        return true;
    }

    // That which held at the local time.
    bool offset_of(i64 local_s, i64 &offset_s) const {
        if (zone_.empty()) return false;
        u64 low = 0, high = zone_.size() / 2;   // the last entry at or before it, the first where none is
        while (high - low > 1) {
            const u64 middle = (low + high) / 2;
            (zone_[2 * middle] <= local_s ? low : high) = middle;
        }
        offset_s = zone_[2 * low + 1];
        return true;
    }

    std::string format_;   // empty: ISO 8601
    std::vector<i64> zone_;
};

}  // namespace st
