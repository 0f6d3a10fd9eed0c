// An expression of columns, as streamtrain/columns/expression.py compiles it: operations over whole blocks of rows,
// each of which may read those before it. Missing is neither true nor false: `and` and `or` may do without it.
#pragma once
#include <algorithm>

#include "decode/plain_math.h"
#include "decode/same_text.h"
#include "decode/transform.h"

namespace st::transforms {

class Expr final : public Transform {
  public:
    Expr(CellPlaces places, const Options &options)
        : Transform(std::move(places)), numbers_(options.get<std::vector<f64>>("numbers")),
          texts_(options.get<std::vector<std::string>>("texts")) {
        const auto names = options.get<std::vector<std::string>>("codes");
        const auto first = options.get<std::vector<i64>>("first"), second = options.get<std::vector<i64>>("second");
        if (names.empty() || names.size() > MOST || first.size() != names.size() || second.size() != names.size())
            throw std::invalid_argument("expr: expected as many operands as operations");
        for (u64 i = 0; i < names.size(); ++i)
            ops_.push_back(checked({code_of(names[i]), static_cast<u32>(first[i]), static_cast<u32>(second[i])}));
    }

    void run(Cells &cells, u32 count) const override {
        if (cells.scratch.size() < ops_.size() * BLOCK_ROWS) cells.scratch.resize(ops_.size() * BLOCK_ROWS);
        const f64 *at[MOST];
        f64 *to = cells.scratch.data(), *const y = result(cells).numbers.data();
        const u64 last = ops_.size() - 1;
        for (u64 i = 0; i <= last; ++i, to += count) {
            if (i == last) to = y;
            at[i] = to;
            if (ops_[i].code == Code::number) at[i] = source(cells, ops_[i].a).numbers.data();
            else one(ops_[i], cells, at, to, count);
        }
        if (at[last] != y) std::copy_n(at[last], count, y);   // of a column as it is
    }

  private:
    static constexpr u64 MOST = 256;
    enum class Code : u8 {
        number, constant, given, text_is, same_text, negate, add, subtract, multiply, divide, less, less_equal, equal,
        both, either, opposite, absolute, least, most, root, floor, log, exp, otherwise
    };
    struct Op {
        Code code;
        u32 a, b;   // operations before it; of the first five, sources, constants and texts
    };

    static Code code_of(const std::string &name) {
        constexpr const char *NAMES[] = {"number", "constant", "given", "text_is", "same_text", "negate", "add",
                                         "subtract", "multiply", "divide", "less", "less_equal", "equal", "both",
                                         "either", "opposite", "absolute", "least", "most", "root", "floor", "log",
                                         "exp", "otherwise"};
        const auto is_it = [&](const char *each) { return name == each; };
        const auto found = std::find_if(std::begin(NAMES), std::end(NAMES), is_it);
        if (found == std::end(NAMES)) throw std::invalid_argument("expr: no operation is named " + name);
        return static_cast<Code>(found - std::begin(NAMES));
    }

    Op checked(Op op) const {
        const u64 sources = places_.sources.size();
        bool good = op.a < ops_.size() && op.b < ops_.size();
        if (op.code == Code::number || op.code == Code::given) good = op.a < sources;
        if (op.code == Code::constant) good = op.a < numbers_.size();
        if (op.code == Code::text_is) good = op.a < sources && op.b < texts_.size();
        if (op.code == Code::same_text) good = op.a < sources && op.b < sources;
        if (!good) throw std::invalid_argument("expr: an operand that is not there");
        return op;
    }

    void one(const Op &op, const Cells &cells, const f64 *const *at, f64 *to, u32 count) const {
        const f64 *a = nullptr, *b = nullptr;
        if (op.code > Code::same_text) a = at[op.a], b = at[op.b];
        const auto each = [&](auto value) {
            if (count == 1) [[likely]] {
                to[0] = value(0u);
                return;
            }
            for (u32 i = 0; i < count; ++i) to[i] = value(i);
        };
        const auto number = [&](auto value) { each([&](u32 i) { return number_or_none(value(i)); }); };
        // of what is missing on either side nothing is known
        const auto truth = [&](auto holds) {
            each([&](u32 i) { return (a[i] == a[i]) & (b[i] == b[i]) ? static_cast<f64>(holds(i)) : NO_NUMBER; });
        };
        switch (op.code) {
            case Code::number: return;
            case Code::constant: return each([&](u32) { return numbers_[op.a]; });
            case Code::given: {
                const u8 *given = source(cells, op.a).given.data();
                return each([=](u32 i) { return static_cast<f64>(given[i]); });
            }
            case Code::text_is: {
                const std::string_view *texts = source(cells, op.a).texts.data(), text = texts_[op.b];
                return each([&, texts](u32 i) {
                    return is_none(texts[i]) ? NO_NUMBER : static_cast<f64>(same_text(texts[i], text));
                });
            }
            case Code::same_text: {
                const std::string_view *x = source(cells, op.a).texts.data(), *y = source(cells, op.b).texts.data();
                return each([=](u32 i) {
                    return is_none(x[i]) || is_none(y[i]) ? NO_NUMBER : static_cast<f64>(same_text(x[i], y[i]));
                });
            }
            case Code::negate: return each([=](u32 i) { return -a[i]; });
            case Code::add: return number([=](u32 i) { return a[i] + b[i]; });
            case Code::subtract: return number([=](u32 i) { return a[i] - b[i]; });
            case Code::multiply: return number([=](u32 i) { return a[i] * b[i]; });
            case Code::divide: return number([=](u32 i) { return a[i] / b[i]; });
            case Code::less: return truth([=](u32 i) { return a[i] < b[i]; });
            case Code::less_equal: return truth([=](u32 i) { return a[i] <= b[i]; });
            case Code::equal: return truth([=](u32 i) { return a[i] == b[i]; });
            case Code::both:
                return each([=](u32 i) { return (a[i] == 0) | (b[i] == 0) ? 0 : a[i] + b[i] == 2 ? 1 : NO_NUMBER; });
            case Code::either:
                return each([=](u32 i) { return (a[i] == 1) | (b[i] == 1) ? 1 : a[i] + b[i] == 0 ? 0 : NO_NUMBER; });
            case Code::opposite: return each([=](u32 i) { return 1 - a[i]; });
            case Code::absolute: return each([=](u32 i) { return std::abs(a[i]); });
            case Code::least: return each([=](u32 i) { return (a[i] != a[i]) | (a[i] < b[i]) ? a[i] : b[i]; });
            case Code::most: return each([=](u32 i) { return (a[i] != a[i]) | (a[i] > b[i]) ? a[i] : b[i]; });
            case Code::root: return number([=](u32 i) { return std::sqrt(a[i]); });
            case Code::floor: return each([=](u32 i) { return std::floor(a[i]); });
            case Code::log: return number([=](u32 i) { return plain_log(a[i]); });
            case Code::exp: return number([=](u32 i) { return plain_exp(a[i]); });
            case Code::otherwise: return each([=](u32 i) { return a[i] == a[i] ? a[i] : b[i]; });
        }
    }

    std::vector<Op> ops_;
    std::vector<f64> numbers_;
    std::vector<std::string> texts_;
};

inline std::unique_ptr<Transform> expr(CellPlaces places, const Options &options) {
    return std::make_unique<Expr>(std::move(places), options);
}

}  // namespace st::transforms
