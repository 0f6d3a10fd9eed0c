// A number as people write it: with a currency, a percent sign, separated thousands, in parentheses where it is below
// zero. streamtrain/columns/kinds/amounts.py says the same in one pattern.
#pragma once
#include "decode/decimal_text.h"

namespace st {

// Reads one text from its left; every take...() passes what it finds.
class AmountText {
  public:
    // `point`: before the fraction, '.' or ','; the other one may separate thousands.
    AmountText(std::string_view text, char point) : rest_(text), point_(point) {}

    // False for what is no amount. Of "12 %" the value is 12.
    bool parse(f64 &value) {
        take_spaces();
        const bool in_parentheses = take("(");
        if (in_parentheses) take_spaces();
        bool negative = in_parentheses, has_sign = in_parentheses;
        while (take_sign(negative, has_sign) || take_currency()) take_spaces();
        if (!take_number()) return false;
        take_spaces();
        if (take("%") || take_currency()) take_spaces();
        if (in_parentheses) {
            if (!take(")")) return false;
            take_spaces();
        }
        if (!rest_.empty() || currencies_ > MOST_CURRENCIES) return false;
        return parse_decimal((negative ? "-" : "") + plain_, value);
    }

  private:
    static constexpr u32 MOST_CURRENCIES = 2;   // "$12 USD"

    bool take(std::string_view what) {
        if (!rest_.starts_with(what)) return false;
        rest_.remove_prefix(what.size());
        return true;
    }
    // The usual space, and those that do not break a line.
    bool take_space() { return take(" ") || take("\xc2\xa0") || take("\xe2\x80\xaf"); }
    void take_spaces() {
        while (take_space()) continue;
    }
    bool take_sign(bool &negative, bool &has_sign) {
        if (has_sign || rest_.empty() || (rest_.front() != '-' && rest_.front() != '+')) return false;
        negative = rest_.front() == '-';
        rest_.remove_prefix(1);
        return has_sign = true;
    }

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

    // A sign of one, "US$", or a code of three capitals.
    bool take_currency() {
        const u64 bytes = currency_bytes();
        rest_.remove_prefix(bytes);
        currencies_ += bytes != 0;
        return bytes != 0;
    }
    u64 currency_bytes() const {
        u64 capitals = 0;
        while (capitals < 3 && capitals < rest_.size() && is_capital(rest_[capitals])) ++capitals;
        if (capitals == 3) return 3;
        if (capitals < rest_.size() && rest_[capitals] == '$') return capitals + 1;
        if (capitals) return 0;
        const auto at = [this](u64 i) { return i < rest_.size() ? static_cast<u8>(rest_[i]) : u8{0}; };
        if (at(0) == 0xc2 && at(1) >= 0xa2 && at(1) <= 0xa5) return 2;                      // cent, pound, yen
        if (at(0) == 0xe0 && at(1) == 0xb8 && at(2) == 0xbf) return 3;                      // baht
        if (at(0) == 0xe2 && at(1) == 0x82 && at(2) >= 0xa0 && at(2) <= 0xbf) return 3;     // U+20A0 to U+20BF
        return 0;
    }

    u64 take_digits() {
        u64 count = 0;
        while (count < rest_.size() && is_digit(rest_[count])) ++count;
        plain_.append(rest_.substr(0, count));
        rest_.remove_prefix(count);
        return count;
    }

    // What separates thousands, with a digit behind it; empty where nothing does.
    std::string_view separator() const {
        for (const std::string_view each : {std::string_view(point_ == '.' ? "," : "."), std::string_view("'"),
                                            std::string_view(" "), std::string_view("\xc2\xa0"),
                                            std::string_view("\xe2\x80\xaf")})
            if (rest_.starts_with(each) && each.size() < rest_.size() && is_digit(rest_[each.size()])) return each;
        return {};
    }

    // Groups of three digits, or in India of two before the last: "1,234,567", "12,34,567". None begins with 0.
    bool take_groups(u64 first) {
        const std::string_view between = separator();
        if (between.empty()) return true;
        if (first > 3 || plain_.front() == '0') return false;
        u64 last = 0;
        while (separator() == between) {
            if (last != 0 && last != 2 && last != 3) return false;
            rest_.remove_prefix(between.size());
            last = take_digits();
        }
        return last == 3 && separator().empty();
    }

    bool take_number() {
        plain_.clear();
        const u64 whole = take_digits();
        if (whole && !take_groups(whole)) return false;
        u64 fraction = 0;
        if (!rest_.empty() && rest_.front() == point_) {
            rest_.remove_prefix(1);
            plain_ += '.';
            fraction = take_digits();
        }
        return (whole || fraction) && take_exponent();
    }

    bool take_exponent() {
        if (rest_.size() < 2 || (rest_[0] | 0x20) != 'e') return true;
        const u64 digits = rest_[1] == '+' || rest_[1] == '-' ? 2 : 1;
        if (digits >= rest_.size() || !is_digit(rest_[digits])) return true;   // "12 EUR"
        plain_.append(rest_.substr(0, digits));
        rest_.remove_prefix(digits);
        return take_digits() != 0;
    }

    std::string_view rest_;
    const char point_;
    std::string plain_;     // the number as parse_decimal() reads it
    u32 currencies_ = 0;
};

inline bool parse_amount(std::string_view text, char point, f64 &value) { return AmountText(text, point).parse(value); }

}  // namespace st
