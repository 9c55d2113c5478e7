// peer_onednn.cc: softmax of oneDNN, its logarithm and its gradient. DNNL_MAX_CPU_ISA=AVX2 in the environment limits the whole process.
#include "kernels.h"

#include <dnnl.h>

namespace {

struct primitive {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description, forward; // forward: what a gradient must be told; or null
    dnnl_primitive_t execute;
    dnnl_exec_arg_t args[3];
    int count;
};

void ok(dnnl_status_t status) { must(status == dnnl_success, "oneDNN"); }

void add(primitive *p, const dnnl_memory_desc_t &memory, int arg, void *data) {
    p->args[p->count].arg = arg;
    ok(dnnl_memory_create(&p->args[p->count++].memory, &memory, p->engine, data));
}

enum function { SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD };

void *open(const work *w, int axis, function f) {
    const dnnl_dim_t rows = static_cast<dnnl_dim_t>(w->rows), cols = static_cast<dnnl_dim_t>(w->cols);
    const dnnl_dims_t dims = {axis ? rows : cols, axis ? cols : rows};
    dnnl_memory_desc_t memory;
    dnnl_softmax_desc_t operation;
    primitive *p = new primitive();
    ok(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
    ok(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
    ok(dnnl_memory_desc_init_by_tag(&memory, 2, dims, dnnl_f32, dnnl_ab));
    if (f == LOG_SOFTMAX) {
        ok(dnnl_logsoftmax_forward_desc_init(&operation, dnnl_forward_inference, &memory, axis));
    } else {
        ok(dnnl_softmax_forward_desc_init(&operation, f == SOFTMAX ? dnnl_forward_inference : dnnl_forward_training,
                                          &memory, axis));
    }
    ok(dnnl_primitive_desc_create(&p->description, &operation, nullptr, p->engine, nullptr));
    if (f == SOFTMAX_BACKWARD) {
        p->forward = p->description;
        ok(dnnl_softmax_backward_desc_init(&operation, &memory, &memory, axis));
        ok(dnnl_primitive_desc_create(&p->description, &operation, nullptr, p->engine, p->forward));
        add(p, memory, DNNL_ARG_DIFF_DST, w->gy);
        add(p, memory, DNNL_ARG_DIFF_SRC, w->gx);
    } else {
        add(p, memory, DNNL_ARG_SRC, w->x);
    }
    add(p, memory, DNNL_ARG_DST, w->y);
    ok(dnnl_primitive_create(&p->execute, p->description));
    return p;
}

void *open_softmax(const work *w) { return open(w, 1, SOFTMAX); }
void *open_log_softmax(const work *w) { return open(w, 1, LOG_SOFTMAX); }
void *open_softmax_backward(const work *w) { return open(w, 1, SOFTMAX_BACKWARD); }
void *open_axis(const work *w) { return open(w, 0, SOFTMAX); }

void run(const work *, void *state) {
    const primitive *p = static_cast<primitive *>(state);
    ok(dnnl_primitive_execute(p->execute, p->stream, p->count, p->args));
    ok(dnnl_stream_wait(p->stream));
}

// The y that the gradient reads.
void forward(const work *w, void *) {
    must(mmax_softmax_f32(static_cast<float *>(w->y), static_cast<const float *>(w->x), mmax_rows(w->rows, w->cols)) ==
             MMAX_OK,
         "softmax");
}

void close(void *state) {
    primitive *p = static_cast<primitive *>(state);
    for (int i = 0; i < p->count; ++i) { dnnl_memory_destroy(p->args[i].memory); }
    dnnl_primitive_destroy(p->execute);
    dnnl_primitive_desc_destroy(p->description);
    if (p->forward) { dnnl_primitive_desc_destroy(p->forward); }
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
    delete p;
}

const char *name() { return dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx2 ? "onednn-avx2" : "onednn"; }

} // namespace

const kernel peer_onednn[] = {
    {"softmax", name(), FORWARD, 0, 0, 2, run, nullptr, open_softmax, close},
    {"log_softmax", name(), FORWARD, 0, 0, 2, run, nullptr, open_log_softmax, close},
    {"softmax_backward", name(), BACKWARD, 0, 0, 3, run, forward, open_softmax_backward, close},
    {"softmax_axis", name(), FORWARD, 0, 0, 2, run, nullptr, open_axis, close},
    {nullptr, nullptr, FORWARD, 0, 0, 0, nullptr, nullptr, nullptr, nullptr},
};
