// What the library alone can do: messages consumed and thrown away. The rival of the ingest bench.
#pragma once
#include "kafka/consumer.h"

namespace st {

struct RawConsumed {
    u64 messages = 0, bytes = 0;
    f64 seconds = 0;   // from the first message's arrival to the end
};

// Consumes up to `limit` messages from these offsets; ends early at the end of every partition (with
// enable.partition.eof=true) or after 10 s without a message.
RawConsumed raw_consume(const KafkaSettings &settings, const std::string &topic, const Consumer::Offsets &offsets,
                        u64 limit);

}   // namespace st
