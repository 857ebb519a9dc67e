// SPDX-License-Identifier: Apache-2.0
// C interface to one Verilated model, the same for every design: ports by name as pointers, a whole
// clock in one call, values sampled before the edge, an FST on demand, assertions as a value instead
// of the end of the process. onr_ports.inc is made by the build from the model's own header:
//   ONR_IN(name, width)  ONR_OUT(name, width)   one line per port of at most 64 bits
//   ONR_INW(name, width) ONR_OUTW(name, width)  wider ports (arrays of 32-bit words)
// and #define ONR_CLK when the design has a port clk_i.
#include "Vonr_model.h"
#include "onr_ports.inc"
#include "verilated.h"
#ifdef ONR_TRACE
#include "verilated_fst_c.h"
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

namespace {

// Outputs as they stood just before the last clock edge.
struct Sample {
#define ONR_IN(name, width)
#define ONR_INW(name, width)
#define ONR_OUT(name, width) std::remove_reference_t<decltype(Vonr_model::name)> name;
#define ONR_OUTW(name, width) std::remove_reference_t<decltype(Vonr_model::name)> name;
    ONR_PORTS
#undef ONR_OUT
#undef ONR_OUTW
    char none;
};

struct Model {
    std::shared_ptr<VerilatedContext> ctx;
    std::unique_ptr<Vonr_model> top;
    Sample sample{};
    uint64_t cycles = 0;
    uint64_t period_ps = 1000;
    bool stopped = false;
    std::string stop_place;
#ifdef ONR_TRACE
    std::unique_ptr<VerilatedFstC> trace;
#endif
};

// The model being evaluated, for the callbacks that know no context.
thread_local Model* t_current = nullptr;

inline void take_sample(Model& m) {
#define ONR_OUT(name, width) m.sample.name = m.top->name;
#define ONR_OUTW(name, width) m.sample.name = m.top->name;
    ONR_PORTS
#undef ONR_OUT
#undef ONR_OUTW
}
#undef ONR_IN
#undef ONR_INW

inline void dump(Model& m, uint64_t time_ps) {
#ifdef ONR_TRACE
    if (m.trace) m.trace->dump(time_ps);
#else
    (void)m;
    (void)time_ps;
#endif
}

inline void close_trace(Model& m) {
#ifdef ONR_TRACE
    if (m.trace) m.trace->close();
    m.trace.reset();
#else
    (void)m;
#endif
}

// First half of a cycle: inputs reach the outputs, which are sampled.
inline void settle(Model& m) {
#ifdef ONR_CLK
    m.top->clk_i = 0;
#endif
    m.ctx->time(m.cycles * m.period_ps);
    m.top->eval();
    take_sample(m);
}

// Second half: the rising edge.
inline void edge(Model& m) {
#ifdef ONR_CLK
    m.top->clk_i = 1;
    m.ctx->time(m.cycles * m.period_ps + m.period_ps / 2);
    m.top->eval();
#endif
    ++m.cycles;
}

inline void one_clock(Model& m) {
    const uint64_t now = m.cycles * m.period_ps;
    settle(m);
    dump(m, now);
    edge(m);
    dump(m, now + m.period_ps / 2);
}

struct Port {
    const char* name;
    uint32_t width;
    uint32_t is_output;
    void* value;
    void* sampled;  // null for inputs
};

}  // namespace

// $stop and failed assertions end here (VL_USER_STOP): remember where, let the caller decide.
void vl_stop(const char* filename, int linenum, const char* hier) VL_MT_UNSAFE {
    Model* const m = t_current;
    if (!m || m->stopped) return;
    m->stopped = true;
    m->stop_place = std::string{filename ? filename : "?"} + ":" + std::to_string(linenum);
    if (hier && *hier) m->stop_place += std::string{" in "} + hier;
    std::fflush(stdout);
}

// What cannot go on (no convergence, a runtime fault of the model): keep the trace, then end.
void vl_fatal(const char* filename, int linenum, const char* hier, const char* msg) VL_MT_UNSAFE {
    std::fflush(stdout);
    std::fprintf(stderr, "fatal: %s:%d: %s (%s)\n", filename ? filename : "?", linenum,
                 msg ? msg : "", hier ? hier : "");
    if (t_current) close_trace(*t_current);
    std::abort();
}

