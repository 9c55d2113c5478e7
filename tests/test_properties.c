/*
 * test_properties.c: the papers' propositions, as properties of random rows.
 *
 * "MultiMax": Zhou, Fritz, Keuper, "MultiMax: Sparse and Multi-Modal Attention Learning", ICML 2024. Its temperature
 * is 1/scale here.
 */
#define WITH_MORE_FUNCTIONS
#include "function_table.h"

enum { TRIALS = 60 };

static double y_storage[2][MAX_ENTRIES];

static const function *of_type(const char *name, int f64) {
    char full[64];
    sprintf(full, "%s_%s", name, f64 ? "f64" : "f32");
    return function_named(full);
}

/* Metric `name` of y = phi(scale * x) with the parameters of c, on the x of c. */
static double metric(const char *name, const function *phi, const call *c, double epsilon, double reference) {
    const function *f = of_type(name, phi->size == 8);
    call m = *c;
    double value = 0;
    m.array[OUT] = m.array[Y] = y_storage[0];
    CHECK(phi->run(&m) == MMAX_OK, AT, AT_ARGS(phi, c->s.cols));
    m.per_row = &value;
    m.epsilon = epsilon;
    m.reference = reference;
    CHECK(f->run(&m) == MMAX_OK, AT, AT_ARGS(f, c->s.cols));
    return value;
}

static double tolerance(const function *f) { return 100 * eps_of(f); }

static double mean_below(const function *f, const call *c, double bound, size_t *count) {
    double sum = 0;
    *count = 0;
    for (size_t i = 0; i < c->s.cols; ++i) {
        double x = get(f, c->array[X], i);
        sum += x < bound ? x : 0;
        *count += x < bound;
    }
    return *count ? sum / (double)*count : 0;
}

static double extreme(const function *f, const call *c, int sign) {
    double e = get(f, c->array[X], 0);
    for (size_t i = 1; i < c->s.cols; ++i) {
        double x = get(f, c->array[X], i);
        e = sign * x > sign * e ? x : e;
    }
    return e;
}

/* ==== MultiMax, sections 3.2 and 4.2, appendix B ==== */

static void test_temperature(void) {
    TEST("proposition 3.5: a higher temperature raises multi-modality and lowers sparsity of softmax") {
        FOR_EACH_ISA(isa)
            for (int k = 0; k < 2 * TRIALS; ++k) {
                const function *softmax = of_type("softmax", k % 2);
                size_t n = 2 + (size_t)k, all;
                call c = call_of(softmax, 1, n, NORMAL_1, 80 + (uint64_t)k);
                double mean = mean_below(softmax, &c, 1e9, &all), last_m = 0, last_s = 2;
                for (double temperature = 0.1; temperature < 20; temperature *= 1.5) {
                    double m, s;
                    c.s.scale = 1 / temperature;
                    m = metric("multimodality", softmax, &c, mean - 1, 0);
                    s = metric("sparsity", softmax, &c, mean, 1 / (double)n); /* the proposition: epsilon <= the mean */
                    CHECK(m >= last_m - tolerance(softmax) || is_nan_double(m), AT ": temperature %g: %g after %g",
                          AT_ARGS(softmax, n), temperature, m, last_m);
                    CHECK(s <= last_s + tolerance(softmax), AT ": temperature %g: %g after %g", AT_ARGS(softmax, n),
                          temperature, s, last_s);
                    last_m = m;
                    last_s = s;
                }
            }
    }
}

/* The scale at which softmax is as sparse as `sparsity` says: it grows with the scale (proposition 3.5). */
static double scale_of_sparsity(const function *softmax, const call *c, double epsilon, double reference,
                                double sparsity) {
    call s = *c;
    double low = 1, high = 64;
    for (int k = 0; k < 40; ++k) {
        s.s.scale = sqrt(low * high);
        if (metric("sparsity", softmax, &s, epsilon, reference) < sparsity) {
            low = s.s.scale;
        } else {
            high = s.s.scale;
        }
    }
    return high;
}

/* A random row, and parameters of order 1 with t_b > 1. */
static call row_with_term_1(const function *f, size_t n, int k, uint64_t seed, mmax_multimax_params *p) {
    call c = call_of(f, 1, n, k % 3 ? NORMAL_1 : NORMAL_4, seed + (uint64_t)k);
    *p = mmax_multimax_identity(1);
    p->t_b[0] = 1.1 + 2 * random_uniform();
    c.p = p;
    return c;
}

/* The bound of lemma A.2, which asks for epsilon <= (sum of x_l - ln L) / L; *small is L. */
static double epsilon_of(const function *f, const call *c, double b, size_t *small) {
    const double mean = mean_below(f, c, b, small);
    return mean - (*small ? log((double)*small) / (double)*small : 0);
}

