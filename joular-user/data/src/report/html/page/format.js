// Figures as people read them. Energies are whole microjoules until here.

/** Joules to the microjoule, as the command line prints them. */
function exactJoules(uj) {
  const whole = Math.floor(uj / 1e6);
  return `${whole}.${String(uj - whole * 1e6).padStart(6, "0")} J`;
}

const ENERGY_UNITS = [[1e9, "kJ"], [1e6, "J"], [1e3, "mJ"], [1, "µJ"]];

/** The unit that suits an energy: how many microjoules it is, and its name. */
function energyUnit(uj) {
  if (uj === 0) return [1e6, "J"];
  // Rounded first: 999.6 mJ is 1.00 J.
  return ENERGY_UNITS.find(([size]) => Number(uj.toPrecision(3)) >= size) ?? ENERGY_UNITS.at(-1);
}

/** Energy with three digits, in the unit that suits it. */
function joules(uj) {
  const [size, name] = energyUnit(uj);
  return `${size === 1 ? uj : threeFigures(uj / size)} ${name}`;
}

/** The same as an element, which has the exact figure as its title. */
function shownJoules(uj) {
  return element("span", { title: exactJoules(uj) }, joules(uj));
}

/** Bytes in megabytes (10⁶), with four figures that count. */
function megabytes(bytes) {
  const value = bytes / 1e6;
  if (value >= 1000) return `${value.toLocaleString("en", { maximumFractionDigits: 0 })} MB`;
  return `${value === 0 ? 0 : value.toPrecision(4)} MB`;
}

/** An amount of a measure of the page, in its unit. */
function amountOf(measure, value) {
  return measure.is_bytes ? megabytes(value) : count(value);
}

function watts(uj, overNs) {
  return wattsText(overNs > 0 ? (uj * 1000) / overNs : 0);
}

/** Power with three digits. */
function wattsText(value) {
  const rounded = Number(value.toPrecision(3));
  const [size, name] = rounded >= 1000 ? [1000, "kW"] : rounded === 0 || rounded >= 0.1 ? [1, "W"] : [0.001, "mW"];
  return `${threeFigures(value / size)} ${name}`;
}

function share(part, whole) {
  const value = whole > 0 ? (part * 100) / whole : 0;
  return `${value.toFixed(value >= 99.95 || value === 0 ? 0 : value >= 9.995 ? 1 : 2)} %`;
}

function seconds(ns) {
  const value = ns / 1e9;
  const rounded = Math.round(value);
  if (value >= 120) return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
  if (value >= 10) return `${value.toFixed(1)} s`;
  return value === 0 || value >= 0.9995 ? `${threeFigures(value)} s` : `${threeFigures(value * 1000)} ms`;
}

/** A mass with three figures that count, in the unit that suits it. */
function grams(value) {
  const units = [[1e6, "t"], [1e3, "kg"], [1, "g"], [1e-3, "mg"]];
  const [size, name] = value === 0 ? [1, "g"] : units.find(([size]) => value >= size) ?? [1e-6, "µg"];
  return `${threeFigures(value / size)} ${name}`;
}

/** A sum of money, whose currency is told elsewhere. */
function money(value) {
  return threeFigures(value);
}

function threeFigures(value) {
  if (value === 0) return "0";
  return value.toLocaleString("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
}

function count(value) {
  return value.toLocaleString("en");
}

/** A moment in UTC, as all of the data set's times are. */
function clockTime(us) {
  const moment = new Date(us / 1000);
  // A damaged data set may have times that no calendar has; years may have more than four digits.
  return Number.isNaN(moment.getTime()) ? "–" : moment.toISOString().slice(-13, -5);
}

/** Places behind the point that show so many significant digits; for zero as many as there are. */
function placesOf(value, digits) {
  return value === 0 ? 6 : digits - 1 - Number(value.toExponential(digits - 1).split("e")[1]);
}

/** A figure that ends there; below zero, in zeros before the point. */
function endingAt(value, places) {
  return places < 0 ? (Math.round(value / 10 ** -places) * 10 ** -places).toFixed(0) : value.toFixed(places);
}

/**
 * The 95 % interval of sampling in the unit of its figure, with the digits that the command line gives it
 * (text/figures.rs); nothing if the figure is exact.
 */
function range(uj, interval, label) {
  if (interval === null || interval[0] >= interval[1]) return "";
  const [size, name] = energyUnit(uj);
  const [value, low, high] = [uj, ...interval].map((each) => each / size);
  // Down to the microjoule, nothing is known more finely.
  const finest = Math.round(Math.log10(size));
  const deserved = label.startsWith("modelled") ? Math.min(placesOf(value, 3), finest) : Math.max(finest - 3, Math.min(finest, 2));
  const places = Math.min(deserved, placesOf((high - low) / 2, 2));
  return `${endingAt(low, places)}–${endingAt(high, places)} ${name}`;
}

/** Wilson's 95 % interval of a share of samples that count alike, in per cent. */
function shareRange(share, samples) {
  const [z2, centre] = [1.959963985 ** 2 / samples, share + 1.959963985 ** 2 / (2 * samples)];
  const half = Math.sqrt(z2 * share * (1 - share) + (z2 * z2) / 4);
  const percent = (end) => (100 * Math.min(Math.max(end, 0), 1 + z2)) / (1 + z2);
  const [low, high] = [percent(centre - half), percent(centre + half)];
  const places = high >= 10 ? 1 : 2;
  return `${low.toFixed(places)}–${high.toFixed(places)} %`;
}