extern "C" {

struct OnrApi {
    uint32_t abi;
    uint32_t ports;
    void* (*create)(const char* name, uint64_t period_ps, int rand_reset, int rand_seed, void* peer);
    void (*destroy)(void*);
    int (*port)(void*, uint32_t index, Port* out);
    void (*eval)(void*);
    int (*clock)(void*, uint64_t cycles);
    int (*settle)(void*);
    int (*edge)(void*);
    uint64_t (*cycles)(void*);
    int (*stopped)(void*);
    const char* (*stop_place)(void*);
    int (*trace_open)(void*, const char* path);
    void (*trace_dump)(void*, uint64_t time_ps);
    void (*trace_flush)(void*);
    void (*trace_close)(void*);
};

// A model made with a peer shares its time and its trace, in which both then stand side by side.
static void* onr_create(const char* name, uint64_t period_ps, int rand_reset, int rand_seed,
                        void* peer) {
    auto m = std::make_unique<Model>();
    m->period_ps = period_ps;
    if (peer) {
        m->ctx = static_cast<Model*>(peer)->ctx;
    } else {
        m->ctx = std::make_shared<VerilatedContext>();
        m->ctx->randReset(rand_reset);
        m->ctx->randSeed(rand_seed);
#ifdef ONR_TRACE
        m->ctx->traceEverOn(true);
#endif
    }
    t_current = m.get();
    m->top = std::make_unique<Vonr_model>(m->ctx.get(), name);
    t_current = nullptr;
    return m.release();
}

static void onr_destroy(void* handle) {
    Model* const m = static_cast<Model*>(handle);
    t_current = m;
    m->top->final();
    close_trace(*m);
    t_current = nullptr;
    delete m;
}

static int onr_port(void* handle, uint32_t index, Port* out) {
    Model& m = *static_cast<Model*>(handle);
    const Port ports[] = {
#define ONR_IN(name, width) {#name, width, 0, &m.top->name, nullptr},
#define ONR_INW(name, width) {#name, width, 0, m.top->name.data(), nullptr},
#define ONR_OUT(name, width) {#name, width, 1, &m.top->name, &m.sample.name},
#define ONR_OUTW(name, width) {#name, width, 1, m.top->name.data(), m.sample.name.data()},
        ONR_PORTS
#undef ONR_IN
#undef ONR_INW
#undef ONR_OUT
#undef ONR_OUTW
        {nullptr, 0, 0, nullptr, nullptr}};
    if (index + 1 >= sizeof(ports) / sizeof(ports[0])) return 0;
    *out = ports[index];
    return 1;
}

static void onr_eval(void* handle) {
    Model* const m = static_cast<Model*>(handle);
    t_current = m;
    m->top->eval();
}

// Returns 0, or 1 when an assertion failed: the model then stands in the cycle of the failure.
static int onr_clock(void* handle, uint64_t cycles) {
    Model* const m = static_cast<Model*>(handle);
    t_current = m;
    for (uint64_t i = 0; i < cycles && !m->stopped; ++i) one_clock(*m);
    return m->stopped;
}

static int onr_settle(void* handle) {
    Model* const m = static_cast<Model*>(handle);
    t_current = m;
    if (!m->stopped) settle(*m);
    return m->stopped;
}

static int onr_edge(void* handle) {
    Model* const m = static_cast<Model*>(handle);
    t_current = m;
    if (!m->stopped) edge(*m);
    return m->stopped;
}

static uint64_t onr_cycles(void* handle) { return static_cast<Model*>(handle)->cycles; }
static int onr_stopped(void* handle) { return static_cast<Model*>(handle)->stopped; }
static const char* onr_stop_place(void* handle) {
    return static_cast<Model*>(handle)->stop_place.c_str();
}

// 0 done, 1 built without tracing, 2 already open, 3 the file cannot be written.
static int onr_trace_open(void* handle, const char* path) {
#ifdef ONR_TRACE
    Model& m = *static_cast<Model*>(handle);
    if (m.trace) return 2;
    if (std::FILE* const f = std::fopen(path, "wb")) {
        std::fclose(f);
    } else {
        return 3;
    }
    t_current = &m;
    auto trace = std::make_unique<VerilatedFstC>();
    m.ctx->trace(trace.get(), 99);  // all models of the context
    trace->open(path);
    m.trace = std::move(trace);
    return 0;
#else
    (void)handle;
    (void)path;
    return 1;
#endif
}

// For models that share a trace: its owner dumps once all of them are evaluated.
static void onr_trace_dump(void* handle, uint64_t time_ps) {
    dump(*static_cast<Model*>(handle), time_ps);
}

static void onr_trace_flush(void* handle) {
#ifdef ONR_TRACE
    Model& m = *static_cast<Model*>(handle);
    if (m.trace) m.trace->flush();
#else
    (void)handle;
#endif
}

static void onr_trace_close(void* handle) { close_trace(*static_cast<Model*>(handle)); }

const OnrApi* onr_api() {
    static const OnrApi api = {
        2,
        ONR_NUM_PORTS,
        onr_create,
        onr_destroy,
        onr_port,
        onr_eval,
        onr_clock,
        onr_settle,
        onr_edge,
        onr_cycles,
        onr_stopped,
        onr_stop_place,
        onr_trace_open,
        onr_trace_dump,
        onr_trace_flush,
        onr_trace_close,
    };
    return &api;
}

}  // extern "C"
