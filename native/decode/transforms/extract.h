// The part of a text that a pattern finds. The pattern comes as a program (columns/patterns.py), whose threads go over
// the text side by side, so that time is linear in it whatever the pattern is (Pike's matcher: R. Cox, Regular
// Expression Matching: the Virtual Machine Approach, 2009).
#pragma once
#include "decode/transform.h"
#include "decode/utf8.h"

namespace st::transforms {

class Extract final : public Transform {
  public:
    // What a step does.
    enum Code : i64 { letters, split, jump, begin, end, open, close, match };

    Extract(CellPlaces places, const Options &options)
        : Transform(std::move(places)), code_(options.get<std::vector<i64>>("program")),
          ranges_(options.get<std::vector<i64>>("ranges")) {
        if (code_.empty() || code_.size() % STEP) throw std::invalid_argument("extract: expected a program");
    }

    void run(Cells &cells, u32 count) const override {
        const std::string_view *from = source(cells).texts.data();
        std::string_view *to = result(cells).texts.data();
        thread_local Threads threads;
        for (u32 i = 0; i < count; ++i) {
            to[i] = is_none(from[i]) ? from[i] : find(from[i], threads);
            if (to[i].empty()) to[i] = {};
        }
    }

  private:
    static constexpr u64 STEP = 3;   // of each: what it does, and two numbers of it

    struct Thread {
        u64 at;                       // in the program
        const char *opened, *closed;  // the part, as far as it is known
    };
    // Of the letter at hand and of the next, the first ones preferred; and where each step was reached last.
    struct Threads {
        std::vector<Thread> now, next, open;
        std::vector<u64> reached;
        u64 place = 0;
    };

    std::string_view find(std::string_view text, Threads &threads) const {
        const char *const first = text.data(), *const last = first + text.size(), *p = first;
        std::string_view found;
        bool is_found = false;
        threads.reached.assign(code_.size() / STEP, 0);
        threads.place = 0;
        threads.now.clear();
        for (;;) {
            ++threads.place;
            const char *const here = p;
            for (Thread &each : threads.now) threads.reached[each.at] = threads.place;
            if (!is_found) follow({0, nullptr, nullptr}, here, first, last, threads, threads.now);
            if (threads.now.empty()) break;
            const bool more = p < last;
            const i64 letter = more ? i64{take_point(p)} : -1;
            ++threads.place;
            threads.next.clear();
            for (const Thread &each : threads.now) {
                const i64 *step = &code_[STEP * each.at];
                if (step[0] == match) {
                    found = each.opened && each.closed ? std::string_view(each.opened, each.closed - each.opened)
                                                       : std::string_view();
                    is_found = true;
                    break;   // those behind it are not preferred
                }
                if (more && takes(step, letter))
                    follow({each.at + 1, each.opened, each.closed}, p, first, last, threads, threads.next);
            }
            std::swap(threads.now, threads.next);
            if (!more) break;
        }
        return found;
    }

    bool takes(const i64 *step, i64 letter) const {
        for (i64 i = step[1]; i < step[1] + step[2]; ++i)
            if (letter >= ranges_[2 * i] && letter <= ranges_[2 * i + 1]) return true;
        return false;
    }

    // Adds the thread where it next looks at a letter, in the order in which its ways are preferred.
    void follow(Thread thread, const char *here, const char *first, const char *last, Threads &threads,
                std::vector<Thread> &to) const {
        threads.open.assign(1, thread);
        while (!threads.open.empty()) {
            Thread each = threads.open.back();
            threads.open.pop_back();
            if (threads.reached[each.at] == threads.place) continue;
            threads.reached[each.at] = threads.place;
            const i64 *step = &code_[STEP * each.at];
            const auto go = [&](u64 at) { threads.open.push_back({at, each.opened, each.closed}); };
            switch (step[0]) {
                case split: go(static_cast<u64>(step[2])), go(static_cast<u64>(step[1])); break;
                case jump: go(static_cast<u64>(step[1])); break;
                case begin: if (here == first) go(each.at + 1); break;
                case end: if (here == last) go(each.at + 1); break;
                case open: each.opened = here, go(each.at + 1); break;
                case close: each.closed = here, go(each.at + 1); break;
                default: to.push_back(each);
            }
        }
    }

    const std::vector<i64> code_;
    const std::vector<i64> ranges_;   // of code points, first and last
};

inline std::unique_ptr<Transform> extract(CellPlaces places, const Options &options) {
    return std::make_unique<Extract>(std::move(places), options);
}

}  // namespace st::transforms
