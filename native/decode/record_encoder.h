// What every record format offers a writer: rows of a table → the bytes of one record. One encoder serves one thread
// and one table.
#pragma once
#include <memory>
#include <string>

#include "decode/row_table.h"

namespace st {

class RecordEncoder {
  public:
    virtual ~RecordEncoder() = default;
    // Replaces `out`. One row is written as a row, more as columns. Throws CellMistake.
    virtual void encode(const RowTable &table, const PickedRows &rows, std::string &out) = 0;
};

// Throws std::invalid_argument for a name no format has.
std::unique_ptr<RecordEncoder> make_encoder(const std::string &format);

}  // namespace st
