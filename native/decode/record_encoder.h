// What every record format offers a writer: rows of a table → the bytes of one record. One encoder serves one thread
// and one table.
#pragma once
#include <limits>
#include <memory>
#include <string>

#include "decode/record_format.h"
#include "decode/row_table.h"

namespace st {

class RecordEncoder {
  public:
    virtual ~RecordEncoder() = default;
    // Replaces `out`. One row is written as a row, more as columns, or as many rows. Throws CellMistake.
    virtual void encode(const RowTable &table, const PickedRows &rows, std::string &out) = 0;
    // Of rows that a record holds.
    virtual u64 most_rows() const { return std::numeric_limits<u32>::max(); }
    // Whether a record has room for fields that the job does not name.
    virtual bool keeps_others() const { return true; }
    // Whether it takes columns whose cells are as many numbers each as views.
    virtual bool keeps_matrices() const { return false; }
};

// What stands before a record that names its schema: 0 and the id in a registry. "" where none does.
inline std::string registry_frame(const Options &options) {
    if (options.get<std::string>("frame") != "registry") return "";
    const u32 id = __builtin_bswap32(static_cast<u32>(options.get<i64>("schema_id")));
    std::string frame(1, '\0');
    return frame.append(reinterpret_cast<const char *>(&id), sizeof id);
}

// Throws std::invalid_argument for a name no format has.
std::unique_ptr<RecordEncoder> make_encoder(const RecordFormat &format);

}  // namespace st
