/* The bounds of rows. */
#include "where_plan.h"

int short_row(void) { return TE_SELECT_SHORT_ROW_BYTES; }
int long_row(void) { return TE_SELECT_LONG_ROW_BYTES; }
