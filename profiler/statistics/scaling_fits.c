/* Laws of scaling, fitted to throughput over threads by least squares (Levenberg and Marquardt). A parameter that would
 * be negative is held at 0 and the others fitted again. Amdahl's law is the USL without coherency, so one model serves
 * both; Gustafson's is a line.
 */
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <string.h>

/* Chosen without measurement. */
#define MOST_POINTS 1024
#define RESAMPLES 1000
#define FIT_SEED 0x55534cU
#define PARAMETERS 3

double prn_karp_flatt(double speedup, double threads)
{
    return (1 / speedup - 1 / threads) / (1 - 1 / threads);
}

size_t prn_law_points(prn_law law)
{
    return law == PRN_LAW_USL ? 4 : 3;
}

double prn_law_speedup(prn_law law, const prn_law_fit *fit, double n)
{
    if (law == PRN_LAW_GUSTAFSON) return n - fit->alpha * (n - 1);
    return n / (1 + fit->alpha * (n - 1) + fit->beta * n * (n - 1));
}

typedef struct fit_points {
    double threads[MOST_POINTS], throughput[MOST_POINTS];
    size_t count;
} fit_points;

static double scaling_fits_squares(prn_law law, const fit_points *p, const prn_law_fit *fit)
{
    double sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        double rest = p->throughput[i] - fit->scale * prn_law_speedup(law, fit, p->threads[i]);
        sum += rest * rest;
    }
    return sum;
}

/* Derivatives by scale, alpha and beta. */
static void gradient(prn_law law, const prn_law_fit *fit, double n, double out[PARAMETERS])
{
    double speedup = prn_law_speedup(law, fit, n);
    out[0] = speedup;
    out[1] = law == PRN_LAW_GUSTAFSON ? -fit->scale * (n - 1) : -fit->scale * speedup * speedup * (n - 1) / n;
    out[2] = -fit->scale * speedup * speedup * (n - 1);
}

/* Solves the damped normal equations for the free parameters; false where they are singular. */
static bool solve(double a[PARAMETERS][PARAMETERS], double b[PARAMETERS], const bool *free)
{
    for (int c = 0; c < PARAMETERS; c++) {
        if (free[c]) continue;
        for (int k = 0; k < PARAMETERS; k++) a[c][k] = a[k][c] = 0;
        a[c][c] = 1;
        b[c] = 0;
    }
    for (int c = 0; c < PARAMETERS; c++) {
        if (!(fabs(a[c][c]) > 0)) return false;
        for (int r = 0; r < PARAMETERS; r++) {
            if (r == c) continue;
            double factor = a[r][c] / a[c][c];
            for (int k = 0; k < PARAMETERS; k++) a[r][k] -= factor * a[c][k];
            b[r] -= factor * b[c];
        }
    }
    for (int c = 0; c < PARAMETERS; c++) b[c] /= a[c][c];
    return true;
}

static bool scaling_fits_step(prn_law law, const fit_points *p, const prn_law_fit *fit, const bool *free,
                              double damping, double move[PARAMETERS])
{
    double a[PARAMETERS][PARAMETERS] = {{0}};
    memset(move, 0, PARAMETERS * sizeof *move);
    for (size_t i = 0; i < p->count; i++) {
        double g[PARAMETERS];
        gradient(law, fit, p->threads[i], g);
        double rest = p->throughput[i] - fit->scale * prn_law_speedup(law, fit, p->threads[i]);
        for (int r = 0; r < PARAMETERS; r++) {
            move[r] += g[r] * rest;
            for (int c = 0; c < PARAMETERS; c++) a[r][c] += g[r] * g[c];
        }
    }
    for (int c = 0; c < PARAMETERS; c++) a[c][c] *= 1 + damping;
    return solve(a, move, free);
}

static double descend(prn_law law, const fit_points *p, prn_law_fit *fit, const bool *free)
{
    double best = scaling_fits_squares(law, p, fit), damping = 1e-3;
    for (int i = 0; i < 300 && damping < 1e12; i++) {
        double move[PARAMETERS];
        prn_law_fit next = *fit;
        bool solved = scaling_fits_step(law, p, fit, free, damping, move);
        if (solved) {
            next.scale += move[0];
            next.alpha += move[1];
            next.beta += move[2];
        }
        double sum = solved && next.scale > 0 ? scaling_fits_squares(law, p, &next) : INFINITY;
        if (!(sum <= best)) {
            damping *= 4;
            continue;
        }
        bool settled = best - sum <= 1e-15 * best;
        *fit = next;
        best = sum;
        damping /= 4;
        if (settled) break;
    }
    return best;
}

/* Merges points of one thread count by their mean. */
static void scaling_fits_gather(fit_points *p, const double *threads, const double *throughput, size_t count)
{
    size_t of[MOST_POINTS];
    p->count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < p->count && fabs(p->threads[k] - threads[i]) > 1e-9) k++;
        if (k == MOST_POINTS) break;
        if (k == p->count) {
            p->threads[p->count] = threads[i];
            p->throughput[p->count] = 0;
            of[p->count++] = 0;
        }
        p->throughput[k] += throughput[i];
        of[k]++;
    }
    for (size_t k = 0; k < p->count; k++) p->throughput[k] /= (double)of[k];
}

