#include "exec/answer_delivery.h"

#include <cstring>

namespace st {
namespace {

constexpr char reserved_prefix[] = "streamtrain-";   // headers of ours: not echoed

void add_header(rd_kafka_headers_t *headers, std::string_view name, const void *value, std::size_t size) {
    Library::get().header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value,
                              static_cast<ssize_t>(size));
}

void echo_headers(rd_kafka_headers_t *headers, const MessageView &request) {
    for (const HeaderView &header : headers_of(request.handle))
        if (std::strncmp(header.name, reserved_prefix, sizeof reserved_prefix - 1) != 0)
            add_header(headers, header.name, header.value, header.size);
}

}   // namespace

void AnswerDelivery::note(int code, const std::string &text) {
    const Library &kafka = Library::get();
    std::string why = code ? text + ": " + kafka.err2name(code) : text;
    events_.push({4, code, false, "PREDICT", why});
}

void AnswerDelivery::gather_events(Producer *producer) {
    if (!producer) return;
    for (KafkaEvent &event : producer->events().drain()) events_.push(std::move(event));
}

int AnswerDelivery::send(Producer &producer, const AnsweredBatch &batch, std::size_t index, void *tag) {
    const Library &kafka = Library::get();
    const MessageView &request = *batch.requests[index];
    const Answer &answer = batch.answers[index];
    static constexpr std::string_view too_large =
        "the answer with the request's key and headers is larger than a message";
    bool whole = true, keyed = true;   // given up, headers first, when key and headers leave no room for the answer
    while (true) {
        bool failed = answer.failed || !whole;
        std::string_view reason = whole ? answer.text : too_large;
        rd_kafka_headers_t *headers = kafka.headers_new(8);
        if (whole) echo_headers(headers, request);
        add_header(headers, "streamtrain-version", batch.version.data(), batch.version.size());
        add_header(headers, "streamtrain-digest", batch.digest.data(), batch.digest.size());
        if (failed) add_header(headers, "streamtrain-error", reason.data(), reason.size());
        Bytes key = keyed ? Bytes{request.key, request.key_size} : Bytes{};
        Bytes value = failed ? Bytes{} : Bytes{answer.text.data(), answer.text.size()};
        int code = producer.produce(topic_, rd::any_partition, key, value, headers, tag);
        if (code == rd::ok) return rd::ok;
        kafka.headers_destroy(headers);
        if (code == rd::queue_full)
            producer.poll(10);
        else if (code == rd::message_too_large && whole)
            whole = false;
        else if (code == rd::message_too_large && keyed)
            keyed = false;
        else
            return code;
    }
}

}   // namespace st
