/*
 * A double of libnvidia-ml.so.1 for the tests: answers the read-only NVML calls over a plain text file named by
 * FAKE_NVML_STATE, and can hang, block in state D, crash, lose a GPU or refuse a call. tests/fakenvml/README.md has
 * the format. It holds no NVIDIA code and touches no device.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum { OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25 };

enum { MAX_GPUS = 32, MAX_DEVS = 64, MAX_PROCS = 512, MAX_RULES = 128, MAX_POINTS = 32, MIG_PER_GPU = 7 };
#define MIB 1048576ULL
#define NA64 0xFFFFFFFFFFFFFFFFULL
#define NA32 0xFFFFFFFFu

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct dev *handle_t;

struct point { double t, v; };
struct curve { int n; struct point p[MAX_POINTS]; };

struct dev {                        /* a GPU, or a MIG instance of one (parent >= 0) */
    int index, parent, slot;
    char name[96], uuid[96], serial[32];
    u64 total, reserved;            /* bytes */
    struct curve mem, util;         /* MiB, percent; piecewise linear over seconds since t0 */
    u32 temp, power, power_limit, clock, pcie_tx, pcie_rx, pstate, mig, throttle, ecc, minor;
};
struct proc { int gpu, pid; char type; double mib; /* -1: N/A; -2: follows the GPU's used memory */ };
struct rule { char kind, fn[80]; int gpu; double value, after, length; };

static struct state {
    char driver[80];
    int cuda, count, ndevs, nprocs, nrules, init_error;
    double t0, init_delay;
    struct dev devs[MAX_DEVS];      /* 0..count-1: GPUs; then MIG instances */
    struct proc procs[MAX_PROCS];
    struct rule rules[MAX_RULES];
} S;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct timespec loaded_mtime;
static ino_t loaded_ino;
static int initialized, loaded, trace_fd = -2;

/* ---- state file --------------------------------------------------------------------------- */

