// Charts over the time of the page.

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
  const marks = Math.min(6, time.buckets);
  for (let mark = 0; mark <= marks; mark++) {
    const moment = time.start_us + ((time.end_us - time.start_us) * mark) / marks;
    const anchor = mark === 0 ? "start" : mark === marks ? "end" : "middle";
    svg.append(drawing("text", { x: x((time.buckets * mark) / marks), y: height - 6, "text-anchor": anchor }, clockTime(moment)));
  }
  return { svg, x, y, inner, bottom: height - bottom };
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
