/* SPDX-License-Identifier: Apache-2.0 */
/* At CPL 0 on the first vCPU: tables, the other vCPUs, the network card. */
#include "console.h"
#include "descriptors.h"
#include "lapic.h"
#include "memory.h"
#include "options.h"
#include "ports.h"
#include "virtio_net.h"

#define PVH_MAGIC 0x336ec578
#define FIRMWARE_SELECTOR 0x510 /* QEMU's fw_cfg */
#define FIRMWARE_DATA 0x511
#define FIRMWARE_CPU_COUNT 5
#define LEGACY_CONTROLLER_1 0x21
#define LEGACY_CONTROLLER_2 0xa1
#define INIT_NS 200000
#define POLL_NS 100000
#define POLLS 100000 /* 10 s: the host may be busy */

struct start_info {
	uint32_t magic, version, flags, modules;
	uint64_t module_list, command_line;
};

struct cpu cpus[MOST_CPUS];
uint32_t cpu_count;
struct cpu *cpu_to_start;

extern uint64_t start_info;
extern uint8_t trampoline[], trampoline_end[];

struct cpu *boot(void);

static uint32_t count_cpus(void)
{
	uint32_t count;

	port_write16(FIRMWARE_SELECTOR, FIRMWARE_CPU_COUNT);
	count = port_read8(FIRMWARE_DATA);
	count |= (uint32_t)port_read8(FIRMWARE_DATA) << 8;
	return count < MOST_CPUS ? count : MOST_CPUS;
}

/* False: it did not come in time. It may come later, with what cpu_to_start says then, so no other one is started. */
static bool start(struct cpu *cpu)
{
	cpu_to_start = cpu;
	lapic_command(cpu->id, COMMAND_INIT);
	lapic_delay(INIT_NS);
	lapic_command(cpu->id, COMMAND_START | TRAMPOLINE >> 12);
	for (unsigned int i = 0; i < POLLS && !__atomic_load_n(&cpu->online, __ATOMIC_SEQ_CST); i++)
		lapic_delay(POLL_NS);
	return __atomic_load_n(&cpu->online, __ATOMIC_SEQ_CST);
}

/* Returns this vCPU's own part of memory, for entry.S. */
struct cpu *boot(void)
{
	const struct start_info *info = (const struct start_info *)start_info;

	cpu_count = count_cpus();
	options_read(info->magic == PVH_MAGIC ? (const char *)info->command_line : "");
	descriptors_fill_idt();
	for (uint32_t id = 0; id < cpu_count; id++)
		descriptors_prepare(&cpus[id], id);
	port_write8(LEGACY_CONTROLLER_1, 0xff);
	port_write8(LEGACY_CONTROLLER_2, 0xff);
	lapic_enable();
	memcpy((void *)TRAMPOLINE, trampoline, (size_t)(trampoline_end - trampoline));
	cpus[0].online = true;
	for (uint32_t id = 1; id < cpu_count && start(&cpus[id]); id++)
		;
	virtio_net_start();
	return &cpus[0];
}