static double fit_with(prn_law law, const fit_points *p, prn_law_fit *out, bool alpha, bool beta)
{
    bool free[PARAMETERS] = {true, alpha, beta};
    double least = INFINITY, scale = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->threads[i] < least) {
            least = p->threads[i];
            scale = p->throughput[i] / p->threads[i];
        }
    *out = (prn_law_fit){.known = true, .scale = scale, .alpha = alpha ? 0.01 : 0, .beta = beta ? 1e-4 : 0};
    double sum = descend(law, p, out, free);
    return out->alpha >= 0 && out->beta >= 0 && out->scale > 0 && isfinite(sum) ? sum : INFINITY;
}

static void scaling_fits_finish(prn_law law, prn_law_fit *fit)
{
    fit->peak =
        law == PRN_LAW_USL ? (fit->beta > 0 && fit->alpha < 1 ? sqrt((1 - fit->alpha) / fit->beta) : INFINITY) : NAN;
    if (law == PRN_LAW_USL && fit->alpha >= 1) fit->peak = 1;
    if (law == PRN_LAW_USL && fit->peak < 1) fit->peak = 1;
    fit->limit = law == PRN_LAW_GUSTAFSON ? INFINITY : fit->alpha > 0 ? 1 / fit->alpha : INFINITY;
    if (isfinite(fit->peak)) fit->limit = prn_law_speedup(law, fit, fit->peak);
}

void prn_law_fit_points(prn_law_fit *out, prn_law law, const double *threads, const double *throughput, size_t count)
{
    fit_points p;
    scaling_fits_gather(&p, threads, throughput, count);
    double mean = 0, least = INFINITY;
    *out = (prn_law_fit){0};
    if (p.count < prn_law_points(law)) return;
    for (size_t i = 0; i < p.count; i++) mean += p.throughput[i] / (double)p.count;
    /* Takes the closest fit among those with negative parameters held at 0. */
    for (int held = 0; held < (law == PRN_LAW_USL ? 4 : 2); held++) {
        prn_law_fit fit;
        double sum = fit_with(law, &p, &fit, !(held & 1), law == PRN_LAW_USL && !(held & 2));
        if (sum >= least) continue;
        least = sum;
        *out = fit;
    }
    if (!out->known || !(mean > 0)) return;
    out->rms = sqrt(least / (double)p.count) / mean;
    scaling_fits_finish(law, out);
}

static double scaling_fits_draw_median(prn_processes of, double *room, uint64_t *random)
{
    for (size_t i = 0; i < of.count; i++)
        room[i] = random ? of.values[prn_random_below(random, of.count)] : of.values[i];
    return prn_median(room, of.count);
}

static prony_status fit_resamples(prn_law_fit *out, prn_law law, const double *threads, const prn_processes *throughput,
                                  size_t count, double *room, double *medians, prony_error *error)
{
    double *values = prn_calloc(RESAMPLES, 3 * sizeof *values), fewest = INFINITY;
    size_t known = 0;
    uint64_t random = FIT_SEED;
    if (!values) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) fewest = fmin(fewest, (double)throughput[i].count);
    for (size_t r = 0; r < RESAMPLES && fewest >= 3; r++) {
        prn_law_fit fit;
        for (size_t i = 0; i < count; i++) medians[i] = scaling_fits_draw_median(throughput[i], room, &random);
        prn_law_fit_points(&fit, law, threads, medians, count);
        if (!fit.known) continue;
        values[known] = fit.alpha;
        values[RESAMPLES + known] = fit.beta;
        values[2 * RESAMPLES + known++] = fit.peak;
    }
    double tail = prn_interval_tail(0.95, fewest);
    prn_interval_of(out->alpha_ci95, values, known, tail);
    prn_interval_of(out->beta_ci95, values + RESAMPLES, known, tail);
    prn_interval_of(out->peak_ci95, values + 2 * RESAMPLES, law == PRN_LAW_USL ? known : 0, tail);
    prn_free(values);
    return PRONY_OK;
}

prony_status prn_law_fit_processes(prn_law_fit *out, prn_law law, const double *threads,
                                   const prn_processes *throughput, size_t count, prony_error *error)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++) most = throughput[i].count > most ? throughput[i].count : most;
    double *room = prn_calloc(most + 1, sizeof *room), *medians = prn_calloc(count + 1, sizeof *medians);
    prony_status status = room && medians ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        for (size_t i = 0; i < count; i++) medians[i] = scaling_fits_draw_median(throughput[i], room, NULL);
        prn_law_fit_points(out, law, threads, medians, count);
        if (out->known) status = fit_resamples(out, law, threads, throughput, count, room, medians, error);
    }
    prn_free(room);
    prn_free(medians);
    return status;
}