static double now(clockid_t c)
{
    struct timespec t;
    clock_gettime(c, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void parse_curve(struct curve *c, char *s)      /* "600" or "0:600 5:8000 20:120000" */
{
    c->n = 0;
    for (char *save, *w = strtok_r(s, " \t\n", &save); w && c->n < MAX_POINTS; w = strtok_r(NULL, " \t\n", &save)) {
        struct point p = {0, 0};
        if (sscanf(w, "%lf:%lf", &p.t, &p.v) != 2)
            p.t = 0, p.v = atof(w);
        c->p[c->n++] = p;
    }
}

static double at(const struct curve *c, double t)
{
    if (!c->n || t <= c->p[0].t)
        return c->n ? c->p[0].v : 0;
    for (int i = 1; i < c->n; i++)
        if (t < c->p[i].t) {
            struct point a = c->p[i - 1], b = c->p[i];
            return a.v + (b.v - a.v) * (t - a.t) / (b.t - a.t);
        }
    return c->p[c->n - 1].v;
}

static void default_dev(struct dev *d, int i)
{
    memset(d, 0, sizeof *d);
    d->index = i, d->parent = -1, d->minor = i;
    strcpy(d->name, "NVIDIA H200");
    snprintf(d->uuid, sizeof d->uuid, "GPU-fa4e0000-0000-4000-8000-%012x", i);
    snprintf(d->serial, sizeof d->serial, "16540230%05d", i);
    d->total = 143771 * MIB, d->reserved = 600 * MIB;
    d->mem.n = d->util.n = 1, d->mem.p[0].v = 600;
    d->temp = 35, d->power = 78000, d->power_limit = 700000, d->clock = 1980;
}

static void copy_text(char *dst, size_t size, const char *src)
{
    size_t n = strnlen(src, size - 1);
    memcpy(dst, src, n), dst[n] = 0;
}

static void set_dev(struct dev *d, const char *key, char *val)
{
    const struct { const char *key; u32 *to; } ints[] = {
        {"temp", &d->temp}, {"power", &d->power}, {"power_limit", &d->power_limit}, {"clock", &d->clock},
        {"pcie_tx", &d->pcie_tx}, {"pcie_rx", &d->pcie_rx}, {"pstate", &d->pstate}, {"mig", &d->mig},
        {"throttle", &d->throttle}, {"ecc", &d->ecc}, {"minor", &d->minor}};
    u32 n = strtoul(val, NULL, 0);
    if (!strcmp(key, "name")) copy_text(d->name, sizeof d->name, val);
    else if (!strcmp(key, "uuid")) copy_text(d->uuid, sizeof d->uuid, val);
    else if (!strcmp(key, "total")) d->total = n * MIB;
    else if (!strcmp(key, "reserved")) d->reserved = n * MIB;
    else if (!strcmp(key, "mem")) parse_curve(&d->mem, val);
    else if (!strcmp(key, "util")) parse_curve(&d->util, val);
    else for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        if (!strcmp(key, ints[i].key))
            *ints[i].to = n;
}

static void parse_line(char *l)
{
    char a[80], b[80], c[80], key[32], *rest;
    int n = 0, used = 0;
    double v, x = 0, y = 1e18;
    l[strcspn(l, "#\n")] = 0;
    if (sscanf(l, " driver %79s", S.driver) == 1 || sscanf(l, " cuda %d", &S.cuda) == 1 ||
        sscanf(l, " t0 %lf", &S.t0) == 1 || sscanf(l, " init_error %d", &S.init_error) == 1 || sscanf(l, " init_delay %lf", &S.init_delay) == 1 ||
        sscanf(l, " %79s", a) != 1)
        return;
    if (sscanf(l, " count %d", &n) == 1) {
        S.count = S.ndevs = n < 0 ? 0 : n > MAX_GPUS ? MAX_GPUS : n;
        for (int i = 0; i < S.count; i++)
            default_dev(&S.devs[i], i);
    } else if (sscanf(l, " gpu %79s %31s %n", a, key, &used) == 2 && used) {
        rest = l + used;
        for (int i = 0; i < S.count; i++)
            if (*a == '*' || atoi(a) == i) {
                char copy[1024];
                copy_text(copy, sizeof copy, rest);
                set_dev(&S.devs[i], key, copy);
            }
    } else if (sscanf(l, " mig %d %d %lf %lf", &n, &used, &x, &v) == 4) {   /* mig GPU SLOT TOTAL USED */
        if (n < 0 || n >= S.count || S.ndevs >= MAX_DEVS)
            return;
        struct dev *d = &S.devs[S.ndevs++], *p = &S.devs[n];
        *d = *p;
        d->parent = n, d->slot = used, p->mig = 1, d->total = x * MIB, d->reserved = 0;
        d->mem.n = 1, d->mem.p[0] = (struct point){0, v};
        strcpy(d->name + strnlen(d->name, sizeof d->name - 16), " MIG 1g.18gb");
        snprintf(d->uuid, sizeof d->uuid, "MIG-fa4e0000-0000-4000-8000-%06x%06x", n, used);
    } else if ((n = sscanf(l, " proc %d %d %79s %79s", &S.procs[S.nprocs].gpu, &S.procs[S.nprocs].pid, b, c)) >= 3) {
        struct proc *p = &S.procs[S.nprocs];
        p->mib = !strcmp(b, "NA") ? -1 : !strcmp(b, "auto") ? -2 : atof(b);
        p->type = n == 4 ? *c : 'C';
        S.nprocs += S.nprocs < MAX_PROCS - 1;
    } else if (sscanf(l, " xid %d %lf", &n, &v) == 2) {
        if (n >= 0 && n < S.count && S.nrules < MAX_RULES)
            S.rules[S.nrules++] = (struct rule){.kind = 'x', .gpu = n, .value = v};
    } else if (sscanf(l, " %79s %79s %79s %lf %lf %lf", a, b, c, &v, &x, &y) >= 4 &&
               (!strcmp(a, "fail") || !strcmp(a, "delay") || !strcmp(a, "dstate") || !strcmp(a, "crash"))) {
        struct rule *r = &S.rules[S.nrules < MAX_RULES - 1 ? S.nrules++ : S.nrules];
        *r = (struct rule){.kind = *a == 'd' && a[1] == 's' ? 'D' : *a, .value = v, .after = x, .length = y,
                           .gpu = *c == '*' ? -1 : atoi(c)};
        snprintf(r->fn, sizeof r->fn, "%s", b);
    } else
        fprintf(stderr, "fakenvml: cannot read line: %s\n", l);
}

static int load(void)                                  /* with the lock held */
{
    const char *path = getenv("FAKE_NVML_STATE");
    struct stat st;
    FILE *f = NULL;
    if (path && !stat(path, &st)) {
        if (loaded && st.st_ino == loaded_ino && !memcmp(&st.st_mtim, &loaded_mtime, sizeof loaded_mtime))
            return OK;
        f = fopen(path, "re");
    }
    if (!f)
        return loaded ? OK : DRIVER_NOT_LOADED;        /* keep the last state if the file goes away */
    memset(&S, 0, sizeof S);
    strcpy(S.driver, "570.133.20");
    S.cuda = 12080, S.t0 = st.st_mtim.tv_sec + st.st_mtim.tv_nsec / 1e9;
    char count[] = "count 8", line[2048];
    parse_line(count);
    while (fgets(line, sizeof line, f))
        parse_line(line);
    fclose(f);
    loaded = 1, loaded_mtime = st.st_mtim, loaded_ino = st.st_ino;
    return OK;
}

/* ---- one call ----------------------------------------------------------------------------- */

static void hold(double s, int d_state)     /* signals do not cut it short */
{
    struct timespec t = {(time_t)s, (long)((s - (time_t)s) * 1e9)};
    pid_t pid = d_state ? vfork() : -1;     /* this thread shows state D until the vfork child exits */
    if (pid == 0) {
        syscall(SYS_prctl, 1, SIGKILL, 0, 0, 0);    /* PR_SET_PDEATHSIG: nothing stays behind when we are killed */
        syscall(SYS_nanosleep, &t, NULL);
        _exit(0);
    }
    if (pid > 0)
        syscall(SYS_wait4, pid, NULL, 0, NULL);
    while (!d_state && clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
}

/* Runs the rules for a call on `h` (NULL: not a device call) and copies the device to *d. */
static int enter(const char *fn, handle_t h, struct dev *d, double *t)
{
    double delay = 0, dstate = 0;
    int gpu = -1, rc = OK;
    pthread_mutex_lock(&lock);
    if (!initialized) {
        pthread_mutex_unlock(&lock);
        return UNINITIALIZED;
    }
    load();
    double since = now(CLOCK_REALTIME) - S.t0;
    if (t)
        *t = since;
    if (h && (h < S.devs || h >= S.devs + S.ndevs))
        rc = INVALID_ARGUMENT;
    else if (h)
        gpu = h->parent >= 0 ? h->parent : h->index, *d = *h;
    for (int i = 0; rc == OK && i < S.nrules; i++) {
        struct rule *r = &S.rules[i];
        if ((r->gpu >= 0 && r->gpu != gpu) || since < r->after || since >= r->after + r->length ||
            fnmatch(r->fn, fn, 0))
            continue;
        if (r->kind == 'f') rc = (int)r->value;
        else if (r->kind == 'c') signal((int)r->value, SIG_DFL), raise((int)r->value);
        else if (r->kind == 'D') dstate = r->value;
        else delay += r->value;
    }
    if (trace_fd == -2) {
        const char *p = getenv("FAKE_NVML_TRACE");
        trace_fd = p ? open(p, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    }
    if (trace_fd >= 0)
        dprintf(trace_fd, "%.6f %s %d\n", now(CLOCK_MONOTONIC), fn, gpu);
    pthread_mutex_unlock(&lock);
    if (delay > 0)
        hold(delay, 0);
    if (dstate > 0)
        hold(dstate, 1);
    return rc;
}

#define ENTER(h) struct dev d; double t; (void)t; \
    if (!(h)) return INVALID_ARGUMENT; \
    int rc_ = enter(__func__, (h), &d, &t); if (rc_) return rc_
#define SYSTEM() int rc_ = enter(__func__, NULL, NULL, NULL); if (rc_) return rc_
#define GET(fn, type, expr) API int fn(handle_t h, type *out) { ENTER(h); *out = (expr); return OK; }
#define GET_ARG(fn, type, expr) API int fn(handle_t h, int arg, type *out) { ENTER(h); (void)arg; *out = (expr); return OK; }
#define UNSUPPORTED(fn) API int fn(handle_t h) { ENTER(h); return NOT_SUPPORTED; }
#define ALIAS(fn, target, ...) API int fn(__VA_ARGS__) __attribute__((alias(#target)))

static int put(char *dst, u32 len, const char *src)
{
    return strlen(src) >= len ? INSUFFICIENT_SIZE : (strcpy(dst, src), OK);
}

/* ---- library and system ------------------------------------------------------------------- */

API int nvmlInitWithFlags(u32 flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    int rc = load();
    rc = rc ? rc : S.init_error;
    initialized += rc == OK;
    double delay = S.init_delay;
    pthread_mutex_unlock(&lock);
    if (delay > 0)
        hold(delay, 0);
    return rc;
}
API int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API int nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    int rc = initialized > 0 ? OK : UNINITIALIZED;
    initialized -= rc == OK;
    pthread_mutex_unlock(&lock);
    return rc;
}
API const char *nvmlErrorString(int code)
{
    static const char *const text[] = {"Success", "Uninitialized", "Invalid Argument", "Not Supported",
        "Insufficient Permissions", "Already Initialized", "Not Found", "Insufficient Size",
        "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
        "Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
        "GPU requires restart", "Operating System call failed", "Driver/library version mismatch"};
    return code >= 0 && code < (int)(sizeof text / sizeof *text) ? text[code] : "Unknown Error";
}
API int nvmlSystemGetDriverVersion(char *s, u32 len) { SYSTEM(); return put(s, len, S.driver); }
API int nvmlSystemGetNVMLVersion(char *s, u32 len) { SYSTEM(); return put(s, len, "12.570.133.20"); }
API int nvmlSystemGetCudaDriverVersion(int *v) { SYSTEM(); *v = S.cuda; return OK; }
ALIAS(nvmlSystemGetCudaDriverVersion_v2, nvmlSystemGetCudaDriverVersion, int *);

/* ---- finding devices ---------------------------------------------------------------------- */

API int nvmlDeviceGetCount_v2(u32 *n) { SYSTEM(); *n = S.count; return OK; }
ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2, u32 *);

API int nvmlDeviceGetHandleByIndex_v2(u32 i, handle_t *out)
{
    struct dev d;
    handle_t h = i < (u32)S.count ? &S.devs[i] : NULL;
    int rc = enter(__func__, h, &d, NULL);      /* a device call: `fail * I 15` fails here too, as on a lost GPU */
    if (rc)
        return rc;
    *out = h;
    return h ? OK : INVALID_ARGUMENT;
}
ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2, u32, handle_t *);

API int nvmlDeviceGetHandleByUUID(const char *uuid, handle_t *out)
{
    SYSTEM();
    for (int i = 0; i < S.ndevs; i++)
        if (!strcmp(S.devs[i].uuid, uuid))
            return *out = &S.devs[i], OK;
    return NOT_FOUND;
}
static const int bus_of[8] = {0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf};
static int bus(int i) { return i < 8 ? bus_of[i] : 0xe0 + i - 8; }

API int nvmlDeviceGetHandleByPciBusId_v2(const char *id, handle_t *out)
{
    SYSTEM();
    unsigned dom, b;
    if (sscanf(id, "%x:%x:", &dom, &b) == 2)
        for (int i = 0; i < S.count; i++)
            if (bus(i) == (int)b)
                return *out = &S.devs[i], OK;
    return NOT_FOUND;
}

/* ---- identity ----------------------------------------------------------------------------- */

API int nvmlDeviceGetName(handle_t h, char *s, u32 len) { ENTER(h); return put(s, len, d.name); }
API int nvmlDeviceGetUUID(handle_t h, char *s, u32 len) { ENTER(h); return put(s, len, d.uuid); }
API int nvmlDeviceGetSerial(handle_t h, char *s, u32 len) { ENTER(h); return put(s, len, d.serial); }
GET(nvmlDeviceGetIndex, u32, d.index)
GET(nvmlDeviceGetMinorNumber, u32, d.minor)

struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char busId[32]; };
API int nvmlDeviceGetPciInfo_v3(handle_t h, struct pci *p)
{
    ENTER(h);
    memset(p, 0, sizeof *p);
    p->bus = bus(d.index), p->id = 0x233510de, p->subsystem = 0x18be10de;
    snprintf(p->legacy, sizeof p->legacy, "0000:%02X:00.0", p->bus);
    snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", p->bus);
    return OK;
}
/* all GPUs read each other's memory, by NVLink: 0 is NVML_P2P_STATUS_OK */
API int nvmlDeviceGetP2PStatus(handle_t h, handle_t other, int what, u32 *out) { ENTER(h); (void)other, (void)what; *out = 0; return OK; }
API int nvmlDeviceGetCudaComputeCapability(handle_t h, int *major, int *minor) { ENTER(h); *major = 9, *minor = 0; return OK; }

