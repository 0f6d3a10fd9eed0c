#include "predict/answer_delivery.h"

#include <cstring>

#include "decode/schema_frame.h"
#include "kafka/response.h"

namespace st {
namespace {

constexpr char reserved_prefix[] = "streamtrain-";   // headers of ours: not echoed

constexpr std::string_view too_large =
    "expected an answer that fits a message, got a larger one with the request's key and headers";

void add_header(rd_kafka_headers_t *headers, std::string_view name, std::string_view value) {
    Library::get().header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                              static_cast<ssize_t>(value.size()));
}

void echo_headers(rd_kafka_headers_t *headers, const MessageView &request) {
    const Library &kafka = Library::get();
    for (const HeaderView &header : headers_of(request.handle))
        if (std::strncmp(header.name, reserved_prefix, sizeof reserved_prefix - 1) != 0 &&
            std::strcmp(header.name, SchemaFrame::HEADER) != 0)   // an answer is of no schema
            kafka.header_add(headers, header.name, -1, header.value, static_cast<ssize_t>(header.size));
}

}   // namespace

void AnswerDelivery::note(int code, const std::string &text) {
    const Library &kafka = Library::get();
    std::string why = code ? text + ": " + kafka.err2name(code) : text;
    events_.push({4, code, "PREDICT", why});
}

void AnswerDelivery::fail(int code, const std::string &text) {
    note(code, text);
    if (response_to(code) >= Response::refuse) throw KafkaFailure(code, topic_ + ": " + text);
}

void AnswerDelivery::gather_events(std::vector<KafkaEvent> said) {
    for (KafkaEvent &event : said) events_.push(std::move(event));
}

int AnswerDelivery::send(Producer &producer, const AnsweredBatch &batch, std::size_t index, void *tag) {
    const Library &kafka = Library::get();
    const MessageView &request = *batch.requests[index];
    const Answer &answer = batch.answers[index];
    const std::string partition = std::to_string(request.partition), offset = std::to_string(request.offset);
    std::string_view body = answer.body, error = answer.error;
    std::string refusal;                // the body where there is no room
    bool echoed = true, keyed = true;   // given up, headers first, when they leave no room for the answer
    while (true) {
        rd_kafka_headers_t *headers = kafka.headers_new(8);
        if (echoed) echo_headers(headers, request);
        add_header(headers, "streamtrain-version", answer.by->version_text());
        add_header(headers, "streamtrain-digest", answer.by->digest());
        add_header(headers, "streamtrain-partition", partition);
        add_header(headers, "streamtrain-offset", offset);
        if (!error.empty()) add_header(headers, "streamtrain-error", error);
        else if (answer.errors) add_header(headers, "streamtrain-errors", std::to_string(answer.errors));
        const Bytes key = keyed ? Bytes{request.key, request.key_size} : Bytes{};
        const int code = producer.produce(topic_, rd::any_partition, key, {body.data(), body.size()}, headers, tag);
        if (code == rd::ok) return rd::ok;
        kafka.headers_destroy(headers);
        if (code == rd::queue_full) {
            producer.poll(10);
        } else if (code == rd::message_too_large && echoed) {
            echoed = false;
            refusal = error_text("$", too_large, batch.reader.topic() + "[" + partition + "]@" + offset);
            body = refusal;
            error = too_large;
        } else if (code == rd::message_too_large && keyed) {
            keyed = false;
        } else {
            return code;
        }
    }
}

}   // namespace st
