/* What files of the C half have in the place of the C library's, to be recorded. */
#include <stddef.h>

void* take_memory(size_t size);
void give_memory_back(void* memory);
void count_fence(void);

#define malloc take_memory
#define free give_memory_back
#define __builtin_ia32_sfence count_fence
