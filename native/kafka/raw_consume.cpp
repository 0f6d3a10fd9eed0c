#include "kafka/raw_consume.h"

#include <chrono>

namespace st {

RawConsumed raw_consume(const KafkaSettings &settings, const std::string &topic, const Consumer::Offsets &offsets,
                        u64 limit) {
    using Clock = std::chrono::steady_clock;
    Consumer consumer(settings);
    consumer.assign(topic, offsets);
    std::vector<MessageView> batch(4096);
    RawConsumed total;
    Clock::time_point start{};
    std::size_t ended = 0;
    while (total.messages < limit && ended < offsets.size()) {
        std::size_t count = consumer.consume(batch.data(), batch.size(), 10'000);
        if (count == 0) break;
        if (start == Clock::time_point{}) start = Clock::now();
        for (std::size_t i = 0; i < count; ++i) {
            ended += batch[i].error == rd::partition_eof;
            total.messages += batch[i].error == 0;
            total.bytes += batch[i].size;
        }
    }
    total.seconds = std::chrono::duration<f64>(Clock::now() - start).count();
    return total;
}

}   // namespace st
