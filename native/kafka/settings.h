// The settings of librdkafka that we choose: the one table, by what a client is for. Asked by C++ and by Python.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace st {

using KafkaSettings = std::vector<std::pair<std::string, std::string>>;

// What a client is for. A job's [kafka] gives the address and what the user wants beside this table.
enum class Purpose : int {
    ingest,         // a trainer's records, in a process of their own
    read,           // a stretch of a topic, once: commands, round log, control
    replay,         // as read, one client a partition
    follow,         // a job's snapshots, in any program
    serve,          // as follow, beside the client that reads a predictor's requests
    answers,        // predictions as they are written
    requests,       // a predictor's group, whose offsets go into the transactions of its answers
    requests_once,  // as requests, whose offsets are committed after the answers: at least once
    group,          // looks at a group's offsets, or commits them, and never joins
    host,           // one of a job's hosts: has its share of the partitions, and reads none
    publish,        // a trainer's transactions
    contribute,     // what a host has learned, for the leader
    answer,         // a predictor's transactions
    answer_once,    // as answer, without transactions: at least once
    resend,         // dead letters' rows, with the group's offsets in their transactions
    write,          // a program's rows
    stream,         // the demo's rows and requests
    admin,          // asks for topics and makes them: confluent-kafka's AdminClient; reads and writes no record
    start,          // as admin, of a Kafka of ours that is starting
    count
};

enum class Hold : int {
    given,   // the user's value is taken instead
    fixed,   // this client's own; the user's value is for the others
    owned,   // streamtrain's alone: a job file that has it is refused
};

struct KafkaSetting {
    const char *name;
    const char *value;   // null: each client's own, or librdkafka's default
    Hold hold;
    u32 purposes;        // a bit for each that has it
    const char *reason;
};

std::span<const KafkaSetting> kafka_settings();

// A client's settings: ours, under what the user gave, under what is not the user's to give, under `own`. Of
// so many `clients` each has its share of the memory for messages, 1 MB at least.
KafkaSettings client_settings(Purpose purpose, const KafkaSettings &given, const KafkaSettings &own, u32 clients = 1);

}   // namespace st
