/* A machine's NVIDIA driver, as far as its management library shows it: what a text file says, read anew at each call.

   Each line is a name and a value. `count 2`: GPUs. `hang 1`: whoever calls waits until the line is gone. `0.power 350000`: a figure of GPU
   0, in the library's own unit; `0.power E3`: the error code it is refused with; `0.handle E15`: the GPU itself is refused. `xid 0 79`: GPU 0
   reports an Xid; each such line is told once, in their order. Figures that are not named have harmless values.

   The same library is the driver's for programs (libcuda): `cuda_init 802` refuses them all, `cuda_count 1` shows them fewer GPUs,
   `cuda 12020` is the newest CUDA version, `0.context 2` refuses a context on GPU 0, and with `0.context_hang 1` the call never returns. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, TIMEOUT = 10, UNKNOWN = 999, GPUS_MAX = 16 };

typedef struct { unsigned gpu, memory; } Usage;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { void *device; unsigned long long type, data; unsigned instance, compute; } Event;

static char gpus[GPUS_MAX];
static int told;

/* The value of the first line with this name. 0: there is none. */
static int line(const char *name, char value[64]) {
    FILE *file = fopen(getenv("FAKE_NVML"), "r");
    char text[256], found[64];
    int there = 0;
    while (file && !there && fgets(text, sizeof text, file)) there = sscanf(text, "%63s %63s", found, value) == 2 && !strcmp(found, name);
    if (file) fclose(file);
    return there;
}

static int figure(void *device, const char *name, long long otherwise, long long *out) {
    char key[64], value[64];
    while (line("hang", value)) usleep(2000);
    if (device) snprintf(key, sizeof key, "%d.%s", (int)((char *)device - gpus), name);
    else snprintf(key, sizeof key, "%s", name);
    *out = otherwise;
    if (!line(key, value)) return OK;
    if (value[0] == 'E') return atoi(value + 1);
    *out = atoll(value);
    return OK;
}

#define FIGURE(function, type, name, otherwise) \
    int function(void *device, type *out) { long long v; int rc = figure(device, name, otherwise, &v); *out = (type)v; return rc; }

FIGURE(nvmlDeviceGetPowerUsage, unsigned, "power", 100000)
FIGURE(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit", 700000)
FIGURE(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "reasons", 0)
FIGURE(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, "retirement", 0)
FIGURE(nvmlDeviceGetSupportedEventTypes, unsigned long long, "events", 8)

int nvmlInitWithFlags(unsigned flags) { long long v; (void)flags; return figure(NULL, "init", 0, &v); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int rc) { (void)rc; return "an error of the fake"; }

int nvmlDeviceGetCount_v2(unsigned *out) { long long v; int rc = figure(NULL, "count", 2, &v); *out = (unsigned)v; return rc; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    long long v;
    if (index >= GPUS_MAX) return INVALID;
    *out = &gpus[index];
    return figure(*out, "handle", 0, &v);
}

int nvmlDeviceGetName(void *device, char *out, unsigned room) {
    long long v;
    snprintf(out, room, "NVIDIA H100 80GB HBM3");
    return figure(device, "name", 0, &v);
}

int nvmlDeviceGetUUID(void *device, char *out, unsigned room) {
    long long v;
    int rc = figure(device, "uuid", (char *)device - gpus, &v);
    snprintf(out, room, "GPU-%08lld", v);
    return rc;
}

int nvmlDeviceGetUtilizationRates(void *device, Usage *out) {
    long long v;
    int rc = figure(device, "util", 90, &v);
    out->gpu = (unsigned)v;
    return rc;
}

int nvmlDeviceGetMemoryInfo(void *device, Memory *out) {
    long long v;
    int rc = figure(device, "used", 40000LL << 20, &v);
    out->total = 81559LL << 20;
    out->used = (unsigned long long)v;
    return rc;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, Memory2 *out) {
    long long v;
    Memory plain;
    int rc = figure(device, "memory_v2", 0, &v);
    if (rc) return rc;
    rc = nvmlDeviceGetMemoryInfo(device, &plain);
    out->total = plain.total;
    out->used = plain.used;
    return rc;
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *out) {
    long long v;
    int rc = figure(device, "temperature", 60, &v);
    (void)sensor;
    *out = (unsigned)v;
    return rc;
}

int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned counter, unsigned long long *out) {
    long long v;
    int rc = figure(device, kind == 1 && counter == 0 ? "ecc" : "ecc_other", 0, &v);
    *out = (unsigned long long)v;
    return rc;
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    long long v, w;
    int rc = figure(device, "remap_pending", 0, &v);
    figure(device, "remap_failed", 0, &w);
    *corrected = *uncorrected = 0;
    *pending = (unsigned)v;
    *failed = (unsigned)w;
    return rc;
}

int nvmlEventSetCreate(void **out) { *out = gpus; return OK; }
int nvmlEventSetFree(void *set) { (void)set; return OK; }
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) { (void)device; (void)set; return types == 8 ? OK : INVALID; }

int nvmlEventSetWait_v2(void *set, Event *out, unsigned timeout_ms) {
    (void)set;
    for (unsigned waited_ms = 0; waited_ms < timeout_ms; waited_ms += 5, usleep(5000)) {
        FILE *file = fopen(getenv("FAKE_NVML"), "r");
        char text[256];
        int gpu, xid, seen = 0;
        while (file && fgets(text, sizeof text, file))
            if (sscanf(text, "xid %d %d", &gpu, &xid) == 2 && seen++ == told) {
                fclose(file);
                told++;
                out->device = &gpus[gpu];
                out->type = 8;
                out->data = (unsigned long long)xid;
                return OK;
            }
        if (file) fclose(file);
    }
    return TIMEOUT;
}

/* The result of a call: the number in the line, or 0. */
static int result(void *device, const char *name) {
    long long v;
    figure(device, name, 0, &v);
    return (int)v;
}

int cuInit(unsigned flags) { (void)flags; return result(NULL, "cuda_init"); }
int cuDriverGetVersion(int *out) { long long v; figure(NULL, "cuda", 13000, &v); *out = (int)v; return OK; }
int cuDeviceGet(int *out, int index) { *out = index; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }

int cuDeviceGetCount(int *out) {
    long long v, seen;
    figure(NULL, "count", 2, &v);
    figure(NULL, "cuda_count", v, &seen);
    *out = (int)seen;
    return OK;
}

int cuDevicePrimaryCtxRetain(void **out, int device) {
    while (result(&gpus[device], "context_hang")) usleep(2000);
    *out = &gpus[device];
    return result(&gpus[device], "context");
}

int cuGetErrorName(int code, const char **out) {
    *out = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : NULL;
    return *out ? OK : 1;
}