static void check_sparser(const function *softmax, const function *multimax, const call *c, double epsilon, size_t n,
                          double *s) {
    const double s_softmax = metric("sparsity", softmax, c, epsilon, 1 / (double)n);
    *s = metric("sparsity", multimax, c, epsilon, 1 / (double)n);
    CHECK(*s >= s_softmax - tolerance(softmax), AT ": sparsity %g, softmax %g", AT_ARGS(multimax, n), *s, s_softmax);
}

static void test_multimax_l(void) {
    /*
     * The second statement compares with SoftMax at temperature 1, where it does not hold as written: what term (1)
     * takes from small entries goes to large ones, and with it every difference y_max - y_n grows by the same factor.
     * The claim that matters is the one on Pareto efficiency drawn from it: SoftMax as sparse is less multi-modal.
     */
    TEST("proposition 4.2, t_b > 1: sparser than SoftMax; SoftMax as sparse by its temperature is less multi-modal") {
        unsigned tried = 0;
        FOR_EACH_ISA(isa)
            for (int k = 0; k < 4 * TRIALS; ++k) {
                const function *softmax = of_type("softmax", k % 2), *multimax = of_type("multimax(1)", k % 2);
                size_t n = 3 + (size_t)k / 2, small;
                mmax_multimax_params p;
                call c = row_with_term_1(softmax, n, k, 81, &p);
                double epsilon, s, m, m_softmax;
                p.b[0] = random_normal();
                epsilon = epsilon_of(softmax, &c, p.b[0], &small);
                if (small == 0 || extreme(softmax, &c, -1) >= epsilon || extreme(softmax, &c, 1) <= p.b[0]) {
                    continue;
                }
                check_sparser(softmax, multimax, &c, epsilon, n, &s);
                m = metric("multimodality", multimax, &c, p.b[0], 0);
                if (is_nan_double(m)) { continue; /* one large entry only */ }
                c.s.scale = scale_of_sparsity(softmax, &c, epsilon, 1 / (double)n, s);
                m_softmax = metric("multimodality", softmax, &c, p.b[0], 0);
                CHECK(m >= m_softmax - tolerance(softmax), AT ": multi-modality %g, softmax as sparse %g",
                      AT_ARGS(multimax, n), m, m_softmax);
                ++tried;
            }
        CHECK(tried > TRIALS, "only %u rows met the conditions", tried);
    }
}

static void test_multimax(void) {
    TEST("proposition 4.3, t_b > 1 and t_d < 1: sparser than SoftMax, more multi-modal than with term (1) alone") {
        unsigned tried = 0;
        FOR_EACH_ISA(isa)
            for (int k = 0; k < 4 * TRIALS; ++k) {
                const function *softmax = of_type("softmax", k % 2), *multimax = of_type("multimax(1)", k % 2);
                size_t n = 3 + (size_t)k / 2, small;
                mmax_multimax_params p;
                call c = row_with_term_1(softmax, n, k, 82, &p);
                double top = extreme(softmax, &c, 1), epsilon, by_slopes, s, m, m_first;
                p.t_d[0] = random_uniform();
                p.b[0] = random_normal();
                p.d[0] = p.b[0] + random_uniform();
                epsilon = epsilon_of(softmax, &c, p.b[0], &small);
                by_slopes = p.b[0] - (1 - p.t_d[0]) / (p.t_b[0] - 1) * (top - p.d[0]);
                epsilon = fmin(epsilon, by_slopes);
                if (top > p.d[0]) {
                    mmax_multimax_params first = p;
                    m = metric("multimodality", multimax, &c, p.d[0], 0);
                    first.t_d[0] = 1;
                    c.p = &first;
                    m_first = metric("multimodality", multimax, &c, p.d[0], 0);
                    c.p = &p;
                    CHECK(m >= m_first - tolerance(softmax) || is_nan_double(m),
                          AT ": multi-modality %g, without term (2) %g", AT_ARGS(multimax, n), m, m_first);
                }
                if (small == 0 || extreme(softmax, &c, -1) >= epsilon || top <= p.d[0]) { continue; }
                check_sparser(softmax, multimax, &c, epsilon, n, &s);
                ++tried;
            }
        CHECK(tried > TRIALS / 2, "only %u rows met the conditions", tried);
    }
}

/* ==== supports and the projection ==== */

