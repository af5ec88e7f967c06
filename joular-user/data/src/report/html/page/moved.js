// What was moved through sockets and files: how much, by whom, and when.

class MovedCharts {
  constructor(figures, onPick) {
    const { moved } = figures;
    this.isShown = moved !== null;
    if (!this.isShown) return;
    Object.assign(this, { figures, moved });
    for (const id of ["moved", "moved-link"]) byId(id).hidden = false;
    const sums = moved.ways.map((way, index) => `${megabytes(moved.bytes[index])} ${wayName(way)}`);
    byId("moved-sum").textContent = `${sums.join(", ")}; by ${count(moved.samples)} samples`;
    const method = (row) => methodCell(figures, row, onPick);
    this.table("moving-table", "Method", moved.methods, method, (row) => row.total ?? row.own);
    this.table("moving-thread-table", "Thread", moved.threads, (row) => figures.strings[row.name], (row) => row.own);
    new ResizeObserver(() => this.draw()).observe(byId("moved-chart"));
  }

  table(id, title, rows, show, bytesOf) {
    const { moved, figures } = this;
    const ways = moved.ways.flatMap((way, index) => [
      { title: capital(wayName(way)), value: (row) => bytesOf(row)[index], show: (row) => (bytesOf(row)[index] > 0 ? megabytes(bytesOf(row)[index]) : "–") },
      { title: "Share", value: (row) => bytesOf(row)[index], show: (row) => (bytesOf(row)[index] > 0 ? share(bytesOf(row)[index], moved.bytes[index]) : "–") },
    ]);
    const name = { title, isText: true, class: "name", value: (row) => figures.strings[row.name], show };
    new SortableTable(byId(id), [name, ...ways], rows, 1 + 2 * moved.bytes.indexOf(Math.max(...moved.bytes)));
  }

  draw() {
    if (!this.isShown) return;
    const { time } = this.figures;
    const series = this.moved.ways.map((way, index) => ({
      name: wayName(way),
      at: (bucket) => bytesPerSecond(time, this.moved.over_time[index][bucket], bucket),
    }));
    lineChart(time, "moved-chart", series, (value) => `${megabytes(value)}/s`);
  }
}

function wayName(way) {
  return { "device-read": "read from devices", "device-written": "written to devices" }[way] ?? way;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}
