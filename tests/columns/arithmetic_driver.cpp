// Numbers' text against std::from_chars, bit by bit, and the transpositions against the plain one. Built by
// sanitized.py. Argument: how many of each.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "decode/number_glance.h"
#include "decode/transpose.h"

using namespace st;

namespace {

std::mt19937_64 chance(1);

void fail(const char *what, const char *text) {
    std::fprintf(stderr, "%s: %s\n", what, text);
    std::abort();
}

std::string made_number() {
    std::string text = chance() & 1 ? "-" : "";
    const u64 whole = chance() % 12, fraction = chance() % 22;
    if (whole < 2)
        text += '0';
    else
        text += static_cast<char>('1' + chance() % 9);
    for (u64 i = 1; i < whole; ++i) text += whole < 2 ? "" : std::string(1, static_cast<char>('0' + chance() % 10));
    if (fraction) text += '.';
    for (u64 i = 0; i < fraction; ++i) text += static_cast<char>('0' + chance() % 10);
    if (chance() % 8 == 0) text += (chance() & 1 ? "e-" : "E+") + std::to_string(chance() % 340);
    return text;
}

void numbers(long count) {
    for (long i = 0; i < count; ++i) {
        const std::string text = made_number();
        char padded[96] = {};
        std::memcpy(padded, text.data(), text.size());
        padded[text.size()] = chance() & 3 ? ',' : '}';
        f64 expected = 0, quick;
        const auto result = std::from_chars(padded, padded + text.size(), expected);
        if (text == "-0") expected = 0;   // a whole number has no negative zero
        NumberText number;
        if (parse_number(padded, number) != padded + text.size()) fail("parse_number stopped elsewhere", padded);
        if (result.ec == std::errc{} && std::bit_cast<u64>(number.value) != std::bit_cast<u64>(expected))
            fail("parse_number", padded);
        if (result.ec != std::errc{} && number.value != 0 && !std::isinf(number.value))
            fail("parse_number out of range", padded);
        if (const char *end = parse_at_a_glance(padded, quick))
            if (end != padded + text.size() || std::bit_cast<u64>(quick) != std::bit_cast<u64>(expected))
                fail("at a glance", padded);
    }
}

void quotients(long count) {
    for (long i = 0; i < count; ++i) {
        const u64 magnitude = (chance() >> chance() % 64) | 1;
        const u32 power = chance() % 20;
        const std::string text = std::to_string(magnitude) + "e-" + std::to_string(power);
        f64 expected = 0;
        std::from_chars(text.data(), text.data() + text.size(), expected);
        if (number_text::quotient(magnitude, power) != expected) fail("quotient", text.c_str());
    }
}

void not_numbers(long count) {
    static constexpr char LIKELY[] = "0123456789-+.eE,} \xff\xfa";
    for (long i = 0; i < count; ++i) {
        char padded[96] = {};
        for (u64 n = chance() % 40, j = 0; j < n; ++j)
            padded[j] = LIKELY[chance() % (chance() & 1 ? 10 : sizeof LIKELY - 1)];
        NumberText number;
        f64 quick;
        const bool starts = *padded == '-' || number_text::is_digit(*padded);
        const char *slow = starts ? parse_number(padded, number) : nullptr, *end = parse_at_a_glance(padded, quick);
        if (end && (end != slow || std::bit_cast<u64>(quick) != std::bit_cast<u64>(number.value)))
            fail("no number at a glance", padded);
    }
}

template <class T, class Transpose>
void transposes(const char *name, Transpose tried, long count) {
    for (long i = 0; i < count; ++i) {
        const u32 columns = 1 + chance() % 40, rows = chance() % 70;
        const u64 stride = columns + chance() % 3;
        std::vector<std::vector<f32>> from(columns, std::vector<f32>(rows));
        std::vector<const char *> pointers;
        for (std::vector<f32> &column : from) {
            for (f32 &value : column)
                value = chance() % 3000 ? static_cast<f32>(chance() % 999) : chance() & 1 ? NAN : -INFINITY;
            pointers.push_back(reinterpret_cast<const char *>(column.data()));
        }
        std::vector<T> got(rows * stride + 1, 7), expected(rows * stride + 1, 7);
        const bool good = transpose_plain(pointers.data(), columns, rows, expected.data(), stride);
        if (tried(pointers.data(), columns, rows, got.data(), stride) != good) fail(name, "finite or not");
        if (std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)) != 0) fail(name, "differs");
    }
}

template <class T>
void every_transpose(long count) {
    transposes<T>("transpose", transpose<T>, count);
#if defined(__x86_64__)
    const auto by = [](auto tiles) { return [tiles](auto... given) { return transpose_with(tiles, given...); }; };
    if (__builtin_cpu_supports("avx2")) transposes<T>("avx2", by(transpose_avx2<T>), count);
    if (__builtin_cpu_supports("avx512dq")) transposes<T>("avx512", by(transpose_avx512<T>), count);
#endif
}

}  // namespace

int main(int, char **arguments) {
    const long count = std::atol(arguments[1]);
    numbers(count);
    quotients(count);
    not_numbers(count);
    every_transpose<f32>(count / 100);
    every_transpose<f64>(count / 100);
    std::puts("all the same");
}
