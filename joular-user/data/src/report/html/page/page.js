// Brings the page to life.

const figures = JSON.parse(byId("figures").textContent);
firstTheme();
const isLevel = (kind) => ["process", "thread"].includes(figures.kinds[kind][0]);
const whole = treeOf(figures.tree, ownOf(figures.tree, figures.measures));
const isCode = (kind) => !["all", "process", "thread", "marker", "allocated-class", "others"].includes(figures.kinds[kind][0]);
const identity = (kind) => (isCode(kind) && !figures.is_by_kind ? "" : kind);
const merged = () => mergedTree(whole, isLevel, identity);

const controls = new FlameControls(
  ([found]) => {
    const amount = graph.metric === "cpu" || graph.metric === "samples" ? "" : ` · ${amountOfMetric(figures, graph.metric, found.sum)}`;
    return `${share(found.sum, found.whole)}${amount} in ${count(found.number)} frames`;
  },
  (node) => {
    describe(byId("details"), graph.nameOf(node), nodeFacts(figures, graph, node));
    byId("details").dataset.uj = graph.tree.total.energy[node];
  },
);
byId("merge").checked = !figures.is_apart;
const graph = new FlameGraph(byId("stage"), figures.is_apart ? whole : merged(), { strings: figures.strings, kinds: figures.kinds, metric: "energy" },
  controls.listeners((node) => nodeLines(figures, graph, node)));
controls.graphs = [graph];

function search(text) {
  byId("flame").scrollIntoView();
  controls.pick(text);
}

const power = new PowerChart(figures);
const flight = new FlightLanes(figures);
const heat = new HeatMap(figures);
const threads = new ThreadDiagram(figures);
tiles(figures);
kindLegend(byId("legend"), figures.kinds, whole);
mergedNote(byId("cut"), figures.tree.merged);
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
controls.zoom(0);

followTheme(() => [controls, power, flight, heat, threads, collections, moved].forEach((part) => part.draw()));
byId("metric").addEventListener("change", (event) => {
  graph.metric = event.target.value;
  controls.zoom(graph.focus);
});
byId("merge").addEventListener("change", (event) => {
  graph.setTree(event.target.checked ? merged() : whole);
  controls.zoom(0);
});
for (const change of ["focus", "blur"]) byId("thread-chart").addEventListener(change, () => threads.draw());
sayReady();
