// A picture, as the bytes of a JPEG or a PNG or as those in base64: its points in a block of bytes.
#pragma once
#include "decode/base64.h"
#include "decode/picture_memo.h"
#include "decode/row_writer.h"

namespace st::kinds {

struct PictureColumn {
    PictureForm form;
    u64 most_bytes;
    std::shared_ptr<PictureDecoder> decoder;
};

// A cell's bytes, or those that its text stands for; false: it stands for none.
template <class Use>
bool each_picture(std::string_view base64, Use use) {
    thread_local std::string bytes;   // grows to the longest there was
    if (!from_base64(base64, bytes)) return false;
    use(std::string_view(bytes));
    return true;
}

// Of a column looked at ahead: its pictures are decoded together.
class ImageAhead final : public Kind {
  public:
    explicit ImageAhead(std::shared_ptr<const PictureColumn> column) : column_(std::move(column)) {}

    const char *expected() const override { return "JPEG or PNG"; }
    void place(SlotPlaces &) override {}
    void number(RowWriter &, u32, f64) const override {}
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        each_picture(utf8, [&](std::string_view raw) { bytes(row, c, raw); });
    }
    void bytes(RowWriter &, u32, std::string_view raw) const override {
        if (picture_problem(raw, column_->most_bytes).empty())
            PictureMemo::own().want(*column_->decoder, column_->form, raw);
    }
    void stand_in(RowWriter &, u32) const override {}
    bool takes_text() const override { return true; }
    bool takes_bytes() const override { return true; }

  private:
    const std::shared_ptr<const PictureColumn> column_;
};

class Image final : public Kind {
  public:
    Image(const std::string &column, const Options &options)
        : column_(std::make_shared<PictureColumn>(PictureColumn{
              {static_cast<u64>(options.get<i64>("height")), static_cast<u64>(options.get<i64>("width")),
               static_cast<u64>(options.get<i64>("channels"))},
              static_cast<u64>(options.get<i64>("most_bytes")),
              options.get<std::shared_ptr<PictureDecoder>>("decoder")})),
          stand_in_(column_->form.bytes(), static_cast<u8>(options.number("missing_value"))) {
        if (stand_in_.empty()) throw std::invalid_argument(column + ": a picture has points");
    }

    const char *expected() const override { return "JPEG or PNG"; }
    void place(SlotPlaces &places) override { place_ = places.take(static_cast<u32>(column_->form.bytes())); }

    void number(RowWriter &row, u32 c, f64 value) const override { row.wrong(c, shown_number(value)); }
    void boolean(RowWriter &row, u32 c, bool value) const override { row.wrong(c, value ? "true" : "false"); }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        if (!each_picture(utf8, [&](std::string_view raw) { bytes(row, c, raw); }))
            row.wrong(c, "text that is no base64: " + quoted(utf8));
    }
    void bytes(RowWriter &row, u32 c, std::string_view raw) const override {
        if (const std::string problem = picture_problem(raw, column_->most_bytes); !problem.empty())
            return row.wrong(c, problem);
        const u8 *pixels = PictureMemo::own().pixels(*column_->decoder, column_->form, raw);
        if (!pixels) return row.wrong(c, "one that cannot be decoded");
        row.put_bytes(c, place_, pixels, stand_in_.size());
    }
    void stand_in(RowWriter &row, u32 c) const override {
        row.put_bytes(c, place_, stand_in_.data(), stand_in_.size());
    }

    std::shared_ptr<Kind> ahead() const override { return std::make_shared<ImageAhead>(column_); }
    bool takes_text() const override { return true; }
    bool takes_bytes() const override { return true; }

  private:
    const std::shared_ptr<const PictureColumn> column_;
    const std::vector<u8> stand_in_;
    Place place_;
};

inline std::unique_ptr<Kind> image(const std::string &column, const Options &options) {
    return std::make_unique<Image>(column, options);
}

}  // namespace st::kinds
