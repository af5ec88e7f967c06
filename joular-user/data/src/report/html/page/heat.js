// Power as a heat map: a row for each of the methods with most energy, a column for so many windows.

const HEAT_COLUMNS = 300;
const HEAT_ROW = 18;
/** Shares of the highest power in the legend. */
const HEAT_STEPS = [0, 1 / 16, 1 / 4, 9 / 16, 1];

/** Buckets of time folded to few columns: what each series has in each, and how long each is. */
function heatOf(time, series, most = HEAT_COLUMNS) {
  const fold = Math.max(1, Math.ceil(time.buckets / most));
  const columns = Math.ceil(time.buckets / fold);
  const sum = (column, valueAt) => {
    let all = 0;
    for (let bucket = column * fold; bucket < Math.min((column + 1) * fold, time.buckets); bucket++) all += valueAt(bucket);
    return all;
  };
  const each = (valueAt) => Array.from({ length: columns }, (_, column) => sum(column, valueAt));
  return {
    fold,
    columns,
    lengths_ns: each((bucket) => bucketNs(time, bucket)),
    rows: series.map(({ name, kind, energy_uj }) => ({ name, kind, energy_uj: each((bucket) => energy_uj[bucket]) })),
  };
}

class HeatMap {
  constructor(figures) {
    this.figures = figures;
    const isOthers = (series) => figures.kinds[series.kind][0] === "others";
    this.heat = heatOf(figures.time, figures.time.series.filter((series) => !isOthers(series)));
    this.others_uj = figures.time.series.filter(isOthers).flatMap((series) => series.energy_uj).reduce((sum, uj) => sum + uj, 0);
    this.most = 0;
    this.heat.rows.forEach((row) => row.energy_uj.forEach((_, column) => { this.most = Math.max(this.most, this.wattsAt(row, column)); }));
    this.cursor = { line: 0, column: 0 };
    this.place = byId("heat-map");
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.place.append(this.canvas);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => { byId("tip").hidden = true; });
    this.place.addEventListener("keydown", (event) => this.key(event));
    for (const change of ["focus", "blur"]) this.place.addEventListener(change, () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.place);
    this.words();
  }

  wattsAt(row, column) {
    return (row.energy_uj[column] * 1000) / this.heat.lengths_ns[column];
  }

  nameOf(row) {
    return this.figures.strings[row.name];
  }

  /** What the map shows, and the same as a table. */
  words() {
    const { figures, heat } = this;
    const windows = heat.fold > 1 ? `${heat.fold} buckets each` : "a bucket each";
    const rest = this.others_uj > 0 ? ` All other methods have ${joules(this.others_uj)} together.` : "";
    byId("heat-note").textContent = `Power is ${figures.label}. ${count(heat.columns)} columns of ${seconds(figures.time.width_us * heat.fold * 1000)}, ${windows}; a method's power is that of its own code.${rest}`;
    const peak = (row) => row.energy_uj.reduce((best, _, column) => (this.wattsAt(row, column) > this.wattsAt(row, best) ? column : best), 0);
    const sum = (row) => row.energy_uj.reduce((all, uj) => all + uj, 0);
    new SortableTable(byId("heat-table"), [
      { title: "Method", isText: true, class: "name", value: (row) => this.nameOf(row), show: (row) => nameCell(this.nameOf(row), figures.kinds[row.kind][0]) },
      { title: "Energy", value: sum, show: (row) => shownJoules(sum(row)) },
      { title: "Mean power", value: sum, show: (row) => watts(sum(row), figures.duration_ns) },
      { title: "Highest power", value: (row) => this.wattsAt(row, peak(row)), show: (row) => wattsText(this.wattsAt(row, peak(row))) },
      { title: "at (UTC)", value: (row) => peak(row), show: (row) => clockTime(this.startOf(peak(row))) },
    ], heat.rows, 1);
  }

  startOf(column) {
    const { time } = this.figures;
    return time.start_us + column * this.heat.fold * time.width_us;
  }

  /** By the root: what is small can be told from nothing. */
  colorOf(part) {
    return part === 0 ? themed("--well") : `rgba(${themed("--heat")}, ${0.06 + 0.94 * Math.sqrt(part)})`;
  }

  draw() {
    const width = this.place.clientWidth;
    if (width === 0) return;
    const { heat, figures } = this;
    const label = Math.min(290, width / 3);
    const cell = (width - label - 4) / heat.columns;
    this.scale = { label, cell };
    const height = Math.max(heat.rows.length, 1) * HEAT_ROW + 20;
    const context = sized(this.canvas, width, height);
    context.textBaseline = "middle";
    context.font = "12px system-ui, sans-serif";
    const [ink, soft] = [themed("--ink"), themed("--soft")];
    heat.rows.forEach((row, line) => {
      const y = line * HEAT_ROW;
      const name = this.nameOf(row);
      context.fillStyle = soft;
      context.fillText(fitted(context, name.slice(packageOf(figures.kinds[row.kind][0], name)), label - 10), 4, y + HEAT_ROW / 2);
      row.energy_uj.forEach((_, column) => {
        context.fillStyle = this.colorOf(this.most > 0 ? this.wattsAt(row, column) / this.most : 0);
        context.fillRect(label + column * cell, y + 1, Math.max(cell - (cell > 5 ? 1 : 0), 0.7), HEAT_ROW - 2);
      });
    });
    this.moments(context, label, cell * heat.columns, height - 9, soft);
    if (document.activeElement === this.place) {
      context.strokeStyle = ink;
      context.lineWidth = 2;
      context.strokeRect(label + this.cursor.column * cell, this.cursor.line * HEAT_ROW + 1, Math.max(cell, 3), HEAT_ROW - 2);
    }
    byId("heat-scale").replaceChildren(...HEAT_STEPS.flatMap((part) => [swatch(this.colorOf(part)), ` ${wattsText(part * this.most)}  `]));
  }

  moments(context, left, width, y, color) {
    const { time } = this.figures;
    const marks = Math.max(1, Math.min(6, Math.floor(width / 120)));
    context.fillStyle = color;
    for (let mark = 0; mark <= marks; mark++) {
      context.textAlign = mark === 0 ? "left" : mark === marks ? "right" : "center";
      context.fillText(clockTime(time.start_us + ((time.end_us - time.start_us) * mark) / marks), left + (width * mark) / marks, y);
    }
    context.textAlign = "left";
  }

  point(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const line = Math.floor((event.clientY - bounds.top) / HEAT_ROW);
    const column = Math.floor((event.clientX - bounds.left - this.scale.label) / this.scale.cell);
    const said = this.show(line, column);
    placeTip(event, said);
  }

  /** Describes a cell below the map; also as lines. */
  show(line, column) {
    const row = this.heat.rows[line];
    if (!row || column < 0 || column >= this.heat.columns) return [];
    const [uj, length] = [row.energy_uj[column], this.heat.lengths_ns[column]];
    const facts = [
      `${watts(uj, length)} (${this.figures.label})`,
      `${joules(uj)} in ${seconds(length)}`,
      `from ${clockTime(this.startOf(column))} UTC`,
    ];
    describe(byId("heat-details"), this.nameOf(row), facts);
    byId("heat-details").dataset.uj = uj;
    return [this.nameOf(row), ...facts];
  }

  key(event) {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const clamp = (value, most) => Math.max(0, Math.min(value, most - 1));
    this.cursor = {
      line: clamp(this.cursor.line + move[0], this.heat.rows.length),
      column: clamp(this.cursor.column + move[1], this.heat.columns),
    };
    this.show(this.cursor.line, this.cursor.column);
    this.draw();
  }
}
