// Bytes by day, month and minute, against the quotas: a chart and a table for each.

import { get } from "./api.js";
import { dataTable, drawn, element, fill, foreign, icon, panel, remake, rootSize, visibly } from "./dom.js";
import { bytes, clock, count, percent, rate, shortDay, time, until } from "./format.js";
import { subscribe } from "./store.js";
import { cardTitle, facts } from "./upload.js";
import { networkName } from "./words.js";

const INTERVAL = 30_000;
/** A kind of network has the same colour in each chart, also if another kind is missing there. */
const NETWORKS = ["unmetered", "metered", "unknown", "local", "any"];

/** Colours and patterns; further groups share the last one. */
const SERIES = 5;
const LEFT = 64;
const RIGHT = 14;
const BOTTOM = 22;
const TOP = 20;

export const usage = {
  title: "Usage",
  mount: (root, params, go) => new UsageView(root, params, go),
};

class UsageView {
  constructor(root, params, go) {
    this.go = go;
    this.params = params;
    const change = () => go("usage", { by: this.by.value, days: this.days.value }, { replace: true });
    const select = (options) => element("select", { onchange: change },
      options.map(([value, label]) => element("option", { value }, label)));
    this.by = select([["network", "Network"], ["destination", "Destination"], ["folder", "Folder"]]);
    this.days = select([["7", "7 days"], ["30", "30 days"], ["90", "90 days"]]);
    this.content = element("div", { class: "stack" }, element("p", { class: "empty" }, "Reading…"));
    fill(root, element("div", { class: "heading" }, element("h1", { tabindex: "-1" }, "Usage"),
      element("form", { class: "filters" }, element("label", { class: "field" }, element("span", {}, "By"), this.by),
        element("label", { class: "field" }, element("span", {}, "Days"), this.days))), this.content);
    this.charts = [];
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.content);
    this.unsubscribe = [subscribe("stale", () => this.loadSoon()), subscribe("status", () => this.loadSoon())];
    this.update(params);
  }

  unmount() {
    this.isOver = true;
    clearTimeout(this.timer);
    this.observer.disconnect();
    for (const each of this.unsubscribe) each();
  }

  update(params) {
    this.by.value = params.by ?? "network";
    this.days.value = params.days ?? "30";
    this.load();
  }

  loadSoon() {
    this.timer ??= setTimeout(() => this.load(), Math.max(0, this.loadedAt + INTERVAL - performance.now()));
  }

  async load() {
    clearTimeout(this.timer);
    this.timer = null;
    this.loadedAt = performance.now();
    const query = { days: this.days.value, months: 12, by: this.by.value };
    const key = JSON.stringify(query);
    const isWanted = () => !this.isOver && query.by === this.by.value && query.days === this.days.value;
    try {
      const answer = await this.read(query);
      if (!isWanted()) return;
      this.show(answer);
      this.shownKey = key;
    } catch (failure) {
      // What was read once stays until it can be read again.
      if (!isWanted() || this.shownKey === key) return;
      this.shownKey = null;
      fill(this.content, element("div", { class: "empty" }, icon("lost"),
        element("p", {}, "The usage could not be read: ", foreign(failure.message))));
    }
  }

  /** A daemon that does not count minutes refuses the question. */
  async read(query) {
    if (this.hasNoMinutes) return get("v1/usage", query);
    try {
      return await get("v1/usage", { ...query, minutes: 60 });
    } catch (failure) {
      if (failure.status !== 400) throw failure;
      this.hasNoMinutes = true;
      return get("v1/usage", query);
    }
  }

  show(answer) {
    const names = groupNames(answer);
    const label = (name) => (name === "" ? "no folder" : answer.by === "network" ? networkName(name) : name);
    const groups = { names, label };
    this.charts = [];
    remake(this.content,
      panel("Quotas", quotaList(answer.quotas)),
      answer.minutes ? this.chartPanel("The last hour", answer.minutes, groups, { isRate: true })
        : panel("The last hour", element("p", { class: "empty" }, "This daemon does not count by the minute.")),
      this.chartPanel("By day", answer.days, groups, { limit: limitFor(answer.quotas, 1, 1) }),
      this.chartPanel("By month", answer.months, groups, { limit: limitFor(answer.quotas, 28, 31) }));
    this.draw();
  }

  chartPanel(title, periods, { names, label }, { isRate = false, limit }) {
    const total = periods.reduce((sum, period) => sum + period.bytes, 0);
    if (total === 0) return panel(title, element("p", { class: "empty" }, "Nothing was sent in this time."));
    const shown = names.filter((name) => periods.some((period) => period.parts?.some((part) => part.name === name)));
    const frame = element("div", { class: "chart-frame" });
    this.charts.push({ frame, options: {
      label: `${title}, bytes sent: ${bytes(total)} in all. The table beside it has the figures.`,
      limit,
      format: isRate ? rate : bytes,
      periods: periods.map((period) => ({
        label: periodLabel(period, isRate),
        title: periodTitle(period, isRate, label),
        // A name has the same place, and so the same colour, in each chart.
        values: series(period, names).map((amount) => (isRate ? amount / 60 : amount)),
      })),
    } });
    const places = shown.map((name) => names.indexOf(name));
    const legend = shown.map((name, index) => [places[index], foreign(label(name))])
      .filter(([place]) => place < SERIES - 1 || names.length <= SERIES);
    if (names.length > SERIES && places.some((place) => place >= SERIES - 1)) legend.push([SERIES - 1, "All others"]);
    return panel(title, element("div", { class: "chart-and-table" },
      element("div", {}, frame, chartLegend(legend)), usageTable(title, periods, { shown, label }, isRate)));
  }

  draw() {
    for (const { frame, options } of this.charts) {
      // A drawing grows with the size of text.
      const width = Math.round(Math.max(260, (frame.clientWidth * 15) / rootSize()));
      if (Number(frame.dataset.width) === width && frame.firstChild) continue;
      frame.dataset.width = width;
      fill(frame, barChart({ ...options, width }));
    }
  }
}

