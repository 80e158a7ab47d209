/* The rooms that tasks take. */
#include "where.c"

/* The room of a task that runs by itself. */
int room_of(int32_t task, int32_t tasks, int32_t threads) {
  static char memory[64 * sizeof(room)];
  const walk w = {.rooms = memory, .room_bytes = sizeof(room), .threads = threads};
  room* taken = take_room(&w, task, tasks);
  taken->taken = 0;
  return (int)(taken - (room*)memory);
}
