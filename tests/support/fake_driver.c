/* A driver library for machines without a GPU: NVML and CUDA over the GPUs in FAKE_GPUS ("uuid|model|bus ...", where
   "|domain|device" may follow the bus).

   NVML lists them as they are; CUDA by bus with CUDA_DEVICE_ORDER=PCI_BUS_ID, else from the last to the first. A
   GPU of the model "MIG" has two MIG devices; one of the model "LOST" cannot be read. FAKE_HANG=1 never answers, and
   FAKE_ERROR=n fails with that code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char uuid[96], model[96]; unsigned bus, domain, device; } Gpu;
static Gpu gpus[16];
static int count;
static int visible[16], visible_count;

static int load(void) {
    if (getenv("FAKE_HANG")) for (;;) pause();
    char *text = strdup(getenv("FAKE_GPUS") ? getenv("FAKE_GPUS") : "");
    count = 0;
    for (char *one = strtok(text, " "); one; one = strtok(NULL, " "), count++)
        sscanf(one, "%95[^|]|%95[^|]|%u|%u|%u", gpus[count].uuid, gpus[count].model, &gpus[count].bus,
               &gpus[count].domain, &gpus[count].device);
    return getenv("FAKE_ERROR") ? atoi(getenv("FAKE_ERROR")) : 0;
}

static void copy(char *to, const char *from, unsigned size) { snprintf(to, size, "%s", from); }

/* Handles are 1 + index; those of MIG devices are 100 * (1 + index) + number. */
int nvmlInit_v2(void) { return load(); }
int nvmlDeviceGetCount_v2(unsigned *found) { *found = count; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(long)(index + 1);
    return strcmp(gpus[index].model, "LOST") ? 0 : 15;
}
int nvmlDeviceGetUUID(void *handle, char *to, unsigned size) {
    long number = (long)handle;
    if (number < 100) copy(to, gpus[number - 1].uuid, size);
    else snprintf(to, size, "MIG-%ld%s", number % 100, gpus[number / 100 - 1].uuid + 4);
    return 0;
}
int nvmlDeviceGetName(void *handle, char *to, unsigned size) { copy(to, gpus[(long)handle - 1].model, size); return 0; }
int nvmlDeviceGetPciInfo_v3(void *handle, char *info) {
    Gpu *gpu = &gpus[(long)handle - 1];
    memset(info, 255, 68);
    memcpy(info + 16, &gpu->domain, sizeof(unsigned));
    memcpy(info + 20, &gpu->bus, sizeof(unsigned));
    memcpy(info + 24, &gpu->device, sizeof(unsigned));
    return 0;
}
/* A GPU is as busy as its bus number says, and has 80 GiB; one that is divided does not tell. */
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *percent) {
    percent[0] = gpus[(long)handle - 1].bus;
    percent[1] = 99;
    return strcmp(gpus[(long)handle - 1].model, "MIG") ? 0 : 3;
}
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory) {
    memory[0] = 80ULL << 30;
    memory[2] = (unsigned long long)gpus[(long)handle - 1].bus << 30;
    memory[1] = memory[0] - memory[2];
    return 0;
}
int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    *current = *pending = !strcmp(gpus[(long)handle - 1].model, "MIG");
    return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *found) { (void)handle; *found = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **part) {
    *part = (void *)((long)handle * 100 + index);
    return index < 2 ? 0 : 6;
}
int nvmlDeviceGetGpuInstanceId(void *part, unsigned *id) { *id = 7 + (long)part % 100; return 0; }
int nvmlDeviceGetComputeInstanceId(void *part, unsigned *id) { (void)part; *id = 0; return 0; }

int cuInit(unsigned flags) {
    (void)flags;
    int error = load();
    if (error) return error;
    int order[16], pci = getenv("CUDA_DEVICE_ORDER") && !strcmp(getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
    for (int i = 0; i < count; i++) order[i] = pci ? i : count - 1 - i;
    for (int i = 0; pci && i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (gpus[order[j]].bus < gpus[order[i]].bus) { int k = order[i]; order[i] = order[j]; order[j] = k; }
    char *given = getenv("CUDA_VISIBLE_DEVICES");
    visible_count = 0;
    for (int i = 0; !given && i < count; i++) visible[visible_count++] = order[i];
    for (char *one = given ? strtok(strdup(given), ",") : NULL; one; one = strtok(NULL, ",")) {
        char *end;
        long index = strtol(one, &end, 10);
        if (end == one) {
            index = -1;
            for (int i = 0; i < count && strlen(one) > 4; i++)
                if (!strncmp(one, gpus[order[i]].uuid, strlen(one))) index = i;
        }
        if (index < 0 || index >= count) break;
        visible[visible_count++] = order[index];
    }
    return visible_count ? 0 : 100;
}
int cuDeviceGetCount(int *found) { *found = visible_count; return 0; }
int cuDeviceGet(int *device, int index) { *device = visible[index]; return 0; }
int cuDeviceGetUuid(unsigned char *to, int device) {
    const char *digit = gpus[device].uuid + 4;
    for (int i = 0; i < 16; i++, digit += 2) {
        unsigned value;
        if (*digit == '-') digit++;
        sscanf(digit, "%2x", &value);
        to[i] = value;
    }
    return 0;
}