static void test_supports(void) {
    TEST("the support of entmax15 lies between that of sparsemax and that of softmax, which is full") {
        FOR_EACH_ISA(isa)
            FOR_EACH_LENGTH(n)
                for (int k = 0; k < 2 * 8; ++k) {
                    const function *sparse = of_type("sparsemax", k % 2), *between = of_type("entmax15", k % 2);
                    call c = call_of(sparse, 1, n, k % 4 < 2 ? NORMAL_1 : NORMAL_4, 83 + (uint64_t)k), e = c, s = c;
                    const function *softmax = of_type("softmax", k % 2);
                    e.array[OUT] = y_storage[0];
                    s.array[OUT] = y_storage[1];
                    CHECK(sparse->run(&c) == MMAX_OK && between->run(&e) == MMAX_OK && softmax->run(&s) == MMAX_OK,
                          "status");
                    for (size_t i = 0; i < n; ++i) {
                        CHECK(get(sparse, c.array[OUT], i) == 0 || get(sparse, e.array[OUT], i) > 0,
                              AT ": entry %u is in sparsemax's support alone", AT_ARGS(sparse, n), (unsigned)i);
                        CHECK(get(sparse, s.array[OUT], i) > 0, AT ": softmax is 0 at %u", AT_ARGS(sparse, n),
                              (unsigned)i);
                    }
                }
    }
}

static double squared_distance(const function *f, const call *c, const double *q) {
    double sum = 0;
    for (size_t i = 0; i < c->s.cols; ++i) {
        double d = get(f, c->array[X], i) - q[i];
        sum += d * d;
    }
    return sum;
}

/* q becomes a point of the simplex, seldom inside: a random convex combination with y, or of a few corners. */
static void random_simplex_point(double *q, const double *y, size_t n) {
    double weight = random_below(2) ? random_uniform() : 1, left = 1;
    for (size_t i = 0; i < n; ++i) { q[i] = 0; }
    for (int corner = 0; corner < 8; ++corner) {
        double part = corner == 7 ? left : left * random_uniform();
        q[random_below(n)] += part;
        left -= part;
    }
    for (size_t i = 0; i < n; ++i) { q[i] = weight * q[i] + (1 - weight) * y[i]; }
}

static void test_projection(void) {
    TEST("sparsemax is the nearest point of the simplex: no random point is nearer, and the KKT conditions hold") {
        static double y[MAX_ENTRIES], q[MAX_ENTRIES];
        FOR_EACH_ISA(isa)
            FOR_EACH_LENGTH(n)
                for (int k = 0; k < 2 * 8; ++k) {
                    const function *f = of_type("sparsemax", k % 2);
                    call c = call_of(f, 1, n, (law)(k / 2 % TIES), 84 + (uint64_t)k);
                    double nearest, tau = -1e300, scale = fabs(extreme(f, &c, 1)) + 1, top = extreme(f, &c, 1);
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    for (size_t i = 0; i < n; ++i) {
                        y[i] = get(f, c.array[OUT], i);
                        tau = y[i] > 0 && get(f, c.array[X], i) == top ? top - y[i] : tau;
                    }
                    /* stationarity: x - y is tau on the support; complementary slackness: at most tau off it */
                    for (size_t i = 0; i < n; ++i) {
                        double x = get(f, c.array[X], i);
                        CHECK(y[i] > 0 ? fabs(x - y[i] - tau) <= 4 * eps_of(f) * scale
                                       : x <= tau + 4 * eps_of(f) * scale,
                              AT ": entry %u: x %.9g, y %.9g, tau %.9g", AT_ARGS(f, n), (unsigned)i, x, y[i], tau);
                    }
                    nearest = squared_distance(f, &c, y);
                    for (int trial = 0; trial < TRIALS / 4; ++trial) {
                        double distance;
                        random_simplex_point(q, y, n);
                        distance = squared_distance(f, &c, q);
                        CHECK(nearest <= distance + 20 * eps_of(f) * (scale + sqrt(distance)),
                              AT ": %.12g, a random point %.12g", AT_ARGS(f, n), nearest, distance);
                    }
                }
    }
}

/* ==== order, permutations, sign ==== */

static int is_monotone(const function *f) {
    /* order 2's default parameters are not */
    return (f->kind == FORWARD || f->kind == LOGARITHM) && f->order != 2 && !has(f, SELECTS);
}

