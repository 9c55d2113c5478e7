// main.cc: times every kernel on every shape with Google Benchmark. The name of a benchmark is
// FUNCTION_TYPE/BY/ROWSxCOLS/sdS, where S is the standard deviation of the logits. It ends in sdS-gG if gy, or the
// grad_scale of a loss, has the size G instead of 1.
//
//     bench                                                  the benchmarks of report.py: some minutes
//     bench --all                                            all benchmarks: hours
//     bench --benchmark_filter='^softmax_f32/.*/64x4096/'    a part of all benchmarks
//
// The repetitions of all benchmarks run in random order, on one thread. Medians go to the terminal; medians and
// quartiles go to the file of --benchmark_out. Progress goes to the standard error.
#include "kernels.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#    include <dlfcn.h>
#    include <unistd.h>
#endif

namespace {

bool starts_with(const char *s, const char *prefix) { return std::strncmp(s, prefix, std::strlen(prefix)) == 0; }

bool ends_with(const char *s, const char *suffix) {
    const size_t length = std::strlen(s), end = std::strlen(suffix);
    return length >= end && std::strcmp(s + length - end, suffix) == 0;
}

bool standard_error_is_terminal() {
#if defined(__unix__) || defined(__APPLE__)
    return isatty(2) != 0;
#else
    return false;
#endif
}

struct Shape {
    size_t rows, cols;
};
const Shape row_shapes[] = {{65536, 10}, {65536, 16}, {16384, 63}, {4096, 64},   {1024, 256},  {256, 1024},
                            {64, 4096},  {8, 32000},  {4, 131072}, {1, 1048576}, {1, 16777216}};
const Shape short_shapes[] = {{8192, 2}, {8192, 4}, {8192, 8}, {4096, 16}, {2048, 32}, {1024, 64}}; // fit L2
const size_t call_lengths[] = {8, 16, 32, 64, 128, 256, 512}; // row lengths of calls on one row
const size_t calls = 64;                                      // rows of a kernel named _calls or _few
const Shape router_shapes[] = {{65536, 64}, {65536, 128}};    // mixtures of experts
const Shape gradient_shapes[] = {{4096, 8},  {2048, 16}, {1024, 32}, {512, 64},
                                 {128, 256}, {32, 1024}, {8, 4096}}; // for backward functions and losses: fit L2
const Shape vocabulary = {8, 32000};                                 // for losses
const Shape axis_shapes[] = {{8400, 16}, {65536, 21}, {8400, 80}, {49, 1000}}; // boxes, pixels, classes
const int spreads[] = {1, 4, 30};
// Sharp rows, and the mean over a batch, give gradients below the normal numbers.
const Shape sharp_backward = {256, 1024}, sharp_loss = {64, 4096};
const double sizes[] = {1e-4, 1e-8};

struct Case {
    const kernel *k;
    std::string by;
    mmax_isa isa; // MMAX_ISA_COUNT: a peer
    Shape shape;
    int spread;
    accuracy found;
    double size = 1;

    bool own() const { return isa != MMAX_ISA_COUNT; }
    std::string name() const {
        return std::string(k->function) + (k->f64 ? "_f64/" : "_f32/") + by + "/" + std::to_string(shape.rows) + "x" +
               std::to_string(shape.cols) + "/sd" + std::to_string(spread) +
               (size == 1     ? ""
                : size > 1e-6 ? "-g1e-4"
                              : "-g1e-8");
    }
};

// ==== data ====

// All benchmarks use the same arrays, so that the place of its pages favours none.
class Arrays {
  public:
    work fill(const Case &c) {
        const size_t n = c.shape.rows * c.shape.cols;
        work w = {c.shape.rows, c.shape.cols, nullptr, nullptr, nullptr, nullptr,
                  nullptr,      nullptr,      nullptr, nullptr, c.size};
        while (normals.size() < n) { normals.push_back(distribution(generator)); }
        per_row.resize(std::max(per_row.size(), w.rows));
        index.resize(w.rows);
        lengths.resize(w.rows);
        starts.resize(w.rows);
        for (size_t r = 0; r < w.rows; ++r) {
            index[r] = static_cast<int32_t>(r * 7919 % w.cols);
            lengths[r] = static_cast<uint32_t>(w.cols - r * 7919 % (w.cols / 2 + 1));
        }
        for (size_t r = 0; r < w.rows; ++r) {
            starts[r] = static_cast<uint32_t>(r * 8 / w.rows * 7919 % (w.cols / 8 + 1));
        }
        w.starts = starts.data();
        w.per_row = per_row.data();
        w.index = index.data();
        w.lengths = lengths.data();
        void **arrays[] = {&w.x, &w.y, &w.gy, &w.gx};
        for (size_t a = 0; a < 4; ++a) {
            if (c.k->f64) {
                *arrays[a] = fill_one<double>(a, n, c);
            } else {
                *arrays[a] = fill_one<float>(a, n, c);
            }
        }
        return w;
    }

