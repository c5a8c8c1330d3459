/* prony quantize MODEL -p int4-weights --calibrate IDS: a decoder reads the tokens, window by window, so that the
 * importance of its weights is known. */
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"
#include "bench/process/interrupt.h"
#include "bench/session/inputs.h"

#include <stdio.h>
#include <string.h>

bool calibrates_tokens(const options *o)
{
    const char *text = o->precision.calibrate, *dot = strrchr(text, '.');
    return (dot && strcmp(dot, ".npy") == 0) || text[strspn(text, "0123456789,; ")] == '\0';
}

static void importance_show(const options *o, size_t done, size_t total)
{
    char text[64];
    if (!want_progress(o)) return;
    snprintf(text, sizeof text, "calibration: %zu of %zu tokens", done, total);
    show_progress_text(text);
}

/* Each window is a prompt of its own. */
static int importance_read(const options *o, const decoder *d, const prompt *p)
{
    prony_error error = {0};
    const size_t window = (size_t)window_length(o, d, p->longest);
    size_t done = 0;
    for (size_t b = 0; b < p->sequences; b++) {
        const size_t end = done + p->lengths[b];
        for (size_t count; done < end; done += count) {
            count = end - done < window ? end - done : window;
            if (prony_generator_prompt(d->generator, p->ids + done, &count, &error) != PRONY_OK ||
                prony_generator_rewind(d->generator, 0, &error) != PRONY_OK)
                return report_error(o, &error);
            if (interrupted()) return EXIT_FAILED;
            importance_show(o, done + count, p->total);
        }
    }
    return EXIT_DONE;
}

int importance_of_tokens(const options *o, prony_model *model, prony_importance **out)
{
    prony_error error = {0};
    prompt p = {0};
    decoder d = {0};
    options floats = *o;
    floats.precision.name = NULL;
    int code = prompt_parse(o, "calibrate", o->precision.calibrate, &p);
    if (code == EXIT_DONE && prony_importance_create(out, model, &error) != PRONY_OK) code = report_error(o, &error);
    if (code == EXIT_DONE)
        code = decoder_open(&floats, prony_importance_model(*out), 1, o->generate.max_length, false, &d);
    if (code == EXIT_DONE) code = importance_read(o, &d, &p);
    clear_progress();
    decoder_close(&d);
    prompt_free(&p);
    return code;
}
