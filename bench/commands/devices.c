/* prony devices: the OpenCL devices that --device can choose, and what each reaches, measured now and kept for
 * reports. */
#include "bench/process/interrupt.h"
#include "bench/terminal/json_file.h"
#include "prony_device.h"

typedef struct device_row {
    const prony_device_info *info;
    prony_device_peaks peaks;
    bool measured;
    char reason[PRONY_ERROR_MESSAGE_BYTES]; /* why it is not */
} device_row;

static void print_device(const device_row *d)
{
    const prony_device_info *i = d->info;
    fputs(i->id, stdout);
    putchar(' ');
    put_text(stdout, i->name);
    printf("\n  %s, %u compute units", i->kind, i->compute_units);
    if (i->clock_mhz) printf(" at up to %u MHz", i->clock_mhz);
    printf(", %.4g GiB, local memory %.4g KiB%s%s\n  ", (double)i->memory_bytes / (1 << 30),
           (double)i->local_memory_bytes / (1 << 10), i->fp16 ? ", fp16" : "", i->fp64 ? ", fp64" : "");
    put_text(stdout, i->platform);
    fputs(", driver ", stdout);
    put_text(stdout, i->driver);
    putchar('\n');
    if (d->measured)
        printf(
            "  %.1f GFLOP/s fp32, memory %.1f GB/s, copies %.1f GB/s to it and %.1f GB/s\n  back, a launch %.1f us\n",
            d->peaks.flops_per_second / 1e9, d->peaks.bytes_per_second / 1e9, d->peaks.to_device_bytes_per_second / 1e9,
            d->peaks.from_device_bytes_per_second / 1e9, (double)d->peaks.launch_ns / 1e3);
    else
        printf("  not measured: %s\n", d->reason);
}

static void write_text(FILE *to, const char *key, const char *text)
{
    fprintf(to, ", \"%s\": ", key);
    json_text(to, text);
}

static void write_device(FILE *to, const device_row *d)
{
    const prony_device_info *i = d->info;
    fputs("{\"id\": ", to);
    json_text(to, i->id);
    write_text(to, "kind", i->kind);
    write_text(to, "name", i->name);
    write_text(to, "vendor", i->vendor);
    write_text(to, "platform", i->platform);
    write_text(to, "driver", i->driver);
    write_text(to, "version", i->version);
    fprintf(to,
            ", \"compute_units\": %u, \"clock_mhz\": %u, \"memory_bytes\": %llu, \"largest_buffer_bytes\": %llu, "
            "\"local_memory_bytes\": %llu, \"largest_work_group\": %llu, \"fp16\": %s, \"fp64\": %s",
            i->compute_units, i->clock_mhz, (unsigned long long)i->memory_bytes,
            (unsigned long long)i->largest_buffer_bytes, (unsigned long long)i->local_memory_bytes,
            (unsigned long long)i->largest_work_group, i->fp16 ? "true" : "false", i->fp64 ? "true" : "false");
    if (d->measured)
        fprintf(to,
                ", \"flops_per_second\": %.6g, \"bytes_per_second\": %.6g, \"to_device_bytes_per_second\": %.6g, "
                "\"from_device_bytes_per_second\": %.6g, \"launch_ns\": %lld",
                d->peaks.flops_per_second, d->peaks.bytes_per_second, d->peaks.to_device_bytes_per_second,
                d->peaks.from_device_bytes_per_second, (long long)d->peaks.launch_ns);
    fputc('}', to);
}

int command_devices(const options *o)
{
    prony_error error = {0};
    device_row d = {.peaks = PRONY_DEVICE_PEAKS_INIT};
    json_file json;
    if (prony_device_at(&d.info, 0, &error) == PRONY_UNSUPPORTED) return report_error(o, &error);
    const int opened = json_open(&json, o);
    if (opened != EXIT_DONE) return opened;
    if (json.stream) {
        json_begin(json.stream, "prony.devices/1");
        fputs(",\n \"devices\": [", json.stream);
    }
    for (size_t i = 0; prony_device_at(&d.info, i, NULL) == PRONY_OK; i++) {
        interrupt_at_once(true);
        d.measured = prony_device_measure(&d.peaks, d.info->id, &error) == PRONY_OK;
        interrupt_at_once(false);
        snprintf(d.reason, sizeof d.reason, "%s", error.message);
        if (d.measured && prony_device_peaks_save(d.info, &d.peaks, &error) != PRONY_OK)
            fail(o, "%s: not kept: %s", d.info->id, error.message);
        if (!o->terminal.quiet && !stdout_taken(o)) print_device(&d);
        if (!json.stream) continue;
        fputs(i ? ",\n  " : "\n  ", json.stream);
        write_device(json.stream, &d);
    }
    if (json.stream) fputs("]}\n", json.stream);
    return json_close(&json, o, EXIT_DONE);
}
