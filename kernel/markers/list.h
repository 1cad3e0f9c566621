/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Every design of a marker, by name. Each is the file of that name beside this one. */
MARKER(flag)
MARKER(immediate)
MARKER(none)
MARKER(static_key)
MARKER(tracepoint)
