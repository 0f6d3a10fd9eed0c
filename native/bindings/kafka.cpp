#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.h"
#include "bindings/bound_producer.h"
#include "bindings/event_list.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "kafka/response.h"
#include "kafka/settings.h"
#include "kafka/transaction.h"

namespace st {
namespace {

using Released = nb::call_guard<WithoutGil>;

nb::object bytes_or_none(const u8 *data, u64 size) { return data ? nb::object(nb::bytes(data, size)) : nb::none(); }

nb::list headers_list(const rd_kafka_message_t *message) {
    nb::list out;
    for (const HeaderView &header : headers_of(message))
        out.append(nb::make_tuple(header.name, bytes_or_none(header.value, header.size)));
    return out;
}

using OptionalBytes = std::optional<nb::bytes>;
using Headers = std::vector<std::pair<std::string, OptionalBytes>>;
// (partition, offset, timestamp_ms, key, value, headers, error, error_text)
using Message = nb::typed<nb::tuple, i32, i64, i64, OptionalBytes, OptionalBytes,
                          nb::typed<nb::list, Headers::value_type>, int, nb::str>;

Message message_tuple(const MessageView &m) {
    return nb::make_tuple(m.partition, m.offset, m.timestamp_ms, bytes_or_none(m.key, m.key_size),
                          bytes_or_none(m.value, m.size), m.error ? nb::list() : headers_list(m.handle), m.error,
                          m.error_text ? m.error_text : "");
}

nb::typed<nb::list, Message> consume(Consumer &consumer, std::size_t capacity, int timeout_ms) {
    std::vector<MessageView> views(capacity);
    std::size_t count;
    {
        WithoutGil released;
        count = consumer.consume(views.data(), capacity, timeout_ms);
    }
    nb::list out;
    for (std::size_t i = 0; i < count; ++i) out.append(message_tuple(views[i]));
    consumer.release();
    return out;
}

Bytes bytes_of(const OptionalBytes &bytes) { return bytes ? Bytes{bytes->data(), bytes->size()} : Bytes{}; }

// Python's producers end without the GIL, for librdkafka may wait.
struct BoundProducer final : Producer {
    using Producer::Producer;
    ~BoundProducer() override {
        WithoutGil released;
        close();
    }
};

int produce(Producer &producer, const std::string &topic, OptionalBytes value, OptionalBytes key, i32 partition,
            const Headers &headers, bool note) {
    const Library &kafka = Library::get();
    rd_kafka_headers_t *list = headers.empty() ? nullptr : kafka.headers_new(headers.size());
    for (const auto &[name, content] : headers) {
        kafka.header_add(list, name.c_str(), static_cast<ssize_t>(name.size()), content ? content->data() : nullptr,
                         content ? static_cast<ssize_t>(content->size()) : 0);
    }
    void *tag = note ? &producer : nullptr;
    int code = rd::fail;
    try {
        code = producer.produce(topic, partition, bytes_of(key), bytes_of(value), list, tag);
    } catch (const KafkaFailure &failure) {   // of the topic, before the record is looked at
        code = failure.code;
    }
    if (code && list) kafka.headers_destroy(list);
    return code;
}

void bind_settings(nb::module_ &m) {
    nb::enum_<Purpose>(m, "KafkaPurpose", "The purpose of a client: native/kafka/settings.h.")
        .value("INGEST", Purpose::ingest)
        .value("READ", Purpose::read)
        .value("REPLAY", Purpose::replay)
        .value("FOLLOW", Purpose::follow)
        .value("SERVE", Purpose::serve)
        .value("ANSWERS", Purpose::answers)
        .value("REQUESTS", Purpose::requests)
        .value("REQUESTS_ONCE", Purpose::requests_once)
        .value("GROUP", Purpose::group)
        .value("HOST", Purpose::host)
        .value("PUBLISH", Purpose::publish)
        .value("CONTRIBUTE", Purpose::contribute)
        .value("ANSWER", Purpose::answer)
        .value("ANSWER_ONCE", Purpose::answer_once)
        .value("RESEND", Purpose::resend)
        .value("WRITE", Purpose::write)
        .value("STREAM", Purpose::stream)
        .value("ADMIN", Purpose::admin)
        .value("START", Purpose::start);
    m.def("kafka_client_settings", &client_settings, nb::arg("purpose"), nb::arg("given"), nb::arg("own"),
          nb::arg("clients") = 1,
          "Returns a client's settings: our defaults, under `given`, under what is not the user's, under `own`.\n\n"
          "Of so many `clients` each has its share of the memory for messages.");
    m.def("kafka_settings", [] {
        nb::list out;
        for (const KafkaSetting &setting : kafka_settings()) {
            nb::list purposes;
            for (int p = 0; p < static_cast<int>(Purpose::count); ++p)
                if (setting.purposes >> p & 1) purposes.append(static_cast<Purpose>(p));
            const char *hold = setting.hold == Hold::given ? "given" : setting.hold == Hold::fixed ? "fixed" : "owned";
            nb::object value = setting.value ? nb::object(nb::str(setting.value)) : nb::none();
            out.append(nb::make_tuple(setting.name, value, hold, purposes, setting.reason));
        }
        return out;
    }, nb::sig("def kafka_settings() -> list[tuple[str, str | None, str, list[KafkaPurpose], str]]"),
    "Returns the whole table: property, value (None: each client's own), given | fixed | owned, who has it, why.");
}

template <class C>
void bind_client(nb::class_<C> &c) {
    c.def("partition_count", &C::partition_count, Released(), nb::arg("topic"), nb::arg("timeout_ms"))
        .def("topic_id", &C::topic_id, Released(), nb::arg("topic"), nb::arg("timeout_ms"))
        .def("watermarks", &C::watermarks, Released(), nb::arg("topic"), nb::arg("partition"), nb::arg("timeout_ms"))
        .def("bounds", &C::bounds, Released(), nb::arg("topic"), nb::arg("timeout_ms"))
        .def("drain_events", [](C &self) { return event_list(self.events().drain()); })
        .def("close", &C::close, Released());
}

void bind_consumer(nb::module_ &m) {
    nb::class_<Consumer> c(m, "KafkaConsumer");
    c.def(nb::init<const KafkaSettings &>(), nb::arg("settings"))
        .def("assign", &Consumer::assign, Released(), nb::arg("topic"), nb::arg("offsets"))
        .def("subscribe", &Consumer::subscribe, Released(), nb::arg("topic"), nb::arg("reads") = true)
        .def("assignment", &Consumer::assignment, Released())
        .def("consume", consume, nb::arg("capacity"), nb::arg("timeout_ms"))
        .def("pause", &Consumer::pause, Released(), nb::arg("partitions"))
        .def("resume", &Consumer::resume, Released(), nb::arg("partitions"))
        .def("seek", &Consumer::seek, Released(), nb::arg("offsets"), nb::arg("timeout_ms"))
        .def("position", &Consumer::position, Released(), nb::arg("partitions"))
        .def("committed", &Consumer::committed, Released(), nb::arg("partitions"), nb::arg("timeout_ms"))
        .def("rewind_to_committed", &Consumer::rewind_to_committed, Released(), nb::arg("otherwise"),
             nb::arg("timeout_ms"))
        .def("commit", &Consumer::commit, Released(), nb::arg("offsets"))
        .def("is_deaf", &Consumer::is_deaf, Released(), nb::arg("timeout_ms"))
        .def("group_metadata", [](const Consumer &self) {
            std::string bytes = self.group_metadata().serialize();
            return nb::bytes(bytes.data(), bytes.size());
        });
    bind_client(c);
}

void bind_producer(nb::module_ &m) {
    nb::class_<BoundProducer> c(m, "KafkaProducer");
    c.def(nb::init<const KafkaSettings &>(), nb::arg("settings"))
        .def(
            "produce",
            [](BoundProducer &self, const std::string &topic, OptionalBytes value, OptionalBytes key, i32 partition,
               const Headers &headers, bool note) {
                return produce(self, topic, value, key, partition, headers, note);
            },
            nb::arg("topic"), nb::arg("value").none(), nb::arg("key").none() = nb::none(),
            nb::arg("partition") = rd::any_partition, nb::arg("headers") = Headers(), nb::arg("note") = false)
        .def_prop_ro("noted_offset", &Producer::noted_offset)
        .def("poll", &Producer::poll, Released(), nb::arg("timeout_ms"))
        .def("flush", &Producer::flush, Released(), nb::arg("timeout_ms"));
    bind_client(c);
}

// Steps of a transaction go by value into the thread that makes them: none is Python's.
TransactionEnd commit(BoundTransactionalProducer &self, const std::string &topic, Consumer::Offsets offsets,
                      const nb::bytes &group, const std::string &identity) {
    if (offsets.empty()) {
        WithoutGil released;
        return self.commit();
    }
    std::string metadata(group.c_str(), group.size());
    WithoutGil released;
    const auto parsed = std::make_shared<const GroupMetadata>(GroupMetadata::parse(metadata));
    auto send = [topic, offsets = std::move(offsets), parsed, identity](Producer &producer, int timeout_ms) {
        return producer.send_offsets(topic, offsets, *parsed, timeout_ms, identity);
    };
    return self.commit({{"send_offsets_to_transaction", std::move(send)}});
}

void bind_transactions(nb::module_ &m) {
    nb::enum_<Next>(m, "KafkaNext", "The next step after an outcome: native/kafka/transaction.h.")
        .value("ON", Next::on)
        .value("AGAIN", Next::again)
        .value("ABORT", Next::abort)
        .value("RENEW", Next::renew);
    nb::class_<KafkaOutcome>(m, "KafkaOutcome",
                             "The outcome of a call of the transactional interface; code 0 is success.")
        .def(nb::init<int, bool, bool, bool, std::string>(), nb::arg("code"), nb::arg("retriable") = false,
             nb::arg("requires_abort") = false, nb::arg("fatal") = false, nb::arg("text") = "")
        .def_ro("code", &KafkaOutcome::code)
        .def_ro("retriable", &KafkaOutcome::retriable)
        .def_ro("requires_abort", &KafkaOutcome::requires_abort)
        .def_ro("fatal", &KafkaOutcome::fatal)
        .def_ro("text", &KafkaOutcome::text)
        .def("next", &next, nb::arg("over"),
             "`over`: the time in which the call may be made again has passed.");
    nb::enum_<Ending>(m, "KafkaEnding",
                      "The end of a transaction; UNKNOWN: committed or not, and the producer has been given up.")
        .value("COMMITTED", Ending::committed)
        .value("ABORTED", Ending::aborted)
        .value("UNKNOWN", Ending::unknown);
    nb::class_<TransactionEnd>(m, "KafkaTransactionEnd")
        .def_ro("ending", &TransactionEnd::ending)
        .def_ro("why", &TransactionEnd::why);
    using Bound = BoundTransactionalProducer;
    nb::class_<Bound>(m, "KafkaTransactionalProducer",
                      "Makes transactions by the rules of native/kafka/transaction.h.")
        .def(nb::init<KafkaSettings>(), nb::arg("settings"))
        .def("prepare", &Bound::prepare, Released(),
             "Tries once for a producer that may begin; code 0 when there is one.")
        .def("begin", [](Bound &self) { return self.begin(); }, Released())
        .def(
            "produce",
            [](Bound &self, const std::string &topic, OptionalBytes value, OptionalBytes key, i32 partition,
               const Headers &headers, bool note) {
                return produce(self.producer(), topic, value, key, partition, headers, note);
            },
            nb::arg("topic"), nb::arg("value").none(), nb::arg("key").none() = nb::none(),
            nb::arg("partition") = rd::any_partition, nb::arg("headers") = Headers(), nb::arg("note") = false)
        .def("poll", [](Bound &self, int timeout_ms) { return self.producer().poll(timeout_ms); }, Released(),
             nb::arg("timeout_ms"))
        .def("flush", [](Bound &self) { return self.producer().flush(self.call_ms()); }, Released())
        .def("commit", commit, nb::arg("topic") = "", nb::arg("offsets") = Consumer::Offsets(),
             nb::arg("group_metadata") = nb::bytes("", 0), nb::arg("identity") = "",
             "Commits with the group's `offsets` in `topic`, if there are any, and `identity` beside them.")
        .def("fail", &Bound::fail, Released(), nb::arg("why"),
             "Ends the transaction that `why` does not let go on.")
        .def("abort", &Bound::abort, Released(), nb::arg("reason"),
             "Ends a transaction that is not wanted any more.")
        .def_prop_ro("noted_offset", [](Bound &self) { return self.producer().noted_offset(); })
        .def("drain_events", [](Bound &self) { return event_list(self.drain_events()); })
        .def("close", &Bound::give_up, Released());
    m.def("kafka_not_queued", &not_queued, nb::arg("code"), nb::arg("topic"),
          "Returns the outcome of a produce() that gave `code`.");
}

}   // namespace

void bind_kafka(nb::module_ &m) {
    static PyObject *failure = PyErr_NewException("streamtrain._native.KafkaFailure", PyExc_RuntimeError, nullptr);
    m.attr("KafkaFailure") = nb::borrow(failure);
    nb::register_exception_translator([](const std::exception_ptr &pointer, void *) {
        try {
            std::rethrow_exception(pointer);
        } catch (const KafkaFailure &e) {
            PyErr_SetObject(failure, nb::make_tuple(e.code, e.what()).ptr());
        }
    });
    m.def("kafka_load", &Library::load, nb::arg("path"));
    m.def("kafka_version", [] { return std::string(Library::get().version_str()); });
    m.def("kafka_error_name", [](int code) { return std::string(Library::get().err2name(code)); }, nb::arg("code"));
    m.def("kafka_error_text", [](int code) { return std::string(Library::get().err2str(code)); }, nb::arg("code"));
    nb::enum_<Response>(m, "KafkaResponse", nb::is_arithmetic(),
                        "The response to an error code: native/kafka/response.h.")
        .value("WAIT", Response::wait)
        .value("MISSING", Response::missing)
        .value("RENEW", Response::renew)
        .value("REFUSE", Response::refuse)
        .value("DENIED", Response::denied);
    nb::enum_<rd::Error>(m, "KafkaCode", nb::is_arithmetic(), "Error codes of librdkafka itself that we name.")
        .value("TRANSPORT", rd::transport)
        .value("PARTITION_EOF", rd::partition_eof)
        .value("ALL_BROKERS_DOWN", rd::all_brokers_down)
        .value("QUEUE_FULL", rd::queue_full)
        .value("TIMED_OUT", rd::timed_out)
        .value("SSL", rd::ssl)
        .value("INCONSISTENT", rd::inconsistent)
        .value("FENCED", rd::fenced);
    m.def("kafka_response", &response_to, nb::arg("code"));
    m.def("kafka_is_passing", &is_passing, nb::arg("code"));
    m.def("kafka_responses", [] {
        nb::list out;
        for (const KafkaResponse &entry : kafka_responses())
            out.append(nb::make_tuple(entry.code, entry.name, entry.response));
        return out;
    }, nb::sig("def kafka_responses() -> list[tuple[int, str, KafkaResponse]]"),
    "Returns (code, name, response) of every code that the table names.");
    bind_settings(m);
    bind_consumer(m);
    bind_producer(m);
    bind_transactions(m);
}

}   // namespace st
