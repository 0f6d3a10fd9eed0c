// Text, an integer or a boolean, hashed into buckets: an int32. Integers hash as their decimal text. A record may hold
// the hash in the text's place.
#pragma once
#include "decode/canonical_kind.h"
#include "decode/cell_kind.h"
#include "decode/column_span.h"
#include "decode/hash_kind.h"
#include "decode/list_kind.h"

namespace st::kinds {

class Category : public Kind {
  public:
    Category(const std::string &column, const Options &options)
        : hasher_{static_cast<u32>(options.get<i64>("hash_bits")), murmur3(column.data(), column.size(), 0)} {
        const i64 buckets = options.get<i64>("buckets");
        if (buckets < 1 || buckets > 0x7fffffff)
            throw std::invalid_argument(column + ": buckets must be between 1 and 2^31 - 1");
        if (hasher_.bits != 32 && hasher_.bits != 64)
            throw std::invalid_argument(column + ": a hash has 32 or 64 bits");
        buckets_ = static_cast<u32>(buckets);
        below_inverse_ = ~u64{0} / buckets_;
        inverse_ = below_inverse_ + 1;
        missing_ = bucket(options.get<std::string>("missing_value"));
    }

    const char *expected() const override { return "text, integer or boolean"; }
    void place(SlotPlaces &places) override { place_ = places.take(sizeof(i32)); }

    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!is_exact_whole(value)) return row.wrong(c, shown_number(value));
        integer(row, c, static_cast<u64>(std::abs(value)), value < 0);
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        char buffer[24];
        text(row, c, integer_text(magnitude, negative, buffer));
    }
    void long_integer(RowWriter &row, u32 c, f64, std::string_view digits) const override { text(row, c, digits); }
    void boolean(RowWriter &row, u32 c, bool value) const override { text(row, c, value ? "true" : "false"); }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override { row.put(c, place_, bucket(utf8)); }
    void stand_in(RowWriter &row, u32 c) const override { row.put(c, place_, missing_); }

    void hashed(RowWriter &row, u32 c, const TextHash &hash) const override {
        if (i32 found; bucket_of(row, c, hash, found)) row.put(c, place_, found);
    }
    const TextHasher *hasher() const override { return &hasher_; }

    i32 word(std::string_view utf8) const override { return bucket(utf8); }
    i32 stand_in_word() const override { return missing_; }
    void put_word(RowWriter &row, u32 c, std::string_view, i32 word) const override { row.put(c, place_, word); }

    bool takes_spans(CellType type) const override {
        return (type >= CellType::text && type <= CellType::hash64) ||   // also hashes
               (type >= CellType::i8 && type <= CellType::u64);
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        u8 *to = rows.at(place_);
        const u64 stride = rows.stride(place_);
        const auto put = [to, stride](u32 i, i32 bucket) { std::memcpy(to + i * stride, &bucket, 4); };
        if (span.type == CellType::words) return span.each_word(row, rows.count, put);
        if (is_hash(span.type)) {
            if (!has_own(span)) return false;
            if (span.type == CellType::hash64) put_hashes<u64>(span, row, rows);
            else put_hashes<u32>(span, row, rows);
            return true;
        }
        return span.each_number(row, rows.count, [&](u32 i, auto value) {
            char buffer[24];
            const char *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
            put(i, bucket({buffer, static_cast<u64>(end - buffer)}));
        });
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        u8 *to = rows.at(place_);
        for (u32 i = 0; i < rows.count; ++i, to += rows.stride(place_)) {
            const i32 found = bucket(texts[i]);
            std::memcpy(to, &found, 4);
        }
        return true;
    }
    // Hashes that this column's hasher has taken.
    void put_own(const u64 *hashes, RowBlock &rows) const {
        u8 *to = rows.at(place_);
        for (u32 i = 0; i < rows.count; ++i, to += rows.stride(place_)) {
            const i32 found = bucket_of(hashes[i]);
            std::memcpy(to, &found, 4);
        }
    }
    bool stand_in_span(RowBlock &rows) const override {
        rows.fill(place_, missing_);
        return true;
    }

    bool is_text() const override { return true; }

  protected:
    i32 missing() const { return missing_; }
    i32 bucket(std::string_view text) const { return bucket_of(hasher_(text)); }
    // Of a text that is there as its hash alone: false where that is another's.
    bool bucket_of(RowWriter &row, u32 c, const TextHash &hash, i32 &found) const {
        if (hash.by.bits != hasher_.bits) row.wrong(c, "a hash of " + std::to_string(hash.by.bits) + " bits");
        else if (hash.by.seed != hasher_.seed) row.wrong(c, "the hash of another column");
        else return found = bucket_of(hash.value), true;
        return false;
    }

    i32 bucket_of(u64 hash) const { return hasher_.bits == 64 ? long_remainder(hash) : remainder(hash); }

    // Of hashes: whether they are this column's.
    bool has_own(const ColumnSpan &span) const { return span.seed == hasher_.seed && 8 * span.width == hasher_.bits; }

  private:
    // Without a division (Lemire, Kaser, Kurz: Faster remainder by direct computation, 2019): exact up to 32 bits.
    i32 remainder(u64 hash) const {
        return static_cast<i32>(static_cast<unsigned __int128>(inverse_ * hash) * buckets_ >> 64);
    }
    // The same of 64 bits (Barrett, 1986): the quotient is at most one too small, which no branch could foresee.
    i32 long_remainder(u64 hash) const {
        const u64 quotient = static_cast<u64>(static_cast<unsigned __int128>(below_inverse_) * hash >> 64);
        const u64 rest = hash - quotient * buckets_;
        return static_cast<i32>(rest - (buckets_ & (0 - u64{rest >= buckets_})));
    }

    template <class T>
    void put_hashes(const ColumnSpan &span, u32 row, RowBlock &rows) const {
        u8 *to = rows.at(place_);
        const u64 stride = rows.stride(place_);
        const char *const from = span.data + sizeof(T) * u64{row};
        for (u32 i = 0; i < rows.count; ++i) {
            const T hash = load_little<T>(from + sizeof(T) * u64{i});
            const i32 found = sizeof(T) == 8 ? long_remainder(hash) : remainder(hash);
            std::memcpy(to + i * stride, &found, 4);
        }
    }

    Place place_;
    TextHasher hasher_;
    u32 buckets_ = 1;
    u64 inverse_ = 0, below_inverse_ = 0;   // 2^64 / buckets, rounded up (0 for 1 bucket), and below it
    i32 missing_ = 0;
};

