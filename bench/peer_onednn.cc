// peer_onednn.cc: softmax of oneDNN. DNNL_MAX_CPU_ISA=AVX2 in the environment limits the whole process.
#include "kernels.h"

#include <dnnl.h>

namespace {

struct softmax {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[2];
};

void ok(dnnl_status_t status) { must(status == dnnl_success, "oneDNN"); }

void *open(const work *w, int axis) {
    const dnnl_dim_t rows = static_cast<dnnl_dim_t>(w->rows), cols = static_cast<dnnl_dim_t>(w->cols);
    const dnnl_dims_t dims = {axis ? rows : cols, axis ? cols : rows};
    dnnl_memory_desc_t memory;
    dnnl_softmax_desc_t operation;
    softmax *s = new softmax;
    ok(dnnl_engine_create(&s->engine, dnnl_cpu, 0));
    ok(dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags));
    ok(dnnl_memory_desc_init_by_tag(&memory, 2, dims, dnnl_f32, dnnl_ab));
    ok(dnnl_softmax_forward_desc_init(&operation, dnnl_forward_inference, &memory, axis));
    ok(dnnl_primitive_desc_create(&s->description, &operation, nullptr, s->engine, nullptr));
    ok(dnnl_primitive_create(&s->primitive, s->description));
    s->args[0].arg = DNNL_ARG_SRC;
    s->args[1].arg = DNNL_ARG_DST;
    ok(dnnl_memory_create(&s->args[0].memory, &memory, s->engine, w->x));
    ok(dnnl_memory_create(&s->args[1].memory, &memory, s->engine, w->y));
    return s;
}

void *open_softmax(const work *w) { return open(w, 1); }
void *open_axis(const work *w) { return open(w, 0); }

void run_softmax(const work *, void *state) {
    const softmax *s = static_cast<softmax *>(state);
    ok(dnnl_primitive_execute(s->primitive, s->stream, 2, s->args));
    ok(dnnl_stream_wait(s->stream));
}

void close_softmax(void *state) {
    softmax *s = static_cast<softmax *>(state);
    dnnl_memory_destroy(s->args[0].memory);
    dnnl_memory_destroy(s->args[1].memory);
    dnnl_primitive_destroy(s->primitive);
    dnnl_primitive_desc_destroy(s->description);
    dnnl_stream_destroy(s->stream);
    dnnl_engine_destroy(s->engine);
    delete s;
}

const char *name() { return dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx2 ? "onednn-avx2" : "onednn"; }

} // namespace

const kernel peer_onednn[] = {
    {"softmax", name(), FORWARD, 0, 0, 2, run_softmax, nullptr, open_softmax, close_softmax},
    {"softmax_axis", name(), FORWARD, 0, 0, 2, run_softmax, nullptr, open_axis, close_softmax},
    {nullptr, nullptr, FORWARD, 0, 0, 0, nullptr, nullptr, nullptr, nullptr},
};
