// Pictures and clips of sound under the sanitizers: heads of what was cut and mutated, base64, sizes, and the memory of
// what was decoded.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "decode/base64.h"
#include "decode/fit_picture.h"
#include "decode/media_memo.h"
#include "decode/pictures.h"
#include "decode/sounds.h"

using namespace st;

namespace {

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition), std::abort(); \
    } while (0)

// Gives the first byte of each; what begins with an odd one cannot be decoded.
class FirstByte final : public MediaDecoder {
  public:
    void decode(const MediaForm &form, const std::string_view *encoded, u64 count, u8 *rows, u8 *good) override {
        for (u64 i = 0; i < count; ++i, rows += form.bytes) {
            const u8 first = encoded[i].empty() ? 1 : static_cast<u8>(encoded[i][0]);
            std::fill_n(rows, form.bytes, first);
            good[i] = first % 2 == 0;
        }
    }
};

bool is_flac(std::string_view bytes) { return bytes.starts_with("fLaC"); }
bool is_sound(std::string_view bytes) { return bytes.starts_with("RIFF") || is_flac(bytes); }

std::string problem_of(const std::string &bytes, u64 most_bytes) {
    const auto exact = std::make_unique<char[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), exact.get());
    const std::string_view raw(exact.get(), bytes.size());
    return is_sound(bytes) ? sound_problem(raw, {8000, most_bytes}) : picture_problem(raw, most_bytes);
}

void check_memo(std::mt19937 &chance) {
    FirstByte decoder;
    MediaMemo &memo = MediaMemo::own();
    for (const MediaForm form : {MediaForm{"a", 18}, MediaForm{"b", 18}, MediaForm{"c", 480000}}) {
        memo.clear();
        std::vector<std::string> wanted;
        for (u32 i = 0; i < 200; ++i) wanted.emplace_back(chance() % 20, static_cast<char>(chance() % 256));
        for (u64 i = 0; i < wanted.size(); i += 2) memo.want(decoder, form, wanted[i]);
        memo.run();
        for (const std::string &each : wanted) {
            const u8 *row = memo.row(decoder, form, each);
            const bool good = !each.empty() && static_cast<u8>(each[0]) % 2 == 0;
            MUST(good == (row != nullptr));
            for (u64 i = 0; row && i < form.bytes; ++i) MUST(row[i] == static_cast<u8>(each[0]));
        }
    }
}

void check_sizes(std::mt19937 &chance) {
    const Area from{1 + chance() % 30, 1 + chance() % 30}, to{1 + chance() % 30, 1 + chance() % 30};
    const std::vector<u8> points(from.height * from.width * 3, static_cast<u8>(chance()));
    std::vector<u8> fitted(to.height * to.width * 3);
    fit_picture(points.data(), from, fitted.data(), to, 3);
    for (const u8 each : fitted) MUST(each == points[0]);
}

}  // namespace

int main(int count, char **arguments) {
    MUST(count >= 3);
    std::mt19937 chance(7);
    const int mutations = std::atoi(arguments[1]);
    for (int i = 2; i < count; ++i) {
        std::ifstream file(arguments[i], std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        MUST(problem_of(bytes, 1 << 20).empty() && !problem_of(bytes, 2).empty());
        const u64 told = is_flac(bytes) ? 42 : bytes.size();   // a FLAC's head: of its frames it says nothing
        for (u64 size = 0; size < told; ++size) MUST(!problem_of(bytes.substr(0, size), 1 << 20).empty());
        for (int n = 0; n < mutations; ++n) {
            std::string mutated = bytes;
            for (u32 k = 1 + chance() % 4; k; --k)
                mutated[chance() % mutated.size()] = chance() % 2 ? '\xff' : static_cast<char>(chance());
            problem_of(mutated.substr(0, 1 + chance() % mutated.size()), 1 << 20);
            problem_of(mutated, 1 << 20);
            std::string back, text = to_base64(mutated.substr(0, chance() % mutated.size()));
            MUST(from_base64(text, back) && to_base64(back) == text);
            if (!text.empty()) text[chance() % text.size()] = static_cast<char>(chance());
            from_base64(text, back);
        }
    }
    for (int n = 0; n < 100; ++n) check_sizes(chance);
    check_memo(chance);
    std::puts("all hold");
}
