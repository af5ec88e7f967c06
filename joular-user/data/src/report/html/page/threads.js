// The thread activity diagram: a line per thread, a cell per bucket of time.

const LINE = 16;
const LABEL = 290;
const PLACE_COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b3a100", "#6a4c93"];

class ThreadDiagram {
  constructor(figures) {
    this.figures = figures;
    this.place = byId("thread-chart");
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.strip = element("div");
    this.place.append(this.strip, this.canvas);
    this.metric = byId("thread-metric");
    this.rows = this.withProcesses(figures.threads.rows);
    this.cursor = { line: this.rows.findIndex((row) => !row.isProcess), bucket: 0 };
    if (figures.threads.places.length < 2) this.metric.querySelector("[value=place]").remove();
    this.metric.addEventListener("change", () => this.draw());
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.place.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.place);
    this.note();
    describe(byId("thread-details"), "Threads", ["point at a cell, or move with the arrow keys"]);
  }

  /** A heading before each process's threads, and cells found by bucket. */
  withProcesses(threads) {
    const rows = [];
    let process = null;
    for (const thread of threads) {
      if (thread.process !== process && thread.process >= 0) rows.push({ isProcess: true, name: thread.process });
      process = thread.process;
      rows.push({ ...thread, cells: new Map(thread.buckets.map((bucket, index) => [bucket, index])) });
    }
    return rows;
  }

  note() {
    const { places } = this.figures.threads;
    const isByCore = places.some(([, core]) => core !== places[0][1]);
    const where = places.length < 2
      ? "Places are recorded only where energy counters tell them apart. Here there is one place."
      : `Places are ${isByCore ? "cores, which have energy counters of their own here" : "sockets"}; a cell has the one where the thread was longest.`;
    byId("thread-note").textContent = `${where} Which CPU of a place it was, and the order of events within a window, is not recorded.`;
  }

  bucketNs() {
    return this.figures.time.width_us * 1000;
  }

  draw() {
    const width = this.place.clientWidth;
    if (width === 0) return;
    const label = Math.min(LABEL, width / 3);
    this.scale = { label, cell: (width - label - 4) / this.figures.time.buckets };
    this.strip.replaceChildren(...timelineStrip(this.figures, label, this.scale.cell * this.figures.time.buckets));
    const context = sized(this.canvas, width, Math.max(this.rows.length, 1) * LINE + 2);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const kind = this.metric.value;
    // Not `Math.max(...cells)`: a call takes fewer arguments than there may be cells.
    this.most = 1;
    for (const row of this.rows) {
      if (row.isProcess) continue;
      for (const value of kind === "cpu" ? row.cpu_us : row.energy_uj) this.most = Math.max(this.most, value);
    }
    const [ink, soft, heat] = [themed("--ink"), themed("--soft"), themed("--heat")];
    this.rows.forEach((row, line) => {
      const y = line * LINE;
      context.fillStyle = row.isProcess ? ink : soft;
      context.font = `${row.isProcess ? "600 " : ""}12px system-ui, sans-serif`;
      context.fillText(fitted(context, this.figures.strings[row.name], label - (row.isProcess ? 8 : 22)), row.isProcess ? 4 : 16, y + LINE / 2);
      if (!row.isProcess) this.drawCells(context, row, y, heat);
    });
    if (document.activeElement === this.place) {
      context.strokeStyle = ink;
      context.lineWidth = 2;
      context.strokeRect(label + this.cursor.bucket * this.scale.cell, this.cursor.line * LINE + 1, Math.max(this.scale.cell, 3), LINE - 2);
    }
    this.legend(kind);
  }

  drawCells(context, row, y, heat) {
    const kind = this.metric.value;
    row.buckets.forEach((bucket, index) => {
      const value = kind === "cpu" ? row.cpu_us[index] : row.energy_uj[index];
      if (kind === "place") {
        context.fillStyle = row.places.length > 0 && row.places[index] >= 0 ? PLACE_COLORS[row.places[index] % PLACE_COLORS.length] : "#9aa0a6";
      } else {
        // By the root: what is small can be told from nothing.
        context.fillStyle = `rgba(${heat}, ${0.08 + 0.92 * Math.sqrt(value / this.most)})`;
      }
      context.fillRect(this.scale.label + bucket * this.scale.cell, y + 1, Math.max(this.scale.cell - (this.scale.cell > 4 ? 1 : 0), 1), LINE - 2);
    });
  }

  legend(kind) {
    const most = kind === "cpu" ? `${(this.most * 1e5 / this.bucketNs()).toFixed(0)} % of a CPU` : watts(this.most, this.bucketNs());
    const place = byId("thread-scale");
    if (kind !== "place") place.textContent = `pale: little, full: ${most}`;
    else place.replaceChildren(...this.figures.threads.places.flatMap((_, index) => [swatch(PLACE_COLORS[index % PLACE_COLORS.length]), ` ${this.placeName(index)}  `]));
  }

  placeName(index) {
    const [socket, core] = this.figures.threads.places[index];
    const isByCore = this.figures.threads.places.some(([, other]) => other !== this.figures.threads.places[0][1]);
    return isByCore ? `socket ${socket} core ${core}` : `socket ${socket}`;
  }

  point(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const line = Math.floor((event.clientY - bounds.top) / LINE);
    this.show(line, Math.floor((event.clientX - bounds.left - this.scale.label) / this.scale.cell));
  }

  key(event) {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    let line = this.cursor.line + move[0];
    if (this.rows[line] && this.rows[line].isProcess) line += move[0];
    const bucket = Math.max(0, Math.min(this.figures.time.buckets - 1, this.cursor.bucket + move[1]));
    if (!this.rows[line] || this.rows[line].isProcess) return;
    this.cursor = { line, bucket };
    this.show(line, bucket);
    this.draw();
    this.place.scrollTop = Math.max(0, line * LINE - this.place.clientHeight / 2);
  }

  show(line, bucket) {
    const row = this.rows[line];
    if (!row || row.isProcess) return;
    const { figures } = this;
    const thread = [
      row.process >= 0 && figures.strings[row.process],
      row.tid > 0 && `tid ${row.tid}`,
      row.category,
      element("span", { title: exactJoules(row.total_uj) }, `in all ${joules(row.total_uj)}, CPU ${seconds(row.total_cpu_ns)}`),
    ];
    const index = row.cells.get(bucket);
    const cell = index === undefined ? bucket >= 0 && ["did not run then"] : [
      element("span", { title: exactJoules(row.energy_uj[index]) }, `${clockTime(figures.time.start_us + bucket * figures.time.width_us)} UTC: ${joules(row.energy_uj[index])}`),
      watts(row.energy_uj[index], this.bucketNs()),
      `CPU ${seconds(row.cpu_us[index] * 1000)} (${((row.cpu_us[index] * 1e5) / this.bucketNs()).toFixed(0)} %)`,
      row.places.length > 0 && row.places[index] >= 0 && this.placeName(row.places[index]),
    ];
    describe(byId("thread-details"), figures.strings[row.name], [...thread, ...(cell || [])]);
  }
}