/** The groups in a fixed order: networks by kind, others by their bytes. */
function groupNames(answer) {
  const sums = new Map();
  for (const period of [...answer.months, ...answer.days]) {
    for (const part of period.parts ?? []) sums.set(part.name, (sums.get(part.name) ?? 0) + part.bytes + 1);
  }
  const names = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a));
  return answer.by === "network" ? [...NETWORKS, ...names.filter((name) => !NETWORKS.includes(name))] : names;
}

/** The bytes of a period by series; the last series has all further groups. */
function series(period, names) {
  const amounts = names.map((name) => period.parts?.find((part) => part.name === name)?.bytes ?? 0);
  const rest = amounts.slice(SERIES - 1).reduce((sum, value) => sum + value, 0);
  return names.length > SERIES ? [...amounts.slice(0, SERIES - 1), rest] : amounts;
}

/** `2026-11-29` becomes `29 Nov`, because there is little space; months stay. */
function periodLabel(period, isRate) {
  if (isRate) return clock(new Date(period.from));
  // The name is a day of the daemon's clock, which may be another one here.
  return period.name.length === 10 ? shortDay(new Date(`${period.name}T12:00`)) : period.name;
}

function periodTitle(period, isRate, label) {
  const parts = (period.parts ?? []).map((part) => `${visibly(label(part.name))} ${bytes(part.bytes)}`);
  const list = parts.length > 1 ? ` (${parts.join(", ")})` : "";
  return `${periodLabel(period, isRate)}: ${bytes(period.bytes)} sent${list}`;
}

/** The quota of everything whose period is as long as that of a chart. */
function limitFor(quotas, shortest, longest) {
  const fits = (quota) => {
    const days = Math.round((new Date(quota.until) - new Date(quota.from)) / 86400e3);
    return quota.place === "policy" && quota.counts === "bytes" && !quota.when && quota.direction === "sent"
      && days >= shortest && days <= longest;
  };
  const found = quotas.filter(fits).sort((a, b) => a.limit - b.limit)[0];
  return found && { value: found.limit, text: `quota: ${found.text}` };
}

function usageTable(title, periods, { shown, label }, isRate) {
  const names = shown.length > 1 ? shown : [];
  const labels = names.map((name) => visibly(label(name)));
  const heads = [isRate ? "Minute" : "Period", "Sent", "Received", isRate ? "Rate" : "Files", ...labels];
  const amount = (value) => (value ? bytes(value) : "–");
  // The last day is today by the clock of the daemon; a month has a shorter name.
  const last = periods.at(-1);
  const nameOf = (period) => (period === last && period.name.length === 10 ? "today" : period.name);
  const rows = [...periods].reverse().filter((period) => !isRate || period.bytes || period.received);
  return dataTable(`${title}: table`, heads, rows.map((period) => [
    isRate ? time(period.from, { clockOnly: true }) : nameOf(period),
    amount(period.bytes), amount(period.received), isRate ? rate(period.bytes / 60) : count(period.files),
    ...names.map((name) => amount(period.parts?.find((part) => part.name === name)?.bytes)),
  ]), { figures: heads.slice(1), kind: "tall" });
}

function quotaList(quotas) {
  if (!quotas.length) return element("p", { class: "empty" }, "No quota is configured.");
  return element("ul", { class: "list cards" }, quotas.map(quotaCard));
}

const DIRECTIONS = { sent: "bytes sent", received: "bytes received", both: "bytes sent and received" };

