// Preloaded into the processes under test: the wall clock runs off by the seconds in the file CLOCK_SHIM names.
// The monotonic clocks are left alone, as a clock that is set leaves them. A wait until a moment of the wall clock is
// handed on in the kernel's time, which has not been set.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

// The file holds one long long, mapped so that a test can set the clock while the process runs.
long long offset_s() {
    static volatile const long long *offset = [] {
        const char *name = std::getenv("CLOCK_SHIM");
        const int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
        void *map = file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        return map == MAP_FAILED ? nullptr : static_cast<volatile const long long *>(map);
    }();
    return offset ? *offset : 0;
}

// Moments of a monotonic clock count from the start of the machine: they are small.
timespec kernel_time(const timespec *moment) {
    timespec out = *moment;
    if (out.tv_sec > 1'000'000'000) out.tv_sec -= offset_s();
    return out;
}

template <class Function> Function next(const char *name) { return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name)); }

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec *out) {
    static const auto real = next<int (*)(clockid_t, timespec *)>("clock_gettime");
    const int result = real(clock, out);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += offset_s();
    return result;
}

int gettimeofday(timeval *out, void *zone) noexcept {
    static const auto real = next<int (*)(timeval *, void *)>("gettimeofday");
    const int result = real(out, zone);
    if (result == 0 && out) out->tv_sec += offset_s();
    return result;
}

time_t time(time_t *out) noexcept {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const timespec *until) {
    static const auto real =
        next<int (*)(pthread_cond_t *, pthread_mutex_t *, const timespec *)>("pthread_cond_timedwait");
    const timespec moment = kernel_time(until);
    return real(condition, mutex, &moment);
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const timespec *until) {
    static const auto real = next<int (*)(cnd_t *, mtx_t *, const timespec *)>("cnd_timedwait");
    const timespec moment = kernel_time(until);
    return real(condition, mutex, &moment);
}

int timespec_get(timespec *out, int base) noexcept {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, out) == 0 ? base : 0;
}

int sem_timedwait(sem_t *semaphore, const timespec *until) {
    static const auto real = next<int (*)(sem_t *, const timespec *)>("sem_timedwait");
    const timespec moment = kernel_time(until);
    return real(semaphore, &moment);
}

}  // extern "C"
