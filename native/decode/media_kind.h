// Kinds whose cells are files of their own, as bytes or as those in base64: what Python decodes them to, in a block.
#pragma once
#include <functional>

#include "decode/base64.h"
#include "decode/media_memo.h"
#include "decode/row_writer.h"

namespace st {

struct MediaColumn {
    std::string expected;
    std::function<std::string(std::string_view)> problem;   // of a cell's bytes, with nothing decoded; "": none
    MediaForm form;
    std::shared_ptr<MediaDecoder> decoder;
};

// A cell's bytes, or those that its text stands for; false: it stands for none.
template <class Use>
bool each_medium(std::string_view base64, Use use) {
    thread_local std::string bytes;   // grows to the longest there was
    if (!from_base64(base64, bytes)) return false;
    use(std::string_view(bytes));
    return true;
}

// Of a column looked at ahead: its cells are decoded together.
class MediaAhead final : public Kind {
  public:
    explicit MediaAhead(std::shared_ptr<const MediaColumn> column) : column_(std::move(column)) {}

    const char *expected() const override { return column_->expected.c_str(); }
    void place(SlotPlaces &) override {}
    void number(RowWriter &, u32, f64) const override {}
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        each_medium(utf8, [&](std::string_view raw) { bytes(row, c, raw); });
    }
    void bytes(RowWriter &, u32, std::string_view raw) const override {
        if (column_->problem(raw).empty()) MediaMemo::own().want(*column_->decoder, column_->form, raw);
    }
    void stand_in(RowWriter &, u32) const override {}
    bool takes_text() const override { return true; }
    bool takes_bytes() const override { return true; }

  private:
    const std::shared_ptr<const MediaColumn> column_;
};

class MediaKind final : public Kind {
  public:
    // Of the column's options: `form`, the decoder's name for what it makes, `bytes` of a row, `decoder`, and where
    // there are any `stand_in`, the bytes for a missing cell.
    MediaKind(const std::string &column, const Options &options, std::string expected,
              std::function<std::string(std::string_view)> problem)
        : column_(std::make_shared<MediaColumn>(MediaColumn{
              std::move(expected), std::move(problem),
              {options.get<std::string>("form"), static_cast<u64>(options.get<i64>("bytes"))},
              options.get<std::shared_ptr<MediaDecoder>>("decoder")})),
          stand_in_(column_->form.bytes) {
        if (stand_in_.empty()) throw std::invalid_argument(column + ": its cells become at least a byte");
        const std::vector<i64> given = options.get<std::vector<i64>>("stand_in");
        if (!given.empty() && given.size() != stand_in_.size())
            throw std::invalid_argument(column + ": what stands in for a cell is of another size");
        std::copy(given.begin(), given.end(), stand_in_.begin());
    }

    const char *expected() const override { return column_->expected.c_str(); }
    void place(SlotPlaces &places) override { place_ = places.take(static_cast<u32>(column_->form.bytes)); }

    void number(RowWriter &row, u32 c, f64 value) const override { row.wrong(c, shown_number(value)); }
    void boolean(RowWriter &row, u32 c, bool value) const override { row.wrong(c, value ? "true" : "false"); }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        if (!each_medium(utf8, [&](std::string_view raw) { bytes(row, c, raw); }))
            row.wrong(c, "text that is no base64: " + quoted(utf8));
    }
    void bytes(RowWriter &row, u32 c, std::string_view raw) const override {
        if (const std::string problem = column_->problem(raw); !problem.empty()) return row.wrong(c, problem);
        const u8 *made = MediaMemo::own().row(*column_->decoder, column_->form, raw);
        if (!made) return row.wrong(c, "one that cannot be decoded");
        row.put_bytes(c, place_, made, stand_in_.size());
    }
    void stand_in(RowWriter &row, u32 c) const override {
        row.put_bytes(c, place_, stand_in_.data(), stand_in_.size());
    }

    std::shared_ptr<Kind> ahead() const override { return std::make_shared<MediaAhead>(column_); }
    bool takes_text() const override { return true; }
    bool takes_bytes() const override { return true; }

  private:
    const std::shared_ptr<const MediaColumn> column_;
    std::vector<u8> stand_in_;
    Place place_;
};

}  // namespace st
