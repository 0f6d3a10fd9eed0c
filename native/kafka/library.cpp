#include <dlfcn.h>

#include <mutex>
#include <stdexcept>
#include <string>

#include "kafka/librdkafka.h"

namespace st {
namespace {

Library library;
bool is_loaded = false;
std::mutex load_mutex;

void *find(void *handle, const char *path, std::string name) {
    if (name.back() == '_') name.pop_back();   // new_: `new` is a keyword
    void *symbol = dlsym(handle, ("rd_kafka_" + name).c_str());
    if (!symbol)
        throw std::runtime_error(std::string(path) + ": rd_kafka_" + name +
                                 " not found; need confluent-kafka 2.16.1 or newer");
    return symbol;
}

}   // namespace

const Library &Library::get() {
    if (!is_loaded) throw std::runtime_error("librdkafka is not loaded; call streamtrain.kafka.library.load() first");
    return library;
}

void Library::load(const char *path) {
    std::lock_guard lock(load_mutex);
    if (is_loaded) return;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw std::runtime_error(std::string("cannot load ") + path + ": " + dlerror());
    Library found;
#define ST_KAFKA_FIND(name, result, arguments) \
    found.name = reinterpret_cast<result(*) arguments>(find(handle, path, #name));
    ST_KAFKA_FUNCTIONS(ST_KAFKA_FIND)
#undef ST_KAFKA_FIND
    library = found;
    is_loaded = true;
}

}   // namespace st
