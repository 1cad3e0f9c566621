// The table of instructions: searched, filtered, sorted, compared with another table.
"use strict";

/** A table as columns: `fields` holds an array for each name; texts are numbers in `texts`. */
class InstructionTable {
  constructor(summary, details) {
    this.details = details;
    this.chunks = new Map();
    const text = (name) => summary.columns[name].map((at) => summary.texts[at]);
    this.code = text("code"); this.mnemonic = text("mnemonic"); this.operands = text("operands"); this.encoding = text("encoding");
    this.isa = text("isa"); this.latency = text("latency"); this.status = text("status"); this.caveats = text("caveats");
    for (const name of ["latency_most", "throughput", "low", "high", "slots"]) this[name] = summary.columns[name];
    this.size = this.code.length;
    this.name = this.mnemonic.map((mnemonic, at) => (this.operands[at] ? `${mnemonic} ${this.operands[at]}` : mnemonic));
    this.search = this.name.map((name, at) => `${name} ${this.code[at]} ${this.isa[at]} ${this.encoding[at]} ${this.caveats[at]}`.toLowerCase());
    this.places = new Map(this.code.map((_, at) => [this.key(at), at]));
    this.by_name = new Map(this.name.map((name, at) => [name, at]));
    this.differences = new Map();
  }

  key(row) { return `${this.code[row]} ${this.operands[row]} ${this.encoding[row]}`; }

  /** The whole record of a row. */
  async detail(row) {
    const number = Math.floor(row / report.rows_per_chunk);
    if (!this.details[number]) return null;
    if (!this.chunks.has(number)) this.chunks.set(number, readBlob(this.details[number]));
    return (await this.chunks.get(number))[row % report.rows_per_chunk];
  }
}

/** What a published table says of each row of a table of results, joined by the rules of `cyclescope compare`. */
class PublishedTable extends InstructionTable {
  constructor(summary) {
    super(summary, []);
    this.isNamed = summary.is_named;
    this.difference = summary.difference;
  }
}

/** Whether a row fits the words of a search. A word with `*` or `?` is a glob on the mnemonic. */
function searchFunction(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const tests = words.map((word) => {
    if (!/[*?]/.test(word)) return (table, row) => table.search[row].includes(word);
    const pattern = new RegExp(`^${word.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")}$`);
    return (table, row) => pattern.test(table.mnemonic[row].toLowerCase());
  });
  return (table, row) => tests.every((test) => test(table, row));
}

/** How far two tables differ in a row, as a share of the larger figure; null without figures. */
function rowDifference(table, row, other, there) {
  if (there === undefined) return null;
  const shares = [["latency_most"], ["throughput"], ["slots"]].map(([name]) => {
    const [a, b] = [table[name][row], other[name][there]];
    return a === null || b === null ? null : Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b), 0.05);
  }).filter((share) => share !== null);
  return shares.length ? Math.max(...shares) : null;
}

function drawInstructions(content, parameters) {
  const loading = element("p", {}, "Reading the table …");
  content.append(element("h2", {}, "Instructions"), loading);
  let update = null;
  openTables().then((tables) => {
    if (!loading.isConnected) return;
    loading.remove();
    update = new InstructionView(content, tables, readLink().parameters).update;
  });
  return (changed) => update?.(changed);
}

function openTables() {
  openTables.tables ??= Promise.all(report.instructions.map(async (one) => {
    const table = new InstructionTable(await readBlob(one.summary), one.details);
    table.joins = new Map(await Promise.all(one.joins.map(async (join) => [join.table, new PublishedTable(await readBlob(join.summary))])));
    return table;
  }));
  return openTables.tables;
}

const instructionColumns = [
  { id: "name", name: "instruction", width: 330, isText: true },
  { id: "latency", name: "latency", width: 110, sortBy: "latency_most" },
  { id: "throughput", name: "rthroughput", width: 125 },
  { id: "interval", name: "95 % interval", width: 140, sortBy: "low", isHidden: true },
  { id: "slots", name: "slots", width: 85 },
  { id: "encoding", name: "encoding", width: 95, isText: true },
  { id: "isa", name: "extension", width: 150, isText: true },
  { id: "caveats", name: "caveats", width: 190, isText: true },
  { id: "status", name: "status", width: 90, isText: true, isHidden: true },
  { id: "code", name: "code", width: 260, isText: true, isHidden: true },
];

