// A topic's records → packed records of another topic: rows as the job's decoder takes them, those of one key together
// and in their order. What is taken goes out as one transaction of the caller's. One thread.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decode/batch_filler.h"
#include "decode/kept_rows.h"
#include "decode/record_encoder.h"
#include "kafka/producer.h"
#include "source/source.h"

namespace st {

struct Repacking {
    std::string from, to;        // topics
    i32 key_column = NO_COLUMN;  // whose cell is the message's key; NO_COLUMN: they keep theirs
    u32 pack = 1;                // rows in a record, at most
    u64 most_bytes = 0;          // of a message
};

struct Repacked {
    u64 messages = 0, rows = 0, records = 0, filtered = 0, left_out = 0;
    std::vector<std::string> first;   // of those left out
};

class Repacker {
  public:
    // What decode() has ended at. `due`: what was read is to be written; `waits`: the next record, for its schema.
    enum class Until : int { taken = 0, due = 1, waits = 2 };

    // `plan` keeps its rows in `kept`. Throws std::invalid_argument for formats that there are not.
    Repacker(const RecordFormat &from, std::shared_ptr<const DecodePlan> plan, std::shared_ptr<KeptRows> kept,
             const RecordFormat &packed, Repacking wanted);

    void start(Source &source, const Consumer::Offsets &offsets);
    // Records, when those taken before are decoded: how many, and ends of partitions. Throws what the source does.
    u64 take(Source &source, i64 wait_ns);
    // Of what is taken, until so many records or bytes have not been written yet.
    Until decode(Source &source, u64 most_records, u64 most_bytes);
    // The rows decoded, into the producer's transaction; 0, or the code of a record that could not be queued.
    int write(Producer &producer, i32 partitions);
    // Of partitions: where reading goes on behind what write() has written.
    const Consumer::Offsets &positions() const { return positions_; }
    // All of it is committed.
    void done();

    u64 waiting() const { return waiting_; }   // records decoded and not yet done()
    const Repacked &told() const { return told_; }

  private:
    struct Group {
        std::string key;
        bool is_keyed;
        i32 partition;
        std::string headers;     // as headers_ has them
        std::vector<u32> rows;   // of the table
    };
    struct Origin {
        i32 partition;
        i64 offset;
    };
    struct TextsHash : std::hash<std::string_view> {
        using is_transparent = void;
    };

    bool decode(const RecordView &record);
    void next_slot();
    void take_headers(const RecordView &record);
    Group &group_of(bool is_keyed, std::string_view key, i32 partition);
    void add_rows(const RecordView &record, u64 begin, u64 end);
    bool key_of(u64 row, std::string &key) const;
    void tell(const RecordView &record);
    void leave_out(const std::string &where);
    void mark_given(const Group &group);
    int write(Producer &producer, i32 partitions, const Group &group, const u32 *rows, u32 count);
    int produce(Producer &producer, i32 partitions, const Group &group);

    BatchFiller batch_;
    std::shared_ptr<KeptRows> kept_;
    std::unique_ptr<RecordEncoder> encoder_;
    const Repacking wanted_;
    std::vector<RecordView> views_;
    u64 next_ = 0, taken_ = 0;   // of views_
    u64 waiting_ = 0, waiting_bytes_ = 0;
    u64 first_ = 0;              // the table's row that the slot's first is
    std::vector<Origin> origins_;   // by row of the table
    std::vector<Group> groups_;
    std::unordered_map<std::string, u32, TextsHash, std::equal_to<>> newest_;   // group of a key, or of headers
    std::string headers_, id_, key_, record_;
    Consumer::Offsets positions_;
    Repacked told_;
};

}  // namespace st
