/* The guest of the command kvm (kvm.c, kvm_guest.c). */
#pragma once

#include "probe.h"

/* The guest's memory in bytes, the address of its first instruction, and the port that it writes to. */
enum { GUEST_MEMORY = 2 << 20, GUEST_CODE = 0x8000, GUEST_PORT = 0xf8 };

/* guest_prepare fills the guest's memory, which must be zero. */
void guest_prepare(char *memory);
