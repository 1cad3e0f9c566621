// The frame of the page: its data, sections, and what all sections share.
"use strict";

const report = JSON.parse(document.getElementById("report-data").textContent);
const nonce = document.currentScript.nonce;

/** Creates an element. Texts become text nodes, so nothing in a file is read as HTML. */
function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "className") made.className = value;
    else if (key === "style") Object.assign(made.style, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Reads a compressed part of the page. */
async function readBlob(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function showStatus(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  clearTimeout(showStatus.timer);
  showStatus.timer = setTimeout(() => (status.textContent = ""), 4000);
}

function saveFile(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page opened from disk may lack the clipboard's interface.
    const area = element("textarea", { "aria-hidden": "true" }, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  showStatus(`Copied ${what}`);
}

/** Formats a number with at most four significant digits; null becomes a dash. */
function formatNumber(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2);
  return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(size < 1 ? 3 : 4)));
}

function formatRange(quantity) {
  if (!quantity || quantity.low === null || quantity.low === undefined || quantity.high === null) return "";
  return `${formatNumber(quantity.low)} to ${formatNumber(quantity.high)}`;
}

/** The formats in which a table is copied. A cell that a spreadsheet would compute is quoted. */
const tableFormats = {
  Markdown: ({ columns, rows }) => {
    const cell = (text) => String(text).replace(/[\\|`<>*_\[\]]/g, "\\$&").replace(/\s+/g, " ");
    const line = (cells) => `| ${cells.map(cell).join(" | ")} |`;
    return [line(columns), line(columns.map(() => "---")).replace(/\\/g, ""), ...rows.map(line)].join("\n") + "\n";
  },
  CSV: ({ columns, rows }) => {
    const cell = (text) => {
      const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(text) ? `'${text}` : String(text);
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    return [columns, ...rows].map((row) => row.map((text) => cell(text ?? "")).join(",")).join("\n") + "\n";
  },
  JSON: ({ columns, rows }) =>
    JSON.stringify(rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]]))), null, 1) + "\n",
};

/** Buttons that copy a table as Markdown, CSV and JSON. `table` returns columns and rows. */
function copyButtons(what, table) {
  return Object.keys(tableFormats).map((format) =>
    element("button", { type: "button", onclick: () => copyText(tableFormats[format](table()), `${what} as ${format}`) }, `Copy ${format}`));
}

/** A table of texts. Columns named in `numbers` are aligned to the right. */
function textTable(what, columns, rows, numbers = []) {
  const place = (at) => (numbers.includes(columns[at]) ? "number" : null);
  const body = rows.map((row) => element("tr", {}, row.map((cell, at) => element("td", { className: place(at) }, cell instanceof Node ? cell : String(cell ?? "")))));
  const plain = () => ({ columns, rows: rows.map((row) => row.map((cell) => (cell instanceof Node ? cell.textContent : cell ?? ""))) });
  return [
    element("div", { className: "wide", tabindex: "0", role: "region", "aria-label": what },
      element("table", {}, element("thead", {}, element("tr", {}, columns.map((name, at) => element("th", { scope: "col", className: place(at) }, name)))), element("tbody", {}, body))),
    element("div", { className: "tools" }, copyButtons(what, plain)),
  ];
}

function factList(facts) {
  return element("dl", { className: "facts" }, facts.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]).flat());
}

function machineTitle(machine) {
  return report.machines.length > 1 ? `: ${report.machines[machine]?.name ?? "unknown machine"}` : "";
}

// Each section: its name in links, its title, whether the files have it, and what draws it.
const sections = [];

function addSection(name, title, isPresent, draw) {
  if (isPresent) sections.push({ name, title, draw });
}

/** The link behind `#`: a section, and its parameters. */
function readLink() {
  const [name, query] = location.hash.slice(1).split("?");
  return { name, parameters: new URLSearchParams(query ?? "") };
}

function openLink() {
  const { name, parameters } = readLink();
  if (name === "content") return;
  const section = sections.find((other) => other.name === name) ?? sections[0];
  const content = document.getElementById("content");
  if (openLink.shown !== section) {
    openLink.shown = section;
    openLink.update = null;
    content.replaceChildren();
    openLink.update = section.draw(content, parameters) ?? null;
    for (const link of document.querySelectorAll("#sections a")) {
      if (link.hash === `#${section.name}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  } else if (openLink.update) openLink.update(parameters);
}

function chooseTheme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  document.dispatchEvent(new Event("theme"));
}

function startPage() {
  document.getElementById("theme").addEventListener("click", chooseTheme);
  document.getElementById("sections").append(...sections.map((section) => element("a", { href: `#${section.name}` }, section.title)));
  addEventListener("hashchange", openLink);
  openLink();
}