/* ---- memory ------------------------------------------------------------------------------- */

static u64 used_of(const struct dev *d, double t)
{
    u64 u = (u64)at(&d->mem, t) * MIB, most = d->total - d->reserved;
    return u < most ? u : most;
}
struct mem1 { u64 total, free, used; };
struct mem2 { u32 version; u64 total, reserved, free, used; };
API int nvmlDeviceGetMemoryInfo(handle_t h, struct mem1 *m)       /* v1 counts reserved as used */
{
    ENTER(h);
    m->total = d.total, m->used = used_of(&d, t) + d.reserved, m->free = m->total - m->used;
    return OK;
}
API int nvmlDeviceGetMemoryInfo_v2(handle_t h, struct mem2 *m)
{
    ENTER(h);
    if (m->version != (sizeof *m | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    m->total = d.total, m->reserved = d.reserved, m->used = used_of(&d, t);
    m->free = m->total - m->used - m->reserved;
    return OK;
}
API int nvmlDeviceGetBAR1MemoryInfo(handle_t h, u64 *m) { ENTER(h); m[0] = 262144 * MIB, m[2] = MIB, m[1] = m[0] - m[2]; return OK; }

/* ---- load, heat, power, clocks, links ----------------------------------------------------- */

API int nvmlDeviceGetUtilizationRates(handle_t h, u32 *u) { ENTER(h); u[0] = at(&d.util, t), u[1] = u[0] / 2; return OK; }
API int nvmlDeviceGetEncoderUtilization(handle_t h, u32 *u, u32 *p) { ENTER(h); *u = 0, *p = 167000; return OK; }
API int nvmlDeviceGetDecoderUtilization(handle_t h, u32 *u, u32 *p) { ENTER(h); *u = 0, *p = 167000; return OK; }
GET_ARG(nvmlDeviceGetTemperature, u32, d.temp)
GET_ARG(nvmlDeviceGetTemperatureThreshold, u32, 90)
API int nvmlDeviceGetTemperatureV(handle_t h, int *v) { ENTER(h); v[2] = d.temp; return OK; }
GET(nvmlDeviceGetPowerUsage, u32, d.power)
GET(nvmlDeviceGetEnforcedPowerLimit, u32, d.power_limit)
GET(nvmlDeviceGetPowerManagementLimit, u32, d.power_limit)
GET_ARG(nvmlDeviceGetClockInfo, u32, arg == 2 ? 3201 : d.clock)
GET_ARG(nvmlDeviceGetMaxClockInfo, u32, arg == 2 ? 3201 : 1980)
GET(nvmlDeviceGetPerformanceState, u32, d.pstate)
GET(nvmlDeviceGetPersistenceMode, u32, 1)
GET(nvmlDeviceGetComputeMode, u32, 0)
GET(nvmlDeviceGetDisplayActive, u32, 0)
GET(nvmlDeviceGetDisplayMode, u32, 1)
GET(nvmlDeviceGetCurrPcieLinkGeneration, u32, 5)
GET(nvmlDeviceGetCurrPcieLinkWidth, u32, 16)
GET_ARG(nvmlDeviceGetPcieThroughput, u32, arg == 0 ? d.pcie_tx : d.pcie_rx)        /* KB/s */
API int nvmlDeviceGetTotalEccErrors(handle_t h, int type, int counter, u64 *n) { ENTER(h); (void)type, (void)counter; *n = d.ecc; return OK; }
GET(nvmlDeviceGetCurrentClocksEventReasons, u64, d.throttle)
API int nvmlDeviceGetEccMode(handle_t h, u32 *cur, u32 *pend) { ENTER(h); *cur = *pend = 1; return OK; }
UNSUPPORTED(nvmlDeviceGetFanSpeed)
UNSUPPORTED(nvmlDeviceGetDriverModel_v2)

struct field { uint32_t id, scope; int64_t timestamp, latency; u32 type; int rc; u64 value; };
API int nvmlDeviceGetFieldValues(handle_t h, int n, struct field *f)
{
    ENTER(h);
    for (int i = 0; i < n; i++)
        f[i].rc = NOT_SUPPORTED;
    return OK;
}

/* ---- events: `xid GPU NUMBER` tells an Xid once ------------------------------------------------- */

struct event { handle_t device; u64 type, data; u32 gi, ci; };
API int nvmlEventSetCreate(void **set) { SYSTEM(); static int one; *set = &one; return OK; }
API int nvmlDeviceRegisterEvents(handle_t h, u64 types, void *set) { ENTER(h); (void)types, (void)set; return OK; }
API int nvmlEventSetWait_v2(void *set, struct event *e, u32 timeout_ms)
{
    static int told;
    (void)set;
    SYSTEM();
    for (u32 waited = 0; waited < timeout_ms; waited += 200) {
        int due = -1;
        pthread_mutex_lock(&lock);
        load();
        for (int i = told; i < S.nrules && due < 0; i++)
            if (S.rules[i].kind == 'x')
                due = i;
        if (due >= 0) {
            told = due + 1;
            *e = (struct event){&S.devs[S.rules[due].gpu], 8, (u64)S.rules[due].value, NA32, NA32};
        }
        pthread_mutex_unlock(&lock);
        if (due >= 0)
            return OK;
        hold(0.2, 0);
    }
    return TIMEOUT;
}

/* ---- processes ---------------------------------------------------------------------------- */

struct pinfo { u32 pid; u64 used; u32 gi, ci; };                  /* the v2 and v3 layout */
static int running(const char *fn, handle_t h, u32 *n, struct pinfo *out, char type)
{
    struct dev d;
    double t;
    if (!h || !n)
        return INVALID_ARGUMENT;
    int rc = enter(fn, h, &d, &t);
    u32 room = *n, found = 0;
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < S.nprocs; i++) {
        struct proc *p = &S.procs[i];
        if (p->gpu == d.index && p->type == type && found++ < room && out)
            out[found - 1] = (struct pinfo){
                p->pid, p->mib == -1 ? NA64 : p->mib == -2 ? used_of(&d, t) : (u64)p->mib * MIB,
                d.parent >= 0 ? (u32)d.slot : NA32, d.parent >= 0 ? 0 : NA32};
    }
    pthread_mutex_unlock(&lock);
    *n = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}
#define PROCS(fn, type) API int fn(handle_t h, u32 *n, struct pinfo *p) { return running(__func__, h, n, p, type); }
PROCS(nvmlDeviceGetComputeRunningProcesses_v3, 'C')
PROCS(nvmlDeviceGetComputeRunningProcesses_v2, 'C')
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G')
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v2, 'G')
PROCS(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M')

struct psample { u32 pid; u64 timestamp; u32 sm, mem, enc, dec; };
API int nvmlDeviceGetProcessUtilization(handle_t h, struct psample *out, u32 *n, u64 since)
{
    ENTER(h);
    (void)since;
    u32 room = *n, found = 0, u = at(&d.util, t);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < S.nprocs; i++)
        if (S.procs[i].gpu == d.index && found++ < room && out)
            out[found - 1] = (struct psample){S.procs[i].pid, (u64)(now(CLOCK_REALTIME) * 1e6), u, u / 2, 0, 0};
    pthread_mutex_unlock(&lock);
    *n = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}

