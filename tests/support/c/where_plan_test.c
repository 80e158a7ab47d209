/* The joining of shapes alone. */
#include "where_plan.h"