  private:
    // x is from N(0, spread^2), gy from N(0, size^2), outputs are 0. The arrays start at cache lines that differ modulo
    // 4096: otherwise the processor may take a store for the source of the next load.
    template <class T> T *fill_one(size_t a, size_t n, const Case &c) {
        const size_t skew = 1088 * a, bytes = n * sizeof(T) + skew + 64;
        std::vector<char> &store = bytes_of[a];
        if (store.size() < bytes) { store = std::vector<char>(bytes); }
        void *start = store.data();
        size_t space = store.size();
        T *t = reinterpret_cast<T *>(static_cast<char *>(std::align(64, 1, start, space)) + skew);
        for (size_t i = 0; i < n; ++i) {
            t[i] = a == 0   ? static_cast<T>(static_cast<float>(c.spread) * normals[i])
                   : a == 2 ? static_cast<T>(c.size) * static_cast<T>(normals[n - 1 - i])
                            : 0;
        }
        return t;
    }

    std::mt19937 generator{1};
    std::normal_distribution<float> distribution;
    std::vector<float> normals;
    std::vector<char> bytes_of[4];
    std::vector<double> per_row;
    std::vector<int32_t> index;
    std::vector<uint32_t> lengths, starts;
};

// ==== progress ====

// Prints a line on the standard error: every second on a terminal, every ten seconds in a file.
class Progress {
  public:
    void expect(size_t cases, size_t repetitions) { expected = static_cast<double>(cases * (repetitions + TRIALS)); }
    void step() {
        const double now = seconds();
        ++done;
        if (now < shown + (terminal ? 1 : 10)) { return; }
        shown = now;
        const double share = std::min(done / std::max(expected, 1.0), 0.99);
        char left[32] = ""; // the calls that find the number of iterations come first, and are shorter
        if (share > 0.15) { std::snprintf(left, sizeof left, ", %.0f s left", now * (1 - share) / share); }
        std::fprintf(stderr, terminal ? "\rbenchmarks: %3.0f %%%s   " : "benchmarks: %3.0f %%%s\n", 100 * share, left);
        std::fflush(stderr);
    }
    void end() const {
        if (terminal && shown > 0) { std::fprintf(stderr, "\r%40s\r", ""); }
    }

  private:
    enum { TRIALS = 2 }; // average number of calls that find the number of iterations
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    const bool terminal = standard_error_is_terminal();
    double expected = 0, done = 0, shown = 0;
};

// Prints medians only. It leaves out the library's remarks about its own build: the timed code is compiled here.
class Medians : public benchmark::ConsoleReporter {
  public:
    explicit Medians(bool on_terminal) : ConsoleReporter(OO_Tabular), shows(on_terminal) {}
    bool ReportContext(const Context &context) override {
        name_field_width_ = context.name_field_width;
        return true;
    }
    void ReportRuns(const std::vector<Run> &runs) override {
        std::vector<Run> medians;
        for (const Run &run : runs) {
            if (run.run_type != Run::RT_Aggregate || run.aggregate_name == "median") { medians.push_back(run); }
        }
        for (Run &run : medians) { // without the library's unit, which is s here
            const auto found = run.counters.find("ns_per_entry");
            if (found != run.counters.end()) { found->second.flags = benchmark::Counter::kDefaults; }
        }
        if (shows && !medians.empty()) { ConsoleReporter::ReportRuns(medians); }
    }

