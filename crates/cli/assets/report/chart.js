// Curves by uPlot: values at the pointer and by arrow keys, to save as PNG or CSV.
"use strict";

const curveColours = ["#2f6fb5", "#c2571a", "#1f8a5b", "#8a4fb0", "#b0306a", "#7a6a00", "#00808a"];

/** The x values of all series, merged, and one column of y values for each. */
function alignSeries(series) {
  const places = [...new Set(series.flatMap((one) => one.points.map((point) => point[0])))].filter(Number.isFinite).sort((a, b) => a - b);
  const columns = series.map((one) => {
    const values = new Map(one.points.map((point) => [point[0], point[1]]));
    return places.map((x) => (Number.isFinite(values.get(x)) ? values.get(x) : values.has(x) ? null : undefined));
  });
  return [places, ...columns];
}

function chartTable(chart) {
  const data = alignSeries(chart.series);
  return {
    columns: [chart.x.label, ...chart.series.map((one) => one.name)],
    rows: data[0].map((x, at) => [x, ...data.slice(1).map((column) => column[at] ?? "")]),
  };
}

/** Draws a chart into a new element. */
function drawChart(chart) {
  const holder = element("div", { className: "chart", tabindex: "0", role: "img", "aria-label": `${chart.title}. Arrow keys read the values.` });
  const figure = element("figure", { className: "card" }, element("h3", {}, chart.title), chart.note ? element("p", { className: "note" }, chart.note) : null, holder);
  const data = alignSeries(chart.series);
  const isLog = (axis) => axis.scale === "log" || axis.scale === "binary";
  const fits = (axis, columns) => !isLog(axis) || columns.every((column) => column.every((value) => value === null || value === undefined || value > 0));
  const colours = () => { const style = getComputedStyle(document.documentElement); return { text: style.getPropertyValue("--text"), line: style.getPropertyValue("--line") }; };
  let plot = null;
  const draw = () => {
    const { text, line } = colours();
    const axis = (of) => ({ stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, label: of.label, labelSize: 22, size: 46,
      values: (_, splits) => splits.map((value) => (value === null ? "" : of.scale === "binary" ? formatBytes(value) : formatNumber(value))) });
    const scale = (of, columns) => (isLog(of) && fits(of, columns) ? { distr: 3, log: of.scale === "binary" ? 2 : 10 } : {});
    plot?.destroy();
    plot = new uPlot({
      width: Math.max(260, holder.clientWidth || 480), height: 280,
      scales: { x: { time: false, ...scale(chart.x, [data[0]]) }, y: scale(chart.y, data.slice(1)) },
      axes: [axis(chart.x), axis(chart.y)],
      series: [{ label: chart.x.label, value: (_, value) => formatNumber(value) }, ...chart.series.map((one, at) => ({
        label: one.name, stroke: curveColours[at % curveColours.length], width: one.style === "line" ? 2 : 0, spanGaps: true,
        paths: one.style === "line" ? undefined : () => null, points: { show: one.style !== "line" || one.points.length < 60, size: 5 },
        value: (_, value) => formatNumber(value) }))],
    }, data, holder);
  };
  let place = -1;
  holder.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !plot) return;
    event.preventDefault();
    place = Math.min(data[0].length - 1, Math.max(0, place + step));
    plot.setCursor({ left: plot.valToPos(data[0][place], "x"), top: 20 });
    const values = chart.series.map((one, at) => [one.name, data[at + 1][place]]).filter(([, value]) => Number.isFinite(value));
    showStatus(`${chart.x.label} ${formatNumber(data[0][place])}: ${values.map(([name, value]) => `${name} ${formatNumber(value)}`).join(", ")}`);
  });
  document.addEventListener("theme", () => holder.isConnected && draw());
  new ResizeObserver(() => { if (plot && Math.abs(plot.width - holder.clientWidth) > 8 && holder.clientWidth) plot.setSize({ width: Math.max(260, holder.clientWidth), height: 280 }); }).observe(holder);
  new IntersectionObserver((entries, watcher) => { if (entries.some((entry) => entry.isIntersecting)) { watcher.disconnect(); draw(); } }).observe(holder);
  const name = chart.name ?? "chart";
  figure.append(element("div", { className: "tools" },
    element("button", { type: "button", onclick: () => { if (!plot) draw(); plot.ctx.canvas.toBlob((image) => saveFile(`${name}.png`, "image/png", image)); } }, "Save PNG"),
    element("button", { type: "button", onclick: () => saveFile(`${name}.csv`, "text/csv", tableFormats.CSV(chartTable(chart))) }, "Save CSV"),
    copyButtons(chart.title, () => chartTable(chart))[0]));
  return figure;
}

function formatBytes(value) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${formatNumber(value)} ${units[at]}`;
}