class InstructionView {
  constructor(content, tables, parameters) {
    this.tables = tables;
    this.rows = [];
    this.sorted = { id: "name", ascending: true };
    const names = report.instructions.map((one) => (one.is_published ? `${one.name} (published)` : one.name));
    const option = (name, at) => element("option", { value: at }, name);
    this.searchBox = element("input", { type: "search", id: "search", "aria-label": "Search instructions", placeholder: "search: imul r64, vpadd*, avx512 …", oninput: () => this.change() });
    this.statusBox = element("select", { "aria-label": "Which rows", onchange: () => this.change() }, ["measured rows", "all rows", "rows with caveats", "failed and skipped rows"].map(option));
    this.first = element("select", { "aria-label": "Table", onchange: () => this.change() }, names.map(option));
    this.other = element("select", { "aria-label": "Compare with", onchange: () => this.change() }, element("option", { value: "" }, "compare with …"), names.map(option));
    this.count = element("span", { className: "note", role: "status" });
    this.columnBox = element("details", {}, element("summary", {}, "Columns"), instructionColumns.map((column) =>
      element("label", {}, element("input", { type: "checkbox", value: column.id, checked: !column.isHidden, onchange: () => this.showColumns() }), ` ${column.name} `)));
    const copied = () => this.tableOnScreen();
    this.holder = element("div", { id: "instruction-grid", "aria-label": "Instructions" });
    this.detail = element("section", { id: "row-detail", "aria-live": "polite" });
    content.append(element("div", { className: "tools" }, this.searchBox, this.statusBox, names.length > 1 ? [this.first, this.other] : null, this.count),
      element("div", { className: "tools" }, this.columnBox, copyButtons("the rows on the screen", copied)), this.holder, this.detail);
    this.update = (changed) => this.follow(changed);
    this.grid = new Slick.Grid(this.holder, { getLength: () => this.rows.length, getItem: (at) => ({ row: this.rows[at] }) }, this.columns(), {
      enableColumnReorder: false, enableHtmlRendering: false, rowHeight: 26, nonce, multiColumnSort: false, forceFitColumns: false, enableCellNavigation: true, enableTextSelectionOnCells: true, editable: false });
    this.grid.onSort.subscribe((_, sort) => { this.sorted = { id: sort.sortCol?.id ?? sort.columnId, ascending: sort.sortAsc }; this.search(); });
    this.grid.onClick.subscribe((_, place) => this.choose(place.row));
    this.grid.onKeyDown.subscribe((event, place) => { if ((event.getNativeEvent?.() ?? event).key === "Enter") this.choose(place.row); });
    // The grid holds only the rows on the screen; paper gets all rows of the search.
    addEventListener("beforeprint", () => this.holder.isConnected && this.holder.after(this.paper = this.tableForPaper()));
    addEventListener("afterprint", () => this.paper?.remove());
    addEventListener("resize", () => this.holder.isConnected && this.grid.resizeCanvas());
    this.follow(parameters);
  }

  get table() { return this.tables[Number(this.first.value) || 0]; }
  get otherTable() {
    if (this.other.value === "") return null;
    const other = this.tables[Number(this.other.value)];
    return other.joins.get(Number(this.first.value)) ?? other;
  }

  /** Results come first, because published lines are joined with their rows. */
  orderTables() {
    const isPublished = (box) => box.value !== "" && report.instructions[Number(box.value)].is_published;
    if (this.other.value !== "" && isPublished(this.first) && !isPublished(this.other)) [this.first.value, this.other.value] = [this.other.value, this.first.value];
  }

  columns() {
    // On a telephone, the name leaves room for a figure.
    const width = (column) => (column.id === "name" ? Math.min(column.width, Math.max(120, 0.45 * this.holder.clientWidth || column.width)) : column.width);
    const make = (column, suffix = "", side = 0) => ({ id: column.id + suffix, name: column.name + suffix, field: column.id, width: width(column), sortable: true, resizable: true,
      cssClass: column.isText ? "" : "number", formatter: (_row, _cell, _value, _column, { row }) => (side ? this.cellText(column.id, this.there(row), this.otherTable) : this.cellText(column.id, row)) });
    const chosen = [...this.columnBox.querySelectorAll("input:checked")].map((box) => box.value);
    const isCompared = (column) => this.otherTable && !column.isText;
    const columns = instructionColumns.filter((column) => chosen.includes(column.id)).flatMap((column) => (isCompared(column) ? [make(column, " A"), make(column, " B", 1)] : [make(column)]));
    if (this.otherTable) {
      columns.splice(1, 0, { id: "difference", name: "differs by", field: "difference", width: 90, sortable: true, cssClass: "number differs",
        formatter: (_row, _cell, _value, _column, { row }) => this.differenceText(row) });
    }
    return columns;
  }

