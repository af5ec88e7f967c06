// Two data sets as one tree: what nodes have in A and in B, in the unit of the page's tables, and what changed.

/** Columns of whole amounts, each side with what makes figures of them. `larger` is what the wider of both takes. */
function pairTree({ self_a, self_b, a_factor, b_factor, ...columns }) {
  const a = Float64Array.from(self_a, (amount) => amount * a_factor);
  const b = Float64Array.from(self_b, (amount) => amount * b_factor);
  return treeOf(columns, { a, b, larger: a.map((before, node) => Math.max(before, b[node])) });
}

/** The colour of what a node itself changed by: red has more, blue less, and the palest ones have little. */
function changeColors(tree) {
  const changes = tree.own.b.map((now, node) => now - tree.own.a[node]);
  let most = 0;
  for (const change of changes) most = Math.max(most, Math.abs(change));
  return (node) => {
    const part = most > 0 ? Math.sqrt(Math.abs(changes[node]) / most) : 0;
    const [pale, full] = [[214, 218, 224], changes[node] > 0 ? [236, 92, 72] : [74, 144, 226]];
    return `rgb(${pale.map((from, at) => Math.round(from + (full[at] - from) * part)).join(", ")})`;
  };
}

function changeLegend(place) {
  place.replaceChildren(...[["rgb(74, 144, 226)", "less itself in B"], ["rgb(214, 218, 224)", "as much"], ["rgb(236, 92, 72)", "more itself in B"]]
    .map(([color, name]) => element("li", {}, swatch(color), name)));
}

function figureText(value, unit) {
  return `${threeFigures(value)} ${unit}`;
}

/** A change with its sign, and how much that is of what was before. */
function changeText(before, now, unit) {
  const sign = now > before ? "+" : now < before ? "−" : "±";
  const part = before > 0 ? ` (${sign}${((100 * Math.abs(now - before)) / before).toFixed(1)} %)` : " (new)";
  return `${sign}${figureText(Math.abs(now - before), unit)}${part}`;
}

/** What there is to say of a node of both: its totals, and what it has itself. */
function pairLines(figures, tree, node) {
  const { unit } = figures.pair;
  const detail = tree.detail[node];
  const row = (title, of) => {
    const [before, now] = [of.a[node], of.b[node]];
    return before === 0 && now === 0 ? [] : [`${title}A ${figureText(before, unit)}, B ${figureText(now, unit)}: ${changeText(before, now, unit)}`];
  };
  return [...row("", tree.total), ...row("self ", tree.own), ...(detail >= 0 ? [figures.strings[detail]] : [])];
}

/** What a search found in a graph of A and one of B. */
function pairFound(names, found) {
  return found.map(({ sum, whole }, index) => `${share(sum, whole)} of ${names[index]}`).join(" · ");
}