static void test_order(void) {
    TEST("monotone functions preserve order, to within rounding") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (int l = 0; is_monotone(f) && l <= CLUSTERS; ++l) {
                        call c = call_of(f, 1, n, (law)l, 85);
                        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                        for (size_t i = 0; i < n; ++i) {
                            size_t k = random_below(n);
                            int above = get(f, c.array[X], i) >= get(f, c.array[X], k);
                            double high = get(f, c.array[OUT], above ? i : k),
                                   low = get(f, c.array[OUT], above ? k : i);
                            CHECK(high >= low - 8 * eps_of(f) * fabs(low), AT ": %.9g below %.9g", AT_ARGS(f, n), high,
                                  low);
                        }
                    }
    }
    TEST("a permuted row gives the permuted result, to within rounding") {
        static size_t to[MAX_ENTRIES];
        static double straight[MAX_ENTRIES];
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (has(f, HAS_OUT) && f->kind != LOSS) {
                        call c = call_of(f, 1, n, NORMAL_1, 86), p = c;
                        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                        for (size_t i = 0; i < n; ++i) {
                            size_t k = random_below(i + 1);
                            straight[i] = get(f, c.array[OUT], i);
                            to[i] = to[k];
                            to[k] = i;
                        }
                        for (int r = GY; r <= X; ++r) {
                            memcpy(y_storage[0], c.array[r], n * f->size);
                            for (size_t i = 0; i < n; ++i) {
                                set_bits(f, c.array[r], to[i], get_bits(f, y_storage[0], i));
                            }
                        }
                        CHECK(f->run(&p) == MMAX_OK, AT, AT_ARGS(f, n));
                        for (size_t i = 0; i < n; ++i) {
                            double permuted = get(f, p.array[OUT], to[i]);
                            CHECK(fabs(permuted - straight[i]) <= 50 * eps_of(f) * (1 + fabs(straight[i])),
                                  AT ": %.9g, permuted %.9g", AT_ARGS(f, n), straight[i], permuted);
                        }
                    }
    }
    TEST("tanhmax backward: the same scores at any scale have the same gradient, over the scale") {
        FOR_EACH_ISA(isa)
            for (int k = 0; k < 2; ++k) {
                const function *f = of_type("tanhmax_backward", k);
                const int apart[] = {-60, 60, -40};
                for (size_t i = 0; i < COUNT(apart); ++i) {
                    call c = call_of(f, 1, 19, NORMAL_4, 5);
                    double plain[19];
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 19));
                    for (size_t j = 0; j < 19; ++j) {
                        plain[j] = get(f, c.array[OUT], j);
                        set(f, c.array[X], j, ldexp(get(f, c.array[X], j), -apart[i]));
                    }
                    c.s.scale = ldexp(1, apart[i]);
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 19));
                    for (size_t j = 0; j < 19; ++j) {
                        const double got = ldexp(get(f, c.array[OUT], j), -apart[i]);
                        CHECK(fabs(got - plain[j]) <= tolerance(f), AT ": entry %u is %g, not %g", AT_ARGS(f, 19),
                              (unsigned)j, got, plain[j]);
                    }
                }
            }
    }
    TEST("tanhmax backward: beside a large score nothing is left for 0, and one beyond the type makes NaN") {
        FOR_EACH_ISA(isa)
            for (int k = 0; k < 2; ++k) {
                const function *f = of_type("tanhmax_backward", k);
                call c = call_of(f, 1, 3, NORMAL_4, 5);
                for (double large = 110; large <= 0.5 * largest(f); large *= large < 2000 ? 1.01 : 1e5) {
                    for (size_t j = 0; j < 3; ++j) {
                        set(f, c.array[X], j, ((double)j - 1) * large);
                        set(f, c.array[Y], j, ((double)j - 1) * 0.5);
                        set(f, c.array[GY], j, j == 1);
                    }
                    c.s.scale = 1;
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 3));
                    CHECK(fabs(get(f, c.array[OUT], 1)) <= 4 * exp(-large), AT ": %g beside %g", AT_ARGS(f, 3),
                          get(f, c.array[OUT], 1), large);
                }
                set(f, c.array[X], 0, largest(f));
                c.s.scale = 2;
                CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 3));
                for (size_t j = 0; j < 3; ++j) {
                    CHECK(is_nan_double(get(f, c.array[OUT], j)), AT ": entry %u is not NaN", AT_ARGS(f, 3),
                          (unsigned)j);
                }
            }
    }
    TEST("tanhmax is odd, and its absolute values are below 1") {
        FOR_EACH_ISA(isa)
            FOR_EACH_LENGTH(n)
                for (int k = 0; k < 2 * SUBNORMAL; ++k) {
                    const function *f = of_type("tanhmax", k % 2);
                    call c = call_of(f, 1, n, k / 2 == MASKED ? EQUAL : (law)(k / 2), 87), minus = c;
                    minus.array[OUT] = y_storage[0];
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, -get(f, c.array[X], i)); }
                    CHECK(f->run(&minus) == MMAX_OK, AT, AT_ARGS(f, n));
                    for (size_t i = 0; i < n; ++i) {
                        double a = get(f, c.array[OUT], i), b = get(f, minus.array[OUT], i);
                        CHECK(fabs(a + b) <= 8 * eps_of(f) * fabs(a) && fabs(a) <= 1 + eps_of(f),
                              AT ": %.9g, of -x %.9g", AT_ARGS(f, n), a, b);
                    }
                }
    }
}

int main(void) {
    test_temperature();
    test_multimax_l();
    test_multimax();
    test_supports();
    test_projection();
    test_order();
    return check_report();
}