/* ---- MIG ---------------------------------------------------------------------------------- */

API int nvmlDeviceGetMigMode(handle_t h, u32 *cur, u32 *pend) { ENTER(h); *cur = *pend = d.mig && d.parent < 0; return OK; }
GET(nvmlDeviceGetMaxMigDeviceCount, u32, d.mig ? MIG_PER_GPU : 0)
GET(nvmlDeviceIsMigDeviceHandle, u32, d.parent >= 0)
API int nvmlDeviceGetMigDeviceHandleByIndex(handle_t h, u32 i, handle_t *out)
{
    ENTER(h);
    for (int k = S.count; k < S.ndevs; k++)
        if (S.devs[k].parent == d.index && (u32)S.devs[k].slot == i)
            return *out = &S.devs[k], OK;
    return NOT_FOUND;
}
API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle_t h, handle_t *out)
{
    ENTER(h);
    if (d.parent < 0)
        return INVALID_ARGUMENT;
    *out = &S.devs[d.parent];
    return OK;
}
API int nvmlDeviceGetGpuInstanceId(handle_t h, u32 *id) { ENTER(h); *id = d.slot; return d.parent >= 0 ? OK : INVALID_ARGUMENT; }
API int nvmlDeviceGetComputeInstanceId(handle_t h, u32 *id) { ENTER(h); *id = 0; return d.parent >= 0 ? OK : INVALID_ARGUMENT; }
