/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Every design of a marker, by name. Each is in the file of that name in this folder. */
MARKER(flag)
MARKER(immediate)
MARKER(none)
MARKER(static_key)
MARKER(tracepoint)
