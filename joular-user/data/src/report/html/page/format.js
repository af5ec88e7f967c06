// Figures as people read them. Energies are whole microjoules until here.

/** Joules to the microjoule, as the command line prints them. */
function exactJoules(uj) {
  const whole = Math.floor(uj / 1e6);
  return `${whole}.${String(uj - whole * 1e6).padStart(6, "0")}`;
}

/** Joules with four figures that count. */
function joules(uj) {
  const value = uj / 1e6;
  if (value === 0) return "0 J";
  if (value >= 1000) return `${value.toLocaleString("en", { maximumFractionDigits: 0 })} J`;
  if (value < 0.001) return `${uj} µJ`;
  return value < 1 ? `${(value * 1000).toPrecision(4)} mJ` : `${value.toPrecision(4)} J`;
}

function watts(uj, overNs) {
  const value = overNs > 0 ? (uj * 1000) / overNs : 0;
  return value !== 0 && value < 0.01 ? `${(value * 1000).toPrecision(3)} mW` : `${value.toFixed(2)} W`;
}

function share(part, whole) {
  return `${(whole > 0 ? (part * 100) / whole : 0).toFixed(2)} %`;
}

function seconds(ns) {
  const value = ns / 1e9;
  const rounded = Math.round(value);
  if (value >= 120) return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
  return value >= 10 ? `${value.toFixed(1)} s` : `${value.toFixed(3)} s`;
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

/** What sampling leaves open: 95 % of the time the true figure is within; nothing if it is exact. */
function range(interval) {
  if (interval === null) return "";
  const [low, high] = interval;
  return low < high ? `${joules(low)} – ${joules(high)}` : "";
}
