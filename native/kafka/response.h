// What is done about an error code of librdkafka (below 0) or of a broker: the one table, asked by C++ and by Python.
#pragma once
#include <span>

#include "base/types.h"

namespace st {

enum class Response : int {
    wait = 0,      // ask again: the broker is away, starting, or settling who leads
    missing = 1,   // as wait: it knows no such topic or partition, which a broker that is settling says as well
    renew = 2,     // this client is of no use any more, or this run: begin anew
    refuse = 3,    // no repetition mends it
    denied = 4,    // as refuse: authentication, TLS, authorisation; the user's to mend
};

struct KafkaResponse {
    int code;
    const char *name;   // as err2name() has it
    Response response;
};

// The whole table; a code that it does not name means renew.
std::span<const KafkaResponse> kafka_responses();
Response response_to(int code);

// Whether time alone may mend it.
inline bool is_passing(int code) { return response_to(code) <= Response::missing; }

}   // namespace st
