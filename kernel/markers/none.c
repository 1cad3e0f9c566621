// SPDX-License-Identifier: MIT OR GPL-2.0
/* No site: the base that all others are compared with. */
#include <linux/kernel.h>

#define DESIGN			none
#define SITE_bare(name)		do { } while (0)
#include "codes.h"

DEFINE_MARKER(none, "none", NULL);
