/* A libnvidia-ml.so.1 that answers from a scenario file, read anew on each call, so that the real pynvml runs in tests.
 *
 * The file is named by STUB_NVML_SCENARIO. A line is a key and its values; "!N" in place of the values is NVML's error N.
 * A key that is not there is not supported (3). Keys: init, driver, count, LABEL (error of the handle), LABEL.name,
 * .utilization (gpu memory, percent), .memory (total free used, bytes), .temperature, .power, .power_limit (mW),
 * .clock.sm, .clock.memory (MHz), .throttle (bits), .ecc.corrected, .ecc.uncorrected, .mig (current pending most),
 * .processes (error only), .process (pid bytes name; repeated). LABEL is "0", or "0/1" for a MIG instance.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char label[16]; } device;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gpu_instance, compute_instance; } process;

static device devices[16], instances[16][8];

/* Copy the values of the key's nth line; return NVML's code: 0, what stands after "!", or 3. */
static int look(const char *label, const char *key, int nth, char *values, size_t size) {
    char wanted[64], line[512];
    snprintf(wanted, sizeof wanted, "%s%s%s", label, *label && *key ? "." : "", key);
    const char *path = getenv("STUB_NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    int code = 3;
    if (!file) return 9; /* no scenario: the driver is not loaded */
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *space = strchr(line, ' ');
        if (!space) continue;
        *space = 0;
        if (strcmp(line, wanted) || nth--) continue;
        if (space[1] == '!') { code = atoi(space + 2); break; }
        snprintf(values, size, "%s", space + 1);
        code = 0;
        break;
    }
    fclose(file);
    return code;
}

static int number(const char *label, const char *key, unsigned int *out) {
    char values[256];
    int code = look(label, key, 0, values, sizeof values);
    if (!code) *out = (unsigned int)strtoul(values, NULL, 10);
    return code;
}

static int text(const char *label, const char *key, char *out, unsigned int size) {
    return look(label, key, 0, out, size);
}

/* Whether the library, or the handle, is refused: only lines that are errors count. */
static int refused(const char *label, const char *key) {
    char values[256];
    int code = look(label, key, 0, values, sizeof values);
    return code == 3 ? 0 : code;
}

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return refused("", "init"); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { (void)code; return "stub"; }
int nvmlSystemGetDriverVersion(char *out, unsigned int size) { return text("", "driver", out, size); }
int nvmlDeviceGetCount_v2(unsigned int *out) { return number("", "count", out); }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device **out) {
    if (index >= 16) return 2;
    snprintf(devices[index].label, sizeof devices[index].label, "%u", index);
    *out = &devices[index];
    return refused(devices[index].label, "");
}
int nvmlDeviceGetMigMode(device *d, unsigned int *current, unsigned int *pending) {
    char values[256];
    int code = look(d->label, "mig", 0, values, sizeof values);
    if (!code) sscanf(values, "%u %u", current, pending);
    return code;
}
int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned int *out) {
    char values[256];
    int code = look(d->label, "mig", 0, values, sizeof values);
    if (!code) sscanf(values, "%*u %*u %u", out);
    return code;
}
int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned int place, device **out) {
    char values[256];
    int index = atoi(d->label);
    if (place >= 8) return 2;
    device *found = &instances[index][place];
    snprintf(found->label, sizeof found->label, "%d/%u", index, place);
    if (look(found->label, "name", 0, values, sizeof values)) return 6;
    *out = found;
    return 0;
}
int nvmlDeviceGetName(device *d, char *out, unsigned int size) { return text(d->label, "name", out, size); }
int nvmlDeviceGetUtilizationRates(device *d, utilization *out) {
    char values[256];
    int code = look(d->label, "utilization", 0, values, sizeof values);
    if (!code) sscanf(values, "%u %u", &out->gpu, &out->memory);
    return code;
}
int nvmlDeviceGetMemoryInfo(device *d, memory *out) {
    char values[256];
    int code = look(d->label, "memory", 0, values, sizeof values);
    if (!code) sscanf(values, "%llu %llu %llu", &out->total, &out->free, &out->used);
    return code;
}
int nvmlDeviceGetTemperature(device *d, unsigned int sensor, unsigned int *out) {
    return sensor ? 2 : number(d->label, "temperature", out);
}
int nvmlDeviceGetPowerUsage(device *d, unsigned int *out) { return number(d->label, "power", out); }
int nvmlDeviceGetEnforcedPowerLimit(device *d, unsigned int *out) { return number(d->label, "power_limit", out); }
int nvmlDeviceGetClockInfo(device *d, unsigned int kind, unsigned int *out) {
    return kind == 1 ? number(d->label, "clock.sm", out) : kind == 2 ? number(d->label, "clock.memory", out) : 2;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(device *d, unsigned long long *out) {
    unsigned int bits = 0;
    int code = number(d->label, "throttle", &bits);
    *out = bits;
    return code;
}
int nvmlDeviceGetTotalEccErrors(device *d, unsigned int kind, unsigned int counter, unsigned long long *out) {
    unsigned int found = 0;
    int code = counter != 1 ? 2 : number(d->label, kind ? "ecc.uncorrected" : "ecc.corrected", &found);
    *out = found;
    return code;
}
int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned int *count, process *out) {
    char values[256], used[64];
    unsigned int room = *count, found = 0;
    int code = refused(d->label, "processes");
    if (code) return code;
    while (!look(d->label, "process", (int)found, values, sizeof values)) {
        if (out && found < room) {
            sscanf(values, "%u %63s", &out[found].pid, used);
            out[found].used = *used == '-' ? ~0ULL : strtoull(used, NULL, 10);
        }
        found++;
    }
    *count = found;
    return found > room ? 7 : 0;
}
int nvmlSystemGetProcessName(unsigned int pid, char *out, unsigned int size) {
    char values[256], label[16];
    for (int card = 0; card < 16; card++)
        for (int place = -1; place < 8; place++) {
            snprintf(label, sizeof label, place < 0 ? "%d" : "%d/%d", card, place);
            for (int nth = 0; !look(label, "process", nth, values, sizeof values); nth++) {
                unsigned int found;
                char name[256];
                if (sscanf(values, "%u %*s %255s", &found, name) == 2 && found == pid) {
                    snprintf(out, size, "%s", name);
                    return 0;
                }
            }
        }
    return 6;
}
