#include "train/ring_drain.h"

#include <chrono>

namespace st {

namespace {
constexpr std::chrono::microseconds look_again{300};   // woken for each slot, it took a tenth of the time
}

RingDrain::RingDrain(Arena &arena) : arena_(arena), thread_([this] { loop(); }) {}

RingDrain::~RingDrain() {
    leaving_.store(true);
    thread_.join();
}

void RingDrain::loop() {
    Control &control = arena_.control();
    i64 released = 0;
    while (!leaving_.load()) {
        std::this_thread::sleep_for(look_again);
        if (control.ingest.slots_filled.load() == released) continue;
        released = control.ingest.slots_filled.load();
        control.coordinator.slots_released.store(released);
        control.coordinator.heartbeat_ns.store(monotonic_ns());
        control.coordinator_event.ring();
    }
}

}  // namespace st
