// The sections of the page, but the table of instructions.
"use strict";

function drawOverview(content) {
  for (const [number, machine] of report.machines.entries()) {
    const trust = machine.findings.filter((finding) => finding.state !== "ok");
    content.append(element("h2", {}, machine.name));
    const cards = element("div", { className: "cards" },
      element("section", { className: "card" }, element("h3", {}, "Machine"), factList(machine.facts)),
      element("section", { className: "card" }, element("h3", {}, "How far to trust it"),
        machine.findings.length === 0 ? element("p", {}, "No result of doctor is among the files.") :
          element("p", { className: trust.length ? "unclear" : "good" }, trust.length ? `${trust.length} of ${machine.findings.length} checks advise something.` : "All checks passed."),
        element("ul", {}, trust.map((finding) => element("li", {}, finding.text, finding.remedy ? element("span", { className: "note" }, ` – ${finding.remedy}`) : null)))));
    const found = report.highlights.filter((one) => one.machine === number);
    if (found.length) cards.append(element("section", { className: "card" }, element("h3", {}, "What matters"), element("ul", {}, found.map((one) => element("li", {}, element("a", { href: one.link }, one.text))))));
    content.append(cards);
    const core = report.cores.find((one) => one.machine === number);
    if (core) content.append(...diagramOf(core));
  }
  content.append(element("h2", {}, "Files"), ...textTable("Files", ["file", "machine", "contents", "measured by"],
    report.files.map((file) => [file.name, report.machines[file.machine]?.name ?? "–", file.contents, file.command])));
}

function diagramOf(core) {
  const save = element("button", { type: "button", onclick: () => saveFile("core.svg", "image/svg+xml", core.diagram) }, "Save SVG");
  const bytes = new TextEncoder().encode(core.diagram);
  const source = `data:image/svg+xml;base64,${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}`;
  return [element("h2", {}, `The core${machineTitle(core.machine)}`),
    element("div", { className: "wide card", tabindex: "0", role: "region", "aria-label": "Diagram of the core" }, element("img", { className: "diagram", src: source, alt: "Block diagram of the core. The datasheet has the same figures as a table.", width: "1200" })), element("div", { className: "tools" }, save)];
}

function drawCore(content, parameters) {
  for (const core of report.cores) {
    content.append(...diagramOf(core), element("h2", {}, `Datasheet${machineTitle(core.machine)}`));
    const rows = core.sheet.flatMap((group) => group.rows.map((row) => [group.title, row.name, row.value, row.remark]));
    content.append(element("div", { className: "sheet" }, ...textTable("Datasheet", ["part", "figure", "value", "remark"], rows)));
    const charts = core.charts.map(drawChart);
    if (core.heat) content.append(element("h2", {}, core.heat.title), ...drawHeat(core.heat));
    const all = core.numbers.map((one) => [one.name, one.verdict, one.value, one.unit, one.interval, one.why]);
    const list = element("div", {});
    const search = element("input", { type: "search", "aria-label": "Search the numbers and curves of the core", placeholder: "search, such as rob or cache" });
    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (text) => words.every((word) => text.toLowerCase().includes(word));
      list.replaceChildren(...textTable("Numbers of the core", ["number", "verdict", "value", "unit", "95 % interval", "why"], all.filter((row) => fits(row.join(" "))), ["value"]),
        element("div", { className: "cards" }, charts.filter((_, at) => fits(`${core.charts[at].title} ${core.charts[at].name}`))));
    };
    search.value = parameters.get("q") ?? "";
    search.addEventListener("input", show);
    content.append(element("h2", {}, `All numbers and curves${machineTitle(core.machine)}`), element("div", { className: "tools" }, search), list);
    show();
  }
}

function drawHeat(heat) {
  const values = heat.rows.flatMap((row) => row.values).filter(Number.isFinite);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const shade = (value) => `rgba(47, 111, 181, ${0.1 + 0.6 * (most > least ? (value - least) / (most - least) : 0.5)})`;
  const table = element("table", { className: "heat" }, element("thead", {}, element("tr", {}, element("th", {}, heat.corner), heat.columns.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, heat.rows.map((row) => element("tr", {}, element("th", { scope: "row" }, row.name), row.values.map((value) => element("td", Number.isFinite(value) ? { style: { background: shade(value) } } : {}, formatNumber(value)))))));
  return [element("div", { className: "wide card", tabindex: "0", role: "region", "aria-label": heat.title }, table)];
}

function drawTiming(content) {
  for (const timing of report.timing) {
    content.append(element("h2", {}, `Timing methods${machineTitle(timing.machine)}`));
    content.append(element("div", { className: "cards" }, timing.verdicts.map((verdict) => element("section", { className: "card" }, element("h3", {}, verdict.title), element("p", {}, element("strong", {}, verdict.clock)), element("p", { className: "note" }, verdict.why)))));
    content.append(...textTable("Timing methods", timing.methods.columns, timing.methods.rows, timing.methods.columns.slice(2)));
    if (timing.claims.length) {
      content.append(element("h2", {}, "What the documents say, and what holds here"));
      content.append(...textTable("Claims", ["claim", "source", "holds", "why"], timing.claims.map((claim) => [claim.text, claim.source,
        element("span", { className: claim.holds === true ? "good" : claim.holds === false ? "bad" : "unclear" }, claim.holds === true ? "yes" : claim.holds === false ? "no" : "open"), claim.why])));
    }
    content.append(element("h2", {}, "Graphs"), element("div", { className: "cards" }, timing.charts.map(drawChart)));
  }
}

function drawMarkers(content) {
  for (const marker of report.markers) {
    content.append(element("h2", {}, `What instrumentation costs${machineTitle(marker.machine)}`));
    // No interval is narrower than a thousandth of a cycle.
    const cycles = (value) => (Number.isFinite(value) ? formatNumber(Math.round(1000 * value) / 1000 + 0) : "–");
    for (const context of marker.contexts) {
      const most = Math.max(...context.rows.map((row) => Math.abs(row.value ?? 0)), 1e-9);
      const width = (value) => `${Math.max(0, 100 * Math.log1p(Math.abs(value ?? 0)) / Math.log1p(most))}%`;
      content.append(element("h3", {}, `Context ${context.name}: core cycles per loop`));
      content.append(...textTable(`Markers in context ${context.name}`, ["design", "state", "cost", "95 % interval", "bytes", "size (logarithmic; green: less than without)"],
        context.rows.map((row) => [row.design, row.state, cycles(row.value), Number.isFinite(row.low) && Number.isFinite(row.high) ? `${cycles(row.low)} to ${cycles(row.high)}` : "", row.bytes, element("span", { className: row.value < 0 ? "bar below" : "bar", style: { width: width(row.value) } })]), ["cost", "bytes"]));
    }
    if (marker.conclusions.length) content.append(element("h2", {}, "The document's conclusions"), ...textTable("Conclusions", ["conclusion", "verdict"], marker.conclusions.map((one) => [one.text, one.verdict])));
  }
}

function drawPrograms(content) {
  for (const table of report.programs) content.append(element("h2", {}, `${table.title}${machineTitle(table.machine)}`), ...textTable(table.title, table.columns, table.rows));
}

addSection("overview", "Overview", true, drawOverview);
addSection("core", "Core", report.cores.length > 0, drawCore);
addSection("instructions", "Instructions", report.instructions.length > 0, (content, parameters) => drawInstructions(content, parameters));
addSection("timing", "Timing methods", report.timing.length > 0, drawTiming);
addSection("markers", "Markers", report.markers.length > 0, drawMarkers);
addSection("programs", "Programs", report.programs.length > 0, drawPrograms);
