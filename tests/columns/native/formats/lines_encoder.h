// The other half of the format for tests.
#pragma once
#include "decode/record_encoder.h"

namespace st::formats {

class LinesEncoder final : public RecordEncoder {
  public:
    explicit LinesEncoder(const Options &options) : separator_(options.get<std::string>("separator", ",")) {}

    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        out.clear();
        Cells to{out};
        for (u64 i = 0; i < rows.count; ++i) {
            for (u32 c = 0; c < table.columns.size(); ++c) {
                if (c) out += separator_;
                table.read(c, rows[i], to);
            }
            out += '\n';
        }
    }

  private:
    struct Cells {
        std::string &out;
        void missing() {}
        void boolean(bool value) { out += value ? "1" : "0"; }
        void integer(u64 magnitude, bool negative) { out += (negative ? "-" : "") + std::to_string(magnitude); }
        void long_integer(f64, std::string_view digits) { out += digits; }
        void number(f64 value) { out += shown_number(value); }
        void text(std::string_view text) { out += text; }
    };

    std::string separator_;
};

inline std::unique_ptr<RecordEncoder> lines_encoder(const Options &options) {
    return std::make_unique<LinesEncoder>(options);
}

}  // namespace st::formats
