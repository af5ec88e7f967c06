// Brings the page to life.

const figures = JSON.parse(byId("figures").textContent);
const isLevel = (kind) => ["process", "thread"].includes(figures.kinds[kind][0]);
const whole = treeOf(figures.tree, figures.measures);
const isCode = (kind) => !["all", "process", "thread", "marker", "allocated-class", "others"].includes(figures.kinds[kind][0]);
const identity = (kind) => (isCode(kind) && !figures.is_by_kind ? "" : kind);
const merged = () => mergedTree(whole, isLevel, identity);

const graph = new FlameGraph(figures, whole, {
  zoomed(path) {
    byId("crumbs").replaceChildren(...path.flatMap((node, index) => {
      const isLast = index === path.length - 1;
      const crumb = element("button", isLast ? { type: "button", "aria-current": "true" } : { type: "button" }, graph.nameOf(node));
      crumb.addEventListener("click", () => graph.zoom(node));
      return isLast ? [crumb] : [crumb, "›"];
    }));
  },
  searched(result, total, metric, isWrong) {
    const said = result && `${share(result.sum, total)}${amountFound(metric, result.sum)} in ${count(result.number)} frames`;
    byId("matched").textContent = isWrong ? "not a pattern" : said || "";
  },
});

function amountFound(metric, sum) {
  if (metric === "energy") return ` · ${exactJoules(sum)} J`;
  const measure = figures.measures.find((one) => one.name === metric);
  return measure ? ` · ${amountOf(measure, sum)}` : "";
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  for (const part of [graph, power, threads, collections, moved]) part.draw();
}

function legend() {
  const used = new Set([...whole.kind, ...whole.mix.flat().map((kind) => kind[0])]);
  byId("legend").replaceChildren(...figures.kinds.flatMap(([name, color], kind) =>
    (used.has(kind) ? [element("li", {}, swatch(color), name)] : [])));
  byId("cut").textContent = figures.tree.merged > 0
    ? `The ${count(figures.tree.merged)} smallest nodes are merged in [others]: all widths still sum to the whole.`
    : "";
}

/** Looks for a name as it is: one that starts with `/` is not a pattern. */
function search(text) {
  byId("search").value = text;
  graph.search(text, true);
  byId("flame").scrollIntoView();
  byId("search").focus({ preventScroll: true });
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
const power = new PowerChart(figures);
const threads = new ThreadDiagram(figures);
tiles(figures);
legend();
byId("metric").append(...figures.measures.map((measure) => element("option", { value: measure.name }, measure.title)));
methodTable(figures, search);
jvmTable(figures);
new Callers(figures, whole, isCode);
allocationTables(figures, search);
const collections = new CollectionCharts(figures);
const moved = new MovedCharts(figures, search);
emissionsBody(figures);
auditBody(figures);
runFacts(figures);
graph.zoom(0);

dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
byId("search").addEventListener("input", (event) => graph.search(event.target.value));
byId("reset").addEventListener("click", () => graph.zoom(0));
byId("metric").addEventListener("change", (event) => {
  graph.metric = event.target.value;
  graph.zoom(graph.focus);
});
byId("icicle").addEventListener("change", (event) => {
  graph.icicle = event.target.checked;
  graph.draw();
});
byId("merge").addEventListener("change", (event) => {
  graph.setTree(event.target.checked ? merged() : whole);
  graph.zoom(0);
});
for (const each of [byId("stage"), byId("thread-chart")]) {
  for (const change of ["focus", "blur"]) each.addEventListener(change, () => (each.id === "stage" ? graph : threads).draw());
}
document.addEventListener("keydown", (event) => {
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    byId("search").focus();
  } else if (event.key === "Escape" && document.activeElement.id === "search") {
    search("");
    byId("stage").focus({ preventScroll: true });
  } else if (event.key === "Enter" && document.activeElement.id === "search") {
    byId("stage").focus({ preventScroll: true });
  }
});
// Long stacks are taller than the stage: the root is what is looked at first.
byId("stage").scrollTop = byId("stage").scrollHeight;
// Charts are drawn when their width is known, which is after the next frame has begun.
requestAnimationFrame(() => requestAnimationFrame(() => {
  document.documentElement.dataset.ready = "true";
}));
