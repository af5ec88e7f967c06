// Brings a comparison's page to life.

const figures = JSON.parse(byId("figures").textContent);
firstTheme();

/** A figure with three digits and all of them as its title. */
function figure(value) {
  if (value === null) return "–";
  return element("span", { title: `${value} ${figures.unit}` }, threeFigures(value));
}

function signed(value, text) {
  if (value === null) return "–";
  return value > 0 ? `+${text}` : text.replace("-", "−");
}

function percentText({ percent, b }) {
  if (percent === null) return b > 0 ? "new" : "–";
  return `${signed(percent, percent.toFixed(1))} %`;
}

function verdictClass(row) {
  return ["more", "less"].includes(row.verdict) ? row.verdict : "";
}

/** The verdict first, as large as it matters. */
function headline() {
  const { total, unit, labels } = figures;
  const verdict = byId("verdict");
  verdict.textContent = figures.verdict;
  if (verdictClass(total)) verdict.classList.add(total.verdict);
  byId("change").append(figure(total.a), " → ", figure(total.b), ` ${unit}, ${percentText(total)}`);
  const energy = [...new Set(labels)];
  byId("metric-name").textContent = `${figures.metric}${energy.length > 0 ? `, ${energy.join(" and ")}` : ""}`;
  byId("interval").textContent = total.interval === null ? figures.basis : `95 % interval of the change: ${total.range} %`;
  byId("gate").hidden = figures.gate === null;
  byId("gate").textContent = figures.gate ?? "";
  document.title = `joular-bpf: ${figures.verdict}`;
}

function columns(title) {
  const name = (row) => figures.strings[row.name];
  const detail = (row) => (row.detail >= 0 ? figures.strings[row.detail] : "");
  const isOfCode = ["method", "class"].includes(title);
  return [
    { title: title[0].toUpperCase() + title.slice(1), isText: true, class: "name", value: name, show: (row) => nameCell(name(row), isOfCode ? (title === "class" ? "allocated-class" : "method") : "", detail(row)) },
    { title: "A", value: (row) => row.a, show: (row) => figure(row.a) },
    { title: "B", value: (row) => row.b, show: (row) => figure(row.b) },
    { title: "Change", value: (row) => Math.abs(row.change), show: (row) => signed(row.change, threeFigures(row.change ?? 0)) },
    { title: "%", value: (row) => row.percent ?? Infinity, show: (row) => percentText(row) },
    { title: "95 % interval of %", value: (row) => row.interval?.[0] ?? -Infinity, show: (row) => (row.interval === null ? "–" : row.range.replaceAll("-", "−")) },
    { title: "Verdict", isText: true, class: "left", value: (row) => row.verdict, show: (row) => element("span", { class: verdictClass(row) }, row.is_above ? `${row.verdict}, above the gate` : row.verdict) },
    { title: "Samples", value: (row) => row.samples, show: (row) => count(row.samples) },
  ];
}

function tables() {
  const table = new SortableTable(byId("row-table"), columns(figures.by), figures.rows, 3);
  const filter = byId("row-filter");
  filter.addEventListener("input", () => {
    const part = filter.value.toLowerCase();
    const kept = table.filter((row) => figures.strings[row.name].toLowerCase().includes(part));
    byId("row-count").textContent = part ? `${count(kept)} of ${count(figures.rows.length)}` : "";
  });
  const left = figures.rows_left_out > 0 ? ` ${count(figures.rows_left_out)} rows with smaller changes are not here.` : "";
  byId("row-note").textContent = `Figures are ${figures.unit}. Of rows called more or less at most 5 % are not, on average (Benjamini-Hochberg).${left}`;
  const hasPhases = figures.phases.length > 0;
  for (const id of ["phases", "phases-link"]) byId(id).hidden = !hasPhases;
  byId("phases-title").textContent = `Phases, ${figures.phase_unit}`;
  if (hasPhases) new SortableTable(byId("phase-table"), columns("phase"), figures.phases, 3);
}

function compared() {
  byId("sides").append(...figures.sides.flatMap((side, index) => [element("dt", {}, "AB"[index]), element("dd", {}, side)]));
  byId("basis").textContent = `${figures.metric}, in ${figures.unit}, by ${figures.by}; ${figures.basis}.`;
  byId("notices").append(...figures.notices.map((notice) => element("li", {}, notice)));
  byId("warnings").hidden = figures.warnings.length === 0;
  byId("warning-list").append(...figures.warnings.map((warning) => element("li", {}, warning)));
}

/** Three graphs of one tree: what is done in one is done in all. */
function graphs() {
  const { pair, kinds, strings } = figures;
  for (const id of ["flame", "flame-link"]) byId(id).hidden = pair === null;
  if (pair === null) return () => {};
  const tree = pairTree(pair);
  const [named, colorOf] = [["A", "B"], changeColors(tree)];
  const controls = new FlameControls(
    ([, a, b]) => pairFound(named, [a, b]),
    (node) => {
      describe(byId("details"), difference.nameOf(node), pairLines(figures, tree, node));
      byId("details").dataset.figures = JSON.stringify([tree.total.a[node], tree.total.b[node]]);
    },
  );
  const about = (node) => pairLines(figures, tree, node);
  const make = (id, shown) => new FlameGraph(byId(id), tree, { strings, kinds, ...shown }, controls.listeners(about));
  const difference = make("stage", { metric: "b", colorOf });
  controls.graphs = [difference, make("a-stage", { metric: "a" }), make("b-stage", { metric: "b" })];
  for (const [id, total] of [["a", tree.total.a[0]], ["b", tree.total.b[0]]]) {
    byId(`${id}-title`).textContent = `${id.toUpperCase()}: ${figureText(total, pair.unit)}`;
  }
  byId("width").addEventListener("change", (event) => {
    difference.metric = event.target.value;
    controls.zoom(difference.focus);
  });
  changeLegend(byId("change-legend"));
  kindLegend(byId("legend"), kinds, tree);
  mergedNote(byId("cut"), pair.merged);
  byId("graph-note").textContent = "A box has its share of its side's figure. Colours do not separate a change from noise: the table above does.";
  controls.zoom(0);
  return () => controls.draw();
}

headline();
tables();
compared();
followTheme(graphs());
sayReady();
