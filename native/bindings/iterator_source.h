// Records of one partition that a Python iterator gives, (offset, value) in their order, as they are asked for.
#pragma once
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "source/source.h"

namespace st {

class IteratorSource final : public Source {
  public:
    explicit IteratorSource(nb::iterator records) : records_(std::move(records)) {}
    ~IteratorSource() override {
        WithGil held;
        held_.clear();
        records_.reset();
    }

    // The iterator begins there.
    void start(const std::vector<StartPosition> &positions) override { partition_ = positions.front().partition; }
    std::size_t take(RecordView *out, std::size_t capacity, i64) override {
        WithGil held;
        std::size_t count = 0;
        for (; count < std::min(capacity, AT_ONCE); ++count) {
            const nb::object next = nb::steal(PyIter_Next(records_.ptr()));
            if (PyErr_Occurred()) throw nb::python_error();
            if (ended_ = !next.is_valid(); ended_) break;
            const nb::bytes value = nb::cast<nb::bytes>(next[1]);
            out[count] = {.value = static_cast<const u8 *>(value.data()),
                          .size = value.size(),
                          .partition = partition_,
                          .offset = nb::cast<i64>(next[0])};
            held_.push_back(value);
        }
        return count;
    }
    void release() override {
        if (held_.empty()) return;
        WithGil held;
        held_.clear();
    }
    bool ended() const override { return ended_; }

  private:
    static constexpr std::size_t AT_ONCE = 64;   // of file rows a record holds many

    nb::object records_;
    std::vector<nb::bytes> held_;
    i32 partition_ = 0;
    bool ended_ = false;
};

}  // namespace st
