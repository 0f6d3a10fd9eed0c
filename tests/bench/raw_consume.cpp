// What librdkafka alone can do: messages consumed from the beginning of a topic and thrown away, in C++. The rival of
// the ingest bench. Arguments: path of the library, topic, partitions, how many messages, settings as name=value.
// Prints messages, bytes, and seconds from the first one to the end.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kafka/consumer.h"

int main(int argc, char **argv) {
    using Clock = std::chrono::steady_clock;
    if (argc < 5) return 2;
    st::Library::load(argv[1]);
    st::KafkaSettings settings;
    for (int i = 5; i < argc; ++i) {
        const std::string given = argv[i];
        const std::size_t equals = given.find('=');
        settings.emplace_back(given.substr(0, equals), given.substr(equals + 1));
    }
    st::Consumer::Offsets offsets;
    for (int partition = 0; partition < std::atoi(argv[3]); ++partition) offsets.emplace_back(partition, 0);
    const long limit = std::atol(argv[4]);
    st::Consumer consumer(settings);
    consumer.assign(argv[2], offsets);
    std::vector<st::MessageView> batch(4096);
    long messages = 0, bytes = 0;
    Clock::time_point start{};
    for (std::size_t ended = 0; messages < limit && ended < offsets.size();) {
        const std::size_t count = consumer.consume(batch.data(), batch.size(), 10'000);
        if (count == 0) break;
        if (start == Clock::time_point{}) start = Clock::now();
        for (std::size_t i = 0; i < count; ++i) {
            ended += batch[i].error == st::rd::partition_eof;
            messages += batch[i].error == 0;
            bytes += static_cast<long>(batch[i].size);
        }
    }
    std::printf("%ld %ld %.9f\n", messages, bytes, std::chrono::duration<double>(Clock::now() - start).count());
}
