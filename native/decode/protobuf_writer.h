// What Protobuf messages were written by, compiled for the job's columns.
#pragma once
#include <memory>

#include "decode/protobuf_program.h"

namespace st {

struct ProtoWriter {
    // The job's own schema.
    ProtoWriter(const ProtoMessage &own, const DecodePlan &plan, const RowWriter &row)
        : message(&own), program(ProtoCompiler::compile(own.row(), nullptr, plan, row)) {}
    ProtoWriter(std::string of_name, const std::vector<i64> &place, const SchemaSource::Answer &given,
                const ProtoMessage &reader, const DecodePlan &plan, const RowWriter &row)
        : name(std::move(of_name)), answer(given) {
        program.refusal = answer.refusal;
        if (!answer.refusal.empty()) return;
        held = std::make_unique<ProtoSchema>(answer.schema);
        const ProtoMessage *found = held->at(place);
        if (!found || found->short_name() != reader.short_name()) {
            program.refusal = "expected the message " + std::string(reader.short_name()) + ", got " +
                              (found ? std::string(found->short_name()) : "one that it has not");
            return;
        }
        message = found;
        const bool alike = !found->many() == !reader.many();
        program = ProtoCompiler::compile(found->row(), &reader.row(), plan, row);
        if (!alike) program.refusal = "expected one row or many as the job's schema has them";
    }
    std::string name;
    SchemaSource::Answer answer;
    std::unique_ptr<ProtoSchema> held;
    const ProtoMessage *message = nullptr;   // none where there is a refusal
    ProtoProgram program;
};

}  // namespace st
