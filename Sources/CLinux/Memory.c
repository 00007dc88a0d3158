#include "CLinux.h"
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

// Code alone: pages of other segments may hold relocations, which exist nowhere else.
static int unmap_code(struct dl_phdr_info *object, size_t size, void *page_size) {
    (void)size;
    uintptr_t mask = *(uintptr_t *)page_size - 1;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & (PF_X | PF_W)) != PF_X) continue;
        uintptr_t start = (object->dlpi_addr + segment->p_vaddr + mask) & ~mask;
        uintptr_t end = (object->dlpi_addr + segment->p_vaddr + segment->p_filesz) & ~mask;
        // Refused for what is no file (the kernel's own page of code, for one), which is as well.
        if (start < end) madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

void sluice_give_back_memory(void) {
    malloc_trim(0);
    uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    dl_iterate_phdr(unmap_code, &page_size);
}
