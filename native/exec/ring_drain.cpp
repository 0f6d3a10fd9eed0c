#include "exec/ring_drain.h"

namespace st {

RingDrain::RingDrain(Arena &arena) : arena_(arena), thread_([this] { loop(); }) {}

RingDrain::~RingDrain() {
    leaving_.store(true);
    arena_.control().ingest_event.ring();
    thread_.join();
}

void RingDrain::loop() {
    Control &control = arena_.control();
    i64 released = 0;
    while (!leaving_.load()) {
        auto more = [&] { return leaving_.load() || control.ingest.slots_filled.load() > released; };
        if (!control.ingest_event.wait(monotonic_ns() + 20'000'000, more)) continue;
        released = control.ingest.slots_filled.load();
        control.coordinator.slots_released.store(released);
        control.coordinator.heartbeat_ns.store(monotonic_ns());
        control.coordinator_event.ring();
    }
}

}  // namespace st