// One whose texts transforms read too: they go into a column of cells as well.
template <class Base>
class ReadTexts final : public Base {
  public:
    ReadTexts(const std::string &column, const Options &options) : Base(column, options), cell_(options) {}

    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        const TextHasher &by = *Base::hasher();
        const TextHash hash{by(utf8), by};
        Base::hashed(row, c, hash);
        cell_.put(row, c, utf8, hash);
    }
    void hashed(RowWriter &row, u32 c, const TextHash &hash) const override { Kind::hashed(row, c, hash); }
    const TextHasher *hasher() const override { return nullptr; }
    i32 word(std::string_view) const override { return Kind::NO_WORD; }
    i32 stand_in_word() const override { return Kind::NO_WORD; }

    bool takes_spans(CellType type) const override { return !is_hash(type) && Base::takes_spans(type); }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return cell_.texts_of(span, row, rows) && put_texts(cell_.texts(rows), rows);
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        if (!cell_.put_texts(texts, rows)) return false;
        this->put_own(cell_.take_hashes(*Base::hasher(), rows), rows);
        return true;
    }
    bool stand_in_span(RowBlock &rows) const override {
        cell_.take_missing(rows);
        return Base::stand_in_span(rows);
    }

  private:
    TextCells cell_;
};

// The number of a bucket itself, which a transform gives.
class Bucket final : public Kind {
  public:
    explicit Bucket(const Options &options)
        : buckets_(options.number("buckets")), missing_(static_cast<i32>(options.number("missing_value"))) {}

    const char *expected() const override { return "the number of a bucket"; }
    void place(SlotPlaces &places) override { place_ = places.take(sizeof(i32)); }
    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!fits(value)) return row.wrong(c, shown_number(value));
        row.put(c, place_, static_cast<i32>(value));
    }
    void stand_in(RowWriter &row, u32 c) const override { row.put(c, place_, missing_); }

    bool takes_spans(CellType type) const override { return type == CellType::f64; }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        u8 *to = rows.at(place_);
        const u64 stride = rows.stride(place_);
        const char *const from = span.data + sizeof(f64) * u64{row};
        bool good = true;
        for (u32 i = 0; i < rows.count; ++i) {
            const f64 value = load_little<f64>(from + sizeof(f64) * u64{i});
            good &= fits(value);
            const i32 bucket = fits(value) ? static_cast<i32>(value) : 0;
            std::memcpy(to + i * stride, &bucket, 4);
        }
        return good;
    }
    bool stand_in_span(RowBlock &rows) const override {
        rows.fill(place_, missing_);
        return true;
    }

  private:
    bool fits(f64 value) const { return value >= 0 && value < buckets_; }

    Place place_;
    const f64 buckets_;
    const i32 missing_;
};

// Any number of them for a cell: int32 in a ragged block.
class Buckets : public Category {
  public:
    Buckets(const std::string &column, const Options &options)
        : Category(column, options), most_(static_cast<u64>(options.get<i64>("most"))),
          cuts_(options.get<bool>("cut")) {}