  private:
    const bool shows;
};

// ==== one benchmark ====

// Whether the result breaks a promise of multimax.h that a few rows can show.
bool promise_broken(const Case &c) {
    const bool softmax = std::strcmp(c.k->function, "softmax") == 0;
    return c.own() && c.found.measured &&
           (!(c.found.sum <= (c.k->f64 ? 1e-14 : 1e-6)) || (softmax && !(c.found.ulp <= 5)));
}

void run(benchmark::State &state, Case &c, Arrays &arrays, Progress &progress) {
    progress.step();
    const work w = arrays.fill(c);
    if (c.own()) { must(mmax_isa_select(c.isa) == MMAX_OK, "mmax_isa_select"); }
    void *opened = c.k->open ? c.k->open(&w) : nullptr;
    if (c.k->forward) { c.k->forward(&w, opened); }
    c.k->run(&w, opened);
    for (auto _ : state) {
        c.k->run(&w, opened);
        benchmark::ClobberMemory();
    }
    if (c.k->close) { c.k->close(opened); }
    if (!c.found.measured && c.size == 1) { c.found = accuracy_of(c.k, &w); }
    const double entries = static_cast<double>(w.rows * w.cols);
    const double size = c.k->f64 ? sizeof(double) : sizeof(float);
    using benchmark::Counter;
    state.counters["ns_per_entry"] = Counter(entries * 1e-9, Counter::kIsIterationInvariantRate | Counter::kInvert);
    state.counters["bytes_per_second"] = Counter(entries * size * c.k->arrays, Counter::kIsIterationInvariantRate);
    if (c.found.measured) { state.counters["max_ulp"] = c.found.ulp; }
    if (c.found.measured && c.found.sum >= 0) { state.counters["sum_error"] = c.found.sum; }
    if (promise_broken(c)) {
        std::fprintf(stderr, "ERROR: %s: a row is less accurate than multimax.h promises\n", c.name().c_str());
        state.SkipWithError("a row is less accurate than multimax.h promises");
    }
}

// ==== the list ====

const kernel *const tables[] = {
    multimax_f32, multimax_f64, peer_limits, peer_loops_O2,  peer_loops_fast,
    peer_sort,    peer_topk,    peer_condat, peer_attention,
#ifdef HAVE_ONEDNN
    peer_onednn,
#endif
#ifdef HAVE_XNNPACK
    peer_xnnpack,
#endif
#ifdef HAVE_TORCH
    peer_torch,
#endif
#ifdef HAVE_SLEEF
    peer_sleef,
#endif
};

// Whether gradients of all sizes are timed on this shape.
bool is_sharp(const Case &c) {
    const Shape &shape = c.k->what == BACKWARD ? sharp_backward : sharp_loss;
    return (c.k->what == BACKWARD || c.k->what == LOSS) && c.shape.rows == shape.rows && c.shape.cols == shape.cols;
}

bool is_axis(const Case &c) { return std::strstr(c.k->function, "_axis") != nullptr; }

bool is_softmax(const Case &c) { return std::strcmp(c.k->function, "softmax") == 0; }

// Whether short rows of this function are timed, too.
bool is_everyday(const Case &c) {
    static const char *const names[] = {"multimax1", "multimax2", "sparsemax", "entmax15", "evsoftmax", "tanhmax"};
    return std::any_of(std::begin(names), std::end(names),
                       [&](const char *name) { return std::strcmp(c.k->function, name) == 0; });
}

bool is_calls(const Case &c) { return ends_with(c.k->function, "_calls") || ends_with(c.k->function, "_few"); }

// Softmax is timed at every length of calls, others at some.
bool is_usual(const Case &c, size_t length) {
    return std::strcmp(c.k->function, "softmax_calls") == 0 || length == 8 || length == 16 || length == 64 ||
           length == 256;
}

// Whether single rows of this function of a peer are timed.
bool has_calls(const Case &c) {
    return is_softmax(c) || std::strcmp(c.k->function, "log_softmax") == 0 ||
           std::strcmp(c.k->function, "softmax_backward") == 0;
}

// Whether this is a single row of a peer that has no kernel named _calls.
bool is_call(const Case &c) { return c.shape.rows == 1 && c.shape.cols <= 512; }

bool is_one_of(const Shape &shape, const Shape *first, const Shape *last) {
    return std::any_of(first, last, [&](const Shape &s) { return s.rows == shape.rows && s.cols == shape.cols; });
}

// Whether report.py has a table for this case. If there is a better instruction set, AVX2 is timed for softmax only.
bool in_report(const Case &c, mmax_isa best) {
    const std::string function = c.k->function;
    const bool threshold = function == "sparsemax" || function == "entmax15", of_best = c.isa == best || !c.own();
    const bool gradient = c.k->what == BACKWARD || c.k->what == LOSS || c.k->what == VALUE;
    if (c.k->what == METRIC || (c.own() && c.isa != best && c.isa != MMAX_ISA_AVX2)) { return false; }
    if (!of_best && (c.k->f64 || function.compare(0, 7, "softmax") != 0)) { return false; }
    if (!is_softmax(c) && starts_with(c.k->by, "loop") && (c.by == "loop-O2" || c.spread != 4)) { return false; }
    if (is_axis(c) || is_calls(c) || is_call(c)) { return c.spread == 4 && c.size == 1 && !c.k->f64; }
    if (function.compare(0, 9, "attention") == 0) {
        return !c.k->f64 && c.spread == 4 && c.shape.cols >= 64 && c.shape.cols <= 4096;
    }
    if (gradient) {
        const bool fits = is_one_of(c.shape, std::begin(gradient_shapes), std::end(gradient_shapes)),
                   vocabularies = c.k->what != BACKWARD && c.shape.cols == vocabulary.cols;
        if (c.spread == 30) { return c.isa == best && !c.k->f64 && is_sharp(c); }
        return c.spread == 4 && c.size == 1 && of_best && !c.k->f64 &&
               (fits || vocabularies || (c.own() && is_sharp(c)));
    }
    if (is_one_of(c.shape, std::begin(short_shapes), std::end(short_shapes))) {
        return c.spread == 4 && !c.k->f64 && (of_best || is_softmax(c));
    }
    if (c.shape.cols > 131072 && !is_softmax(c) && function != "limit") { return false; }
    if (c.k->f64) { return c.spread == 4 && c.shape.cols <= 32000; }
    return c.spread == 4 || (c.spread == 1 && threshold) || (c.spread == 30 && c.isa == best);
}

void add_shapes(std::vector<Case> &cases, Case c) {
    const auto add = [&](const Shape &shape) {
        c.shape = shape;
        for (int spread : spreads) {
            c.spread = spread;
            cases.push_back(c);
        }
        for (double size : sizes) {
            if (c.own() && is_sharp(c)) {
                cases.push_back(c);
                cases.back().size = size;
            }
        }
    };
    for (const Shape &shape : axis_shapes) {
        if (is_axis(c)) { add(shape); }
    }
    if (is_axis(c)) { return; }
    for (size_t length : call_lengths) {
        const bool peer = !c.own() && !starts_with(c.k->by, "loop") && has_calls(c);
        if (is_calls(c) ? is_usual(c, length) : peer) { add({is_calls(c) ? calls : 1, length}); }
    }
    if (is_calls(c)) { return; }
    for (const Shape &shape : row_shapes) { add(shape); }
    for (const Shape &shape : router_shapes) {
        if (starts_with(c.k->function, "topk") || is_softmax(c)) { add(shape); }
    }
    for (const Shape &shape : short_shapes) {
        if (is_softmax(c) || (c.k->what == FORWARD && c.own() && is_everyday(c))) { add(shape); }
    }
    for (const Shape &shape : gradient_shapes) {
        if (c.k->what == BACKWARD || c.k->what == LOSS || c.k->what == VALUE) { add(shape); }
    }
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const kernel *table : tables) {
        for (const kernel *k = table; k->function; ++k) {
            Case c = {k, k->by, MMAX_ISA_COUNT, {0, 0}, 0, {0, -1, 0}};
            if (table != multimax_f32 && table != multimax_f64) {
                add_shapes(cases, c);
                continue;
            }
            for (int isa = 0; isa < MMAX_ISA_COUNT; ++isa) {
                c.isa = static_cast<mmax_isa>(isa);
                c.by = std::string(k->by) + "-" + mmax_isa_name(c.isa);
                if (mmax_isa_available(c.isa)) { add_shapes(cases, c); }
            }
        }
    }
    return cases;
}

