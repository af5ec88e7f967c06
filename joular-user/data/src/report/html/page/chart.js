// Charts over the time of the page.

/** Room for the labels of bytes per second. */
const LEFT = 76;

const SERIES_COLORS = [
  "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9",
  "#b3a100", "#6a4c93", "#8c564b", "#3cb4ac", "#e377a8", "#9aa0a6",
];

/** An empty chart up to `top`: a grid with labels, and moments below. `x` is of a bucket, `y` of a value. */
function timeChart(place, time, [height, left], top, label) {
  const [width, bottom] = [Math.max(place.clientWidth, 200), 22];
  const inner = width - left - 6;
  const x = (bucket) => left + (inner * bucket) / time.buckets;
  const y = (value) => height - bottom - ((height - bottom - 8) * value) / top;
  const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(drawing("line", { class: "grid", x1: left, x2: width - 6, y1: y(top * part), y2: y(top * part) }));
    svg.append(drawing("text", { x: left - 6, y: y(top * part) + 4, "text-anchor": "end" }, label(top * part)));
  }
  momentMarks(svg, time, inner, x, height - 6);
  return { svg, x, y, inner, bottom: height - bottom };
}

/** Moments below a chart that is `inner` wide. `x` is of a bucket. */
function momentMarks(svg, time, inner, x, y) {
  const marks = Math.max(1, Math.min(6, time.buckets, Math.floor(inner / 80)));
  for (let mark = 0; mark <= marks; mark++) {
    const moment = time.start_us + ((time.end_us - time.start_us) * mark) / marks;
    const anchor = mark === 0 ? "start" : mark === marks ? "end" : "middle";
    svg.append(drawing("text", { x: x((time.buckets * mark) / marks), y, "text-anchor": anchor }, clockTime(moment)));
  }
}

/** Steps, not slopes: a bucket has one value. Raises `below` by the values. */
function stackedArea(valueAt, below, x, y) {
  const [up, down] = [[], []];
  for (let bucket = 0; bucket < below.length; bucket++) {
    const [from, to] = [x(bucket).toFixed(1), x(bucket + 1).toFixed(1)];
    const floor = y(below[bucket]).toFixed(1);
    below[bucket] += valueAt(bucket);
    const ceiling = y(below[bucket]).toFixed(1);
    up.push(`${from} ${ceiling}L${to} ${ceiling}`);
    down.unshift(`${to} ${floor}L${from} ${floor}`);
  }
  return `M${up.join("L")}L${down.join("L")}Z`;
}

/** The next of 1, 2, 5, 10, … */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) || value;
}

/** Series on top of each other, each with a name and a value `at` a bucket, and their names below. */
function stackChart(time, id, series, label) {
  const sums = buckets(time).map((bucket) => series.reduce((sum, each) => sum + each.at(bucket), 0));
  const below = new Array(time.buckets).fill(0);
  seriesChart(time, id, series, Math.max(...sums, 1), label, (each, { x, y }, color) =>
    ({ d: stackedArea(each.at, below, x, y), fill: color }));
}

/** The same with a line for each, where a sum would mean nothing. */
function lineChart(time, id, series, label) {
  const top = Math.max(...series.flatMap((each) => buckets(time).map(each.at)), 1);
  const steps = (each, { x, y }) => buckets(time).map((bucket) => {
    const level = y(each.at(bucket)).toFixed(1);
    return `${x(bucket).toFixed(1)} ${level}L${x(bucket + 1).toFixed(1)} ${level}`;
  });
  seriesChart(time, id, series, top, label, (each, chart, color) =>
    ({ d: `M${steps(each, chart).join("L")}`, fill: "none", stroke: color, "stroke-width": 1.5 }));
}

function seriesChart(time, id, series, top, label, shapeOf) {
  const chart = timeChart(byId(id), time, [160, LEFT], niceAbove(top), label);
  series.forEach((each, index) => {
    const shape = shapeOf(each, chart, SERIES_COLORS[index % SERIES_COLORS.length]);
    chart.svg.append(drawing("path", shape, drawing("title", {}, each.name)));
  });
  byId(id).replaceChildren(chart.svg);
  chartLegend(id, series.map((each) => each.name));
}

function buckets(time) {
  return Array.from({ length: time.buckets }, (_, bucket) => bucket);
}

function chartLegend(id, names) {
  byId(`${id}-legend`).replaceChildren(...names.map((name, index) =>
    element("li", {}, swatch(SERIES_COLORS[index % SERIES_COLORS.length]), name)));
}

/** Of bytes in a bucket, which may be shorter than others if it is the last one. */
function bytesPerSecond(time, bytes, bucket) {
  return (bytes * 1e6) / Math.max(Math.min(time.width_us, time.end_us - time.start_us - bucket * time.width_us), 1);
}
