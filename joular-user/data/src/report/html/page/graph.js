// Brings a flame graph's page to life.

const figures = JSON.parse(byId("figures").textContent);
firstTheme();
document.title = document.body.dataset.title ?? figures.title;
byId("title").textContent = figures.title;
byId("subject").textContent = figures.headline;
byId("icicle").checked = figures.is_icicle;

const isPair = figures.pair !== null;
const tree = isPair ? pairTree(figures.pair) : treeOf(figures.tree, ownOf(figures.tree, figures.measures));
const controls = new FlameControls(
  ([found]) => `${share(found.sum, found.whole)} · ${amount(found.sum)} in ${count(found.number)} frames`,
  (node) => {
    describe(byId("details"), graph.nameOf(node), isPair ? pairLines(figures, tree, node) : nodeFacts(figures, graph, node));
    byId("details").dataset.amount = tree.total[graph.metric][node];
  },
);
const graph = new FlameGraph(byId("stage"), tree, {
  strings: figures.strings,
  kinds: figures.kinds,
  metric: isPair ? "b" : figures.measure,
  icicle: figures.is_icicle,
  colorOf: isPair ? changeColors(tree) : null,
}, controls.listeners((node) => (isPair ? pairLines(figures, tree, node) : nodeLines(figures, graph, node))));
controls.graphs = [graph];

function amount(value) {
  return isPair ? figureText(value, figures.pair.unit) : amountOfMetric(figures, graph.metric, value);
}

const widths = isPair
  ? [["b", "this data set"], ["a", "the earlier one"], ["larger", "the larger of both"]]
  : [["energy", "energy"], ["cpu", "CPU time"], ["samples", "samples"], ...figures.measures.map((measure) => [measure.name, measure.title])];
byId("metric").replaceChildren(...widths.map(([value, title]) => element("option", { value }, title)));
byId("metric").value = graph.metric;
byId("metric").addEventListener("change", (event) => {
  graph.metric = event.target.value;
  controls.zoom(graph.focus);
});
if (isPair) changeLegend(byId("legend"));
else kindLegend(byId("legend"), figures.kinds, tree);
mergedNote(byId("cut"), (figures.pair ?? figures.tree).merged);
controls.zoom(0);
followTheme(() => controls.draw());
// Long stacks are taller than the stage: the root is what is looked at first.
if (!figures.is_icicle) byId("stage").scrollTop = byId("stage").scrollHeight;
sayReady();
