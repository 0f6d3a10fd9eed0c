// What there is room for, one number each; what checks a job or a manifest asks for them.
#pragma once

namespace st {

constexpr int MAX_WORKERS = 64;          // words in the arena's control block
constexpr int MAX_PARTITIONS = 4096;     // of one topic: start positions in the arena
constexpr int MAX_COLUMNS = 65535;       // of a table, a record or a matrix: the packed format counts them in 16 bits
constexpr int MAX_CLASSES = 65535;       // of a label: columns of the output layer

}  // namespace st