  /** The row of the other table for one of this. */
  there(row) {
    const other = this.otherTable;
    if (other instanceof PublishedTable) return other.isNamed[row] ? row : undefined;
    return other?.places.get(this.table.key(row)) ?? other?.by_name.get(this.table.name[row]);
  }

  /** The differences of all rows from the other table, computed once. */
  difference(row) {
    const table = this.table;
    if (this.otherTable instanceof PublishedTable) return this.otherTable.difference[row];
    const known = table.differences.get(this.other.value) ?? table.name.map((_, at) => rowDifference(table, at, this.otherTable, this.there(at)));
    table.differences.set(this.other.value, known);
    return known[row];
  }

  differenceText(row) { const share = this.difference(row); return share === null ? "–" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`; }

  cellText(id, row, table = this.table) {
    if (row === undefined || row === null) return "–";
    if (id === "interval") return table.low[row] === null ? "" : `${formatNumber(table.low[row])} to ${formatNumber(table.high[row])}`;
    // A published table has no intervals, but ranges.
    if (id === "throughput" && table instanceof PublishedTable && table.low[row] !== null) return `${formatNumber(table.low[row])} – ${formatNumber(table.high[row])}`;
    const value = table[id][row];
    return typeof value === "string" ? value : formatNumber(value);
  }

  showColumns() { this.grid.setColumns(this.columns()); }

  /** Applies a link's search, choices and row. */
  follow(parameters) {
    this.searchBox.value = parameters.get("q") ?? "";
    this.statusBox.value = parameters.get("rows") ?? "0";
    this.first.value = parameters.get("a") ?? "0";
    this.other.value = parameters.get("b") ?? "";
    this.orderTables();
    if (this.other.value !== "") this.sorted = { id: "difference", ascending: false };
    this.search();
    const key = parameters.get("row");
    if (key) this.open(this.table.places.get(key));
  }

  /** Puts the choices into the link, and searches. */
  change() {
    this.orderTables();
    const parameters = new URLSearchParams();
    for (const [name, value, plain] of [["q", this.searchBox.value, ""], ["rows", this.statusBox.value, "0"], ["a", this.first.value, "0"], ["b", this.other.value, ""]]) {
      if (value !== plain) parameters.set(name, value);
    }
    history.replaceState(null, "", `#instructions${parameters.size ? `?${parameters}` : ""}`);
    if (this.other.value !== "" && !this.grid.getColumns().some((column) => column.id === "difference")) this.sorted = { id: "difference", ascending: false };
    if (this.other.value === "" && !instructionColumns.some((column) => column.id === this.sorted.id)) this.sorted = { id: "name", ascending: true };
    this.search();
  }

  search() {
    const start = performance.now();
    const [table, fits] = [this.table, searchFunction(this.searchBox.value)];
    const kinds = [(row) => table.status[row] === "measured", () => true, (row) => table.caveats[row] !== "", (row) => table.status[row] !== "measured"];
    const isShown = kinds[Number(this.statusBox.value)] ?? kinds[0];
    this.rows = this.sortedRows().filter((row) => isShown(row) && fits(table, row));
    this.grid.setSortColumn(this.sorted.id, this.sorted.ascending);
    const columns = this.columns();
    if (columns.map((column) => column.id).join() !== this.grid.getColumns().map((column) => column.id).join()) this.grid.setColumns(columns);
    this.redraw();
    this.count.textContent = `${this.rows.length} of ${table.size} rows`;
    this.milliseconds = performance.now() - start;
  }

  /** All rows in the chosen order, which is kept: a search only leaves rows out. */
  sortedRows() {
    const { id, ascending } = this.sorted;
    const key = [this.first.value, this.other.value, id, ascending].join();
    if (this.order?.key === key) return this.order.rows;
    const side = id.endsWith(" B") ? 1 : 0;
    const column = instructionColumns.find((one) => one.id === id.replace(/ [AB]$/, ""));
    const values = column?.sortBy ?? column?.id;
    const value = id === "difference" ? (row) => this.difference(row) : side ? (row) => { const at = this.there(row); return at === undefined ? null : this.otherTable[values][at]; } : (row) => this.table[values][row];
    const keyed = Array.from({ length: this.table.size }, (_, row) => [value(row), row]);
    const order = column?.isText ? (a, b) => (a < b ? -1 : a > b ? 1 : 0) : (a, b) => a - b;
    // Rows without a figure come last in both directions.
    keyed.sort(([a, first], [b, second]) => (a === null) - (b === null) || (a === null ? 0 : ascending ? order(a, b) : order(b, a)) || first - second);
    this.order = { key, rows: keyed.map(([, row]) => row) };
    return this.order.rows;
  }