// ==== the program ====

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}
double lower_quartile(const std::vector<double> &values) { return quantile(values, 0.25); }
double upper_quartile(const std::vector<double> &values) { return quantile(values, 0.75); }

// Limits the OpenMP runtime of a peer, if there is one.
void use_one_thread() {
#if defined(__unix__) || defined(__APPLE__)
    using set_threads = void (*)(int);
    if (const auto set = reinterpret_cast<set_threads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) { set(1); }
#endif
}

std::string processor() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.compare(0, 10, "model name") == 0) { return line.substr(line.find(':') + 2); }
    }
    return "unknown";
}

} // namespace

int main(int argc, char **argv) {
    static char repetitions[] = "--benchmark_repetitions=9", min_time[] = "--benchmark_min_time=0.01",
                interleave[] = "--benchmark_enable_random_interleaving=true",
                aggregates[] = "--benchmark_report_aggregates_only=true";
    std::vector<char *> args = {argv[0], repetitions, min_time, interleave, aggregates};
    bool everything = false, to_file = false;
    std::regex filter("");
    size_t repeated = 9;
    for (int i = 1; i < argc; ++i) { // given options follow the defaults and replace them
        const bool all = std::strcmp(argv[i], "--all") == 0;
        everything = everything || all || starts_with(argv[i], "--benchmark_filter=");
        if (starts_with(argv[i], "--benchmark_filter=")) { filter = std::strchr(argv[i], '=') + 1; }
        to_file = to_file || starts_with(argv[i], "--benchmark_out=");
        if (starts_with(argv[i], "--benchmark_repetitions=")) {
            repeated = static_cast<size_t>(std::max(std::atoi(std::strchr(argv[i], '=') + 1), 1));
        }
        if (!all) { args.push_back(argv[i]); }
    }
    int count = static_cast<int>(args.size());

    const mmax_isa best = mmax_isa_active();
    Arrays arrays;
    Progress progress;
    std::vector<Case> cases = all_cases();
    use_one_thread();
    benchmark::AddCustomContext("processor", processor());
    benchmark::AddCustomContext("compiler", COMPILER);
    benchmark::AddCustomContext("multimax", MULTIMAX_VERSION);
    benchmark::AddCustomContext("isa", mmax_isa_name(best));
    benchmark::Initialize(&count, args.data());
    if (benchmark::ReportUnrecognizedArguments(count, args.data())) { return 1; }
    size_t count_of_cases = 0;
    for (Case &c : cases) {
        if (everything || in_report(c, best)) {
            benchmark::RegisterBenchmark(c.name().c_str(),
                                         [&](benchmark::State &state) { run(state, c, arrays, progress); })
                ->ComputeStatistics("low", lower_quartile)
                ->ComputeStatistics("high", upper_quartile);
            count_of_cases += std::regex_search(c.name(), filter);
        }
    }
    progress.expect(count_of_cases, repeated);
    Medians reporter(!to_file);
    benchmark::RunSpecifiedBenchmarks(&reporter);
    progress.end();
    benchmark::Shutdown();
    return 0;
}