function quotaCard(quota) {
  const amount = quota.counts === "files" ? count : bytes;
  const taken = quota.used + quota.reserved;
  const fraction = quota.limit ? Math.min(1, taken / quota.limit) : 1;
  const counts = quota.counts === "files" ? "files" : DIRECTIONS[quota.direction];
  const title = [foreign(quota.place), element("small", {}, ` ${quota.text}`)];
  const meter = { min: 0, max: 1, high: 0.8, value: fraction, "aria-label": `Used of ${quota.text}` };
  return element("li", { class: "card" },
    cardTitle(title, quotaWords(quota, fraction)),
    element("meter", meter),
    element("p", {}, `${amount(taken)} of ${amount(quota.limit)} (${percent(fraction)}), ${amount(quota.left)} left`),
    facts([
      ["Name", quota.name && foreign(quota.name)],
      ["Counts", [counts, quota.when && [", ", foreign(quota.when)]]],
      ["Reserved", quota.reserved > 0 && amount(quota.reserved)],
      ["Begins again", until(quota.until, "at")],
    ]));
}

function quotaWords(quota, fraction) {
  if (fraction >= 1 || quota.left <= 0) return { word: "Used up", icon: "failed", tone: "bad" };
  if (fraction >= 0.8) return { word: "Nearly used", icon: "warning", tone: "warn" };
  return { word: "In order", icon: "ok", tone: "good" };
}

// Charts of stacked bars. Series differ by colour and by pattern, and the table beside a chart has the same figures.

/** Round steps of a scale up to a value: about four, of 1, 2, 2.5 or 5 times a power of ten. */
function scaleTo(value) {
  if (value <= 0) return [0, 1];
  const power = 10 ** Math.floor(Math.log10(value / 4));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each * 4 >= value * 0.999);
  return Array.from({ length: Math.ceil((value * 0.999) / step) + 1 }, (_, index) => index * step);
}

/**
 * Draws the chart.
 *
 * @param periods `{label, values, title}` with one value for each series.
 * @param limit `{value, text}`: a line, where it is in reach.
 */
function barChart({ label, periods, width, height = 220, format, limit }) {
  const sums = periods.map((period) => period.values.reduce((sum, value) => sum + value, 0));
  const top = Math.max(...sums, 0);
  const isShown = limit && limit.value < top * 4;
  const scale = scaleTo(isShown ? Math.max(top, limit.value) : top);
  const ceiling = scale.at(-1);
  const inner = height - BOTTOM - TOP;
  const y = (value) => TOP + inner * (1 - value / ceiling);
  const slot = (width - LEFT - RIGHT) / periods.length;
  const bar = Math.max(1, Math.min(48, slot * 0.76));
  const every = Math.ceil(46 / slot);
  const shapes = periods.map((period, index) => {
    const left = LEFT + slot * index + (slot - bar) / 2;
    let below = 0;
    const parts = period.values.map((value, series) => {
      const part = value > 0 && drawn("rect", { x: left, y: y(below + value), width: bar,
        height: Math.max(0.75, (inner * value) / ceiling), class: `series series-${Math.min(series, SERIES - 1)}` });
      below += value;
      return part;
    });
    // Counted from the last one: the present is always labelled.
    const isLabelled = (periods.length - 1 - index) % every === 0;
    return drawn("g", {}, drawn("title", {}, period.title),
      drawn("rect", { x: LEFT + slot * index, y: TOP, width: slot, height: inner, class: "catch" }),
      parts, isLabelled && drawn("text", { x: left + bar / 2, y: height - 6, class: "tick" }, period.label));
  });
  const lines = scale.map((value) => [
    drawn("line", { x1: LEFT, x2: width, y1: y(value), y2: y(value), class: value ? "grid" : "base" }),
    drawn("text", { x: LEFT - 6, y: y(value) + 4, class: "scale" }, value ? format(value).replace(/\.0+\s/, " ") : "0"),
  ]);
  const line = isShown && [
    drawn("line", { x1: LEFT, x2: width, y1: y(limit.value), y2: y(limit.value), class: "limit" }),
    drawn("text", { x: width - 4, y: y(limit.value) - 5, class: "limit-text" }, limit.text),
  ];
  return drawn("svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    seriesPatterns(), lines, shapes, line);
}

/** Stripes and dots for the series after the first. */
function seriesPatterns() {
  const pattern = (series, turn, shape) => drawn("pattern",
    { id: `series-${series}`, width: 6, height: 6, patternUnits: "userSpaceOnUse",
      patternTransform: `rotate(${turn})` },
    drawn("rect", { width: 6, height: 6, class: `ground-${series}` }), shape);
  const stripe = (series) => drawn("rect", { width: 2, height: 6, class: `mark-${series}` });
  return drawn("defs", {}, pattern(1, 45, stripe(1)), pattern(2, -45, stripe(2)),
    pattern(3, 0, drawn("circle", { cx: 3, cy: 3, r: 1.3, class: "mark-3" })), pattern(4, 90, stripe(4)));
}

function chartLegend(entries) {
  return element("ul", { class: "legend" }, entries.map(([series, name]) => element("li", {},
    drawn("svg", { class: "swatch", viewBox: "0 0 22 12", "aria-hidden": "true" },
      drawn("rect", { width: 22, height: 12, rx: 2, class: `series series-${series}` })), name)));
}