    void place(SlotPlaces &places) override { at_ = places.take_ragged(sizeof(i32)); }
    void hashed(RowWriter &row, u32 c, const TextHash &hash) const override { Kind::hashed(row, c, hash); }
    const TextHasher *hasher() const override { return nullptr; }
    i32 word(std::string_view) const override { return NO_WORD; }
    void put_word(RowWriter &row, u32 c, std::string_view utf8, i32) const override { text(row, c, utf8); }
    i32 stand_in_word() const override { return NO_WORD; }
    bool takes_spans(CellType) const override { return false; }
    bool put_span(const ColumnSpan &, u32, RowBlock &) const override { return false; }
    bool put_texts(const std::string_view *, RowBlock &) const override { return false; }
    bool stand_in_span(RowBlock &) const override { return false; }

  protected:
    void start(RowWriter &row) const { row.start_values(at_); }
    void add(RowWriter &row, std::string_view utf8) const { add(row, bucket(utf8)); }
    void add(RowWriter &row, i32 bucket) const { row.add_value(at_, bucket, most_); }
    void end(RowWriter &row, u32 c) const { end_values(row, c, at_, most_, cuts_); }

    Place at_;
    u64 most_;
    bool cuts_;
};

// A list of them. A missing element is none.
class CategoryList final : public Buckets {
  public:
    CategoryList(const std::string &column, const Options &options)
        : Buckets(column, options), stand_in_(options.get<std::string>("missing_value")) {}

    const char *expected() const override { return "list of texts, integers or booleans"; }
    CellForm form() const override { return CellForm::list; }
    void start_list(RowWriter &row, u32) const override { start(row); }
    void end_list(RowWriter &row, u32 c) const override { end(row, c); }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        if (!row.in_list()) return row.wrong(c, quoted(utf8));
        add(row, utf8);
    }
    void hashed(RowWriter &row, u32 c, const TextHash &hash) const override {
        if (!row.in_list()) return Kind::hashed(row, c, hash);
        if (i32 found; bucket_of(row, c, hash, found)) add(row, found);
    }
    const TextHasher *hasher() const override { return Category::hasher(); }

    bool takes_lists(CellType of) const override { return is_hash(of); }
    bool put_lists(const ColumnSpan &span, u32 row, RowBlock &rows, const RowMask &missing) const override {
        if (!has_own(*span.each)) return false;
        return span.each->type == CellType::hash64 ? put_hashes<u64>(span, row, rows, missing)
                                                   : put_hashes<u32>(span, row, rows, missing);
    }
    void stand_in(RowWriter &row, u32 c) const override {   // one of the value; of the empty text none
        start(row);
        if (!stand_in_.empty()) add(row, stand_in_);
        end(row, c);
    }

  private:
    // False where there is no room, or a list is too long.
    template <class T>
    bool put_hashes(const ColumnSpan &span, u32 row, RowBlock &rows, const RowMask &missing) const {
        const RowBlock::Ragged to = rows.ragged(at_);
        u64 end = to.ends[0];
        for (u32 i = 0; i < rows.count; ++i) {
            const u32 from = span.begin_of(row + i);
            const bool gone = missing.has(i);
            const u64 given = gone ? !stand_in_.empty() : span.begin_of(row + i + 1) - from;
            const u64 count = cuts_ ? std::min(given, most_) : given;
            if (count > most_ || end + count > to.capacity) return false;
            u8 *put = to.values + sizeof(i32) * end;
            const char *hash = span.each->data + sizeof(T) * u64{from};
            for (u64 k = 0; k < count; ++k, put += sizeof(i32), hash += sizeof(T)) {
                const i32 found = gone ? Category::missing() : bucket_of(load_little<T>(hash));
                std::memcpy(put, &found, sizeof found);
            }
            to.ends[i + 1] = static_cast<u32>(end += count);
        }
        return true;
    }

    const std::string stand_in_;
};

inline std::unique_ptr<Kind> of_texts(const std::string &column, const Options &options) {
    if (options.get<bool>("whole")) {
        if (options.has("cell")) return std::make_unique<ReadTexts<HashKind>>(column, options);
        return std::make_unique<HashKind>(column, options);
    }
    if (options.has("cell")) return std::make_unique<ReadTexts<Category>>(column, options);
    if (options.get<bool>("list")) return std::make_unique<CategoryList>(column, options);
    return std::make_unique<Category>(column, options);
}

inline std::unique_ptr<Kind> category(const std::string &column, const Options &options) {
    if (options.get<bool>("is_bucket")) return std::make_unique<Bucket>(options);
    return canonical(of_texts(column, options), options);
}

}  // namespace st::kinds
