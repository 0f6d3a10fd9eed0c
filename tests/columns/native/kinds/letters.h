// A kind for tests: the bytes of a text, as many as there are, in a ragged uint8 block; their number in a fixed one.
#pragma once
#include "decode/row_writer.h"

namespace st::kinds {

class Letters final : public Kind {
  public:
    const char *expected() const override { return "text"; }
    void place(SlotPlaces &places) override {
        bytes_ = places.take_ragged(1);
        count_ = places.take(1);
    }
    void number(RowWriter &row, u32 c, f64 value) const override { row.wrong(c, shown_number(value)); }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        row.put_values(c, bytes_, utf8.data(), utf8.size());
        row.put(c, count_, static_cast<u8>(utf8.size()));
    }
    void stand_in(RowWriter &row, u32 c) const override {
        row.put_values<char>(c, bytes_, nullptr, 0);
        row.put(c, count_, u8{0});
    }
    bool takes_text() const override { return true; }

  private:
    Place bytes_, count_;
};

inline std::unique_ptr<Kind> letters(const std::string &, const Options &) { return std::make_unique<Letters>(); }

}  // namespace st::kinds
