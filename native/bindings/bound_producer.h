// The transactional producer as Python holds it.
#pragma once
#include "bindings/bindings.h"
#include "kafka/transaction.h"

namespace st {

struct BoundTransactionalProducer final : TransactionalProducer {
    using TransactionalProducer::TransactionalProducer;
    ~BoundTransactionalProducer() {
        WithoutGil released;
        give_up();
    }
};

}  // namespace st