  redraw() {
    const most = Math.max(320, innerHeight - 240);
    this.holder.style.height = `${Math.min(most, 26 * this.rows.length + 64)}px`;
    this.grid.resizeCanvas();
    this.grid.invalidateAllRows();
    this.grid.updateRowCount();
    this.grid.render();
    if (this.rows.length) this.grid.scrollRowToTop(0);
  }

  tableForPaper() {
    const { columns, rows } = this.tableOnScreen();
    const isText = this.grid.getColumns().map((column) => !column.cssClass);
    const cells = (name, texts) => element("tr", {}, texts.map((text, at) => element(name, { className: isText[at] ? null : "number" }, text)));
    return element("table", { className: "paper" }, element("caption", {}, this.count.textContent), element("thead", {}, cells("th", columns)), element("tbody", {}, rows.map((row) => cells("td", row))));
  }

  tableOnScreen() {
    const columns = this.grid.getColumns();
    const text = (column, row) => column.formatter(0, 0, null, column, { row });
    return { columns: columns.map((column) => column.name), rows: this.rows.map((row) => columns.map((column) => text(column, row))) };
  }

  choose(place) {
    const row = this.rows[place];
    const parameters = readLink().parameters;
    parameters.set("row", this.table.key(row));
    history.replaceState(null, "", `#instructions?${parameters}`);
    this.open(row);
  }

  async open(row) {
    if (row === undefined) { this.detail.replaceChildren(element("p", { className: "bad" }, "The link names a row that this table lacks.")); return; }
    const record = await this.table.detail(row);
    const link = element("a", { href: `#instructions?${new URLSearchParams({ row: this.table.key(row) })}` }, "link to this row");
    const head = [element("h3", { tabindex: "-1" }, this.table.name[row]), element("p", { className: "note" }, this.table.code[row], " · ", this.table.encoding[row], " · ", this.table.isa[row], " · ", link)];
    if (!record) { this.detail.replaceChildren(element("div", { className: "card" }, head)); return; }
    const card = element("div", { className: "card" }, head);
    if (record.reason) card.append(element("p", { className: "bad" }, record.reason));
    const value = (quantity) => formatNumber(quantity?.value);
    if (record.latency?.length) card.append(element("h3", {}, "Latency"), ...textTable("Latencies", ["from", "to", "cycles", "95 % interval", "bound", "variant", "chain"],
      record.latency.map((one) => [one.from, one.to, value(one.cost), formatRange(one.cost), one.bound, one.variant ?? "", element("code", {}, one.chain)]), ["cycles"]));
    const rate = record.throughput;
    if (rate) {
      const facts = [["cycles per instruction", `${value(rate.cost)} (${formatRange(rate.cost)})${rate.fraction ? `, ${rate.fraction}` : ""}`], ["program", rate.recipe]];
      if (rate.modes?.length) facts.push(["modes", rate.modes.map(formatNumber).join(", ")]);
      if (rate.typical_modes?.length) facts.push(["typical", rate.typical_modes.map((mode) => `${formatNumber(mode.cycles)} in ${Math.round(100 * mode.share)} % of layouts`).join(", ")]);
      card.append(element("h3", {}, "Reciprocal throughput"), factList(facts));
    }
    const slots = record.slots;
    if (slots) card.append(element("h3", {}, "Dispatch slots"), factList([["slots", `${slots.whole ?? "–"} (${slots.verdict}; ${value(slots.count)}, ${formatRange(slots.count)})`], ["fillers", slots.fillers.join(", ")], ...(slots.why ? [["why", slots.why]] : [])]));
    const more = [["bytes", record.bytes], ...(record.implicit?.length ? [["implicit operands", record.implicit.join(", ")]] : []), ...(record.tags?.length ? [["tags", record.tags.join(", ")]] : []), ...(record.caveats ?? []).map((caveat) => [`caveat ${caveat.code}`, caveat.text])];
    card.append(element("h3", {}, "More"), factList(more), element("pre", {}, record.repro), element("div", { className: "tools" },
      element("button", { type: "button", onclick: () => copyText(record.repro, "the command") }, "Copy the command"), element("button", { type: "button", onclick: () => copyText(JSON.stringify(record, null, 1), "the record") }, "Copy the record as JSON")));
    this.detail.replaceChildren(card);
    card.querySelector("h3").focus({ preventScroll: false });
  }
}
