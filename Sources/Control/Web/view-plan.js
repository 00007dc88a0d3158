// The next 48 hours, as the daemon's plan foresees them: a drawing of lanes, and tables that say the same.

import { get } from "./api.js";
import { button, dataTable, drawn, element, fill, foreign, icon, panel, remake, rootSize, visibly } from "./dom.js";
import { bytes, clock, count, dayName, duration, files, fullTime, rate, shortTime, time, until } from "./format.js";
import { daemonNow, hearTime, subscribe } from "./store.js";
import { holdWords, networkName, prose, route } from "./words.js";

const HOURS = 48;
const HOUR = 3600e3;
const LANE = 54;
const AXIS = 40;
/** A plan costs the daemon a simulation: it is read again at most this often. */
const INTERVAL = 30_000;
const CHANGES = new Set(["added", "completed", "failed", "cancelled", "paused", "resumed", "allowed", "state",
  "loaded"]);

export const plan = {
  title: "Plan",
  mount: (root) => new PlanView(root),
};

class PlanView {
  constructor(root) {
    this.asOf = element("p", { class: "quiet", role: "status" });
    const region = { class: "timeline scroll", tabindex: "0", role: "region", "aria-label": "Timeline" };
    this.drawing = element("div", region);
    this.content = element("div", { class: "stack" });
    const again = button("Plan again", { icon: "retry", onclick: () => this.load() });
    fill(root, element("div", { class: "heading" }, element("h1", { tabindex: "-1" }, "Plan"), this.asOf,
      element("div", { class: "buttons" }, again)), this.content);
    fill(this.content, element("p", { class: "empty" }, "Planning…"));
    this.unsubscribe = [
      subscribe("stale", () => this.loadSoon()),
      subscribe("events", (events) => events?.some((event) => CHANGES.has(event.type)) && this.loadSoon()),
    ];
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(root);
    this.load();
  }

  update() {}

  unmount() {
    clearTimeout(this.timer);
    this.isOver = true;
    this.observer.disconnect();
    for (const each of this.unsubscribe) each();
  }

  loadSoon() {
    this.timer ??= setTimeout(() => this.load(), Math.max(1000, this.loadedAt + INTERVAL - performance.now()));
  }

  async load() {
    clearTimeout(this.timer);
    this.timer = null;
    this.loadedAt = performance.now();
    try {
      const answer = await this.read();
      if (!this.isOver) this.show(answer);
    } catch (failure) {
      if (this.isOver) return;
      const words = [icon("lost"), element("p", {}, "The plan could not be read: ", foreign(failure.message))];
      // An older plan stays, and says so.
      if (this.plan) fill(this.asOf, words);
      else fill(this.content, element("div", { class: "empty" }, words));
    }
  }

  /** The end is by the clock of the daemon. Its answer tells how late it is there. */
  async read() {
    const ask = () => get("v1/plan", { until: new Date(daemonNow() + HOURS * HOUR).toISOString() });
    // It refuses an end that is past for it.
    const answer = await ask().catch((failure) => (failure.status === 400 ? get("v1/plan") : Promise.reject(failure)));
    hearTime(answer.from);
    const span = new Date(answer.until) - new Date(answer.from);
    return Math.abs(span - HOURS * HOUR) < HOUR / 6 || answer.is_cut ? answer : ask();
  }

  show(answer) {
    this.plan = answer;
    this.lanes = answer.queues.map((queue) => laneOf(queue, answer));
    fill(this.asOf, "as of ", time(answer.from), `, times of ${Intl.DateTimeFormat().resolvedOptions().timeZone}`);
    if (!answer.queues.length) {
      fill(this.content, element("div", { class: "empty" }, icon("ok"),
        element("p", {}, "Nothing waits, so there is nothing to plan.")));
      return;
    }
    const cut = answer.is_cut && element("p", { class: "notice" }, icon("warning"),
      "There was too much to plan: the plan ends early.");
    const notes = [...rateNotes(answer), ...answer.notes].map((note) => element("li", {}, prose(note)));
    remake(this.content, cut,
      panel("The next 48 hours", this.drawing, legend()),
      panel("Expected ends", queueTable(answer)),
      panel("Periods of sending", stepTable(answer)),
      panel("What the plan assumes", element("ul", { class: "notes" }, notes)));
    this.draw();
  }

  draw() {
    if (!this.lanes?.length || !this.drawing.isConnected) return;
    // A drawing grows with the size of text.
    const width = Math.round(Math.max(560, (this.drawing.clientWidth * 15) / rootSize()));
    if (this.drawn === this.plan && this.width === width) return;
    this.drawn = this.plan;
    this.width = width;
    fill(this.drawing, timeline(this.plan, this.lanes, width));
  }
}

/** The segments of one queue: `{kind: "step" | "wait" | "unknown", from, to, word, text}`. */
function laneOf(queue, answer) {
  const begin = new Date(answer.from);
  const end = new Date(answer.until);
  const segments = [];
  const steps = answer.steps.filter((step) => step.folder === queue.folder && step.destination === queue.destination)
    .map((step) => ({ ...step, from: new Date(step.from), to: new Date(step.to) })).sort((a, b) => a.from - b.from);
  let place = begin;
  const present = queue.waits.filter((wait) => new Date(wait.from) - begin < 60e3);
  let [reason] = present.sort((a, b) => b.seconds - a.seconds);
  for (const step of steps) {
    if (step.from - place > 60e3) segments.push(waitSegment(reason, place, step.from));
    const text = `${files(step.files)}, ${bytes(step.bytes)} at ${rate(step.rate)}`;
    segments.push({ kind: "step", from: step.from, to: step.to, word: rate(step.rate), text,
      isMetered: step.network === "metered" });
    place = step.to;
    reason = step.holds[0];
  }
  const ends = queue.ends ? new Date(queue.ends) : null;
  if (queue.left_files > 0 && end - place > 60e3) {
    const known = reason?.until ? new Date(reason.until) : null;
    const obstacle = queue.obstacles[0];
    // The end of a wait for a destination is only its next try.
    const isPolicy = ["rule", "quota", "global", "clock"].includes(reason?.kind);
    const change = obstacle && isPolicy && known > place && known < end ? known : end;
    if (reason) segments.push(waitSegment(reason, place, change));
    if (!reason || change < end) {
      segments.push({ kind: "unknown", from: reason ? change : place, to: end, word: "Not known",
        text: obstacle?.text ?? "the plan cannot say more" });
    }
  }
  return { queue, segments, ends: ends && ends <= end ? ends : null };
}

const TONES = { quota: "quota", operator: "pause", global: "pause", rule: "rule", metered: "rule" };

function waitSegment(reason, from, to) {
  if (!reason) return { kind: "wait", tone: "turn", from, to, word: "Other uploads first", text: "no free slot" };
  const { word, text } = holdWords(reason);
  return { kind: "wait", tone: TONES[reason.kind] ?? "trouble", from, to, word, text };
}

function timeline(answer, lanes, width) {
  const begin = new Date(answer.from).getTime();
  const span = new Date(answer.until).getTime() - begin;
  const x = (date) => Math.max(0, Math.min(width, ((date - begin) / span) * width));
  const height = AXIS + lanes.length * LANE + 6;
  const label = `${lanes.length} queues from ${fullTime(new Date(answer.from))} on. The tables below say the same.`;
  return drawn("svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    patterns(), axis(begin, span, width, height, x),
    lanes.map((lane, index) => laneDrawing(lane, AXIS + index * LANE, x, width)));
}

function patterns() {
  const hatch = (id, turn) => drawn("pattern",
    { id, width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` },
    drawn("rect", { width: 8, height: 8, class: `${id} ground` }),
    drawn("rect", { width: 2, height: 8, class: `${id} stroke` }));
  return drawn("defs", {}, hatch("hatch-rule", 45), hatch("hatch-quota", 90), hatch("hatch-trouble", -45),
    hatch("hatch-pause", 0));
}

/** Hours and midnights of the viewer's clock, also where a day has 23 or 25 hours. */
function axis(begin, span, width, height, x) {
  const step = width < 900 ? 6 : 3;
  const marks = [];
  const hour = new Date(begin);
  hour.setMinutes(0, 0, 0);
  for (hour.setHours(hour.getHours() + 1); hour.getTime() < begin + span; hour.setHours(hour.getHours() + 1)) {
    if (hour.getHours() % step) continue;
    const isDay = hour.getHours() === 0;
    const place = x(hour.getTime());
    const [top, kind] = isDay ? [0, "midnight"] : [AXIS, "hour"];
    marks.push(drawn("line", { x1: place, x2: place, y1: top, y2: height, class: kind }));
    if (isDay && place < width - 60) {
      marks.push(drawn("text", { x: place + 5, y: 12, class: "day" }, dayName(hour)));
    }
    if (!isDay && place > 16 && place < width - 16) {
      marks.push(drawn("text", { x: place, y: AXIS - 6, class: "tick" }, clock(hour)));
    }
  }
  const firstDay = marks.find((mark) => mark.classList.contains("day"));
  const hasRoom = !firstDay || Number(firstDay.getAttribute("x")) > 50;
  return [marks, hasRoom && drawn("text", { x: 0, y: 12, class: "day" }, "Now"),
    drawn("line", { x1: 0.5, x2: 0.5, y1: 18, y2: height, class: "present" })];
}

function laneDrawing({ queue, segments, ends }, top, x, width) {
  const label = visibly(`${queue.folder} to ${queue.destination}`);
  const facts = `${files(queue.files)}, ${bytes(queue.bytes)}`;
  const end = ends && x(ends);
  const isLate = end > width - 110;
  return [
    drawn("text", { x: 6, y: top + 14, class: "lane" }, drawn("tspan", { class: "strong" }, label), `  ${facts}`),
    segments.map((segment) => segmentDrawing(segment, label, top, x)),
    ends && drawn("path", { d: `M${end} ${top + 16}v30`, class: "end" }),
    ends && drawn("text",
      { x: end + (isLate ? -5 : 5), y: top + 35, class: "ends", "text-anchor": isLate ? "end" : "start" },
      `done ${shortTime(ends)}`),
  ];
}

function segmentDrawing({ kind, tone = "", from, to, word, text, isMetered }, label, top, x) {
  const left = x(from);
  const width = Math.max(2, x(to) - left);
  const hasRoom = width > word.length * 7 + 12;
  const plate = { x: left + 4, y: top + 23, width: word.length * 6.4 + 8, height: 16, rx: 2, class: "plate" };
  return drawn("g", {},
    drawn("title", {}, `${label}: ${shortTime(from)} to ${shortTime(to)}. ${visibly(text)}`),
    drawn("rect", { x: left, y: top + 20, width, height: 22, rx: 3, class: `segment ${kind} ${tone}` }),
    isMetered && drawn("rect", { x: left, y: top + 38, width, height: 4, class: "metered" }),
    hasRoom && kind !== "step" && drawn("rect", plate),
    hasRoom && drawn("text", { x: left + 8, y: top + 35, class: `inside ${kind}` }, word));
}

const LEGEND = [
  ["step", "is sent"], ["wait rule", "window or other rule"], ["wait quota", "quota used up"], ["wait pause", "paused"],
  ["wait trouble", "no answer or no way"], ["wait turn", "other uploads first"], ["unknown", "not known"],
];

function legend() {
  return element("ul", { class: "legend" }, LEGEND.map(([kind, label]) => element("li", {},
    drawn("svg", { class: "swatch", viewBox: "0 0 22 12", "aria-hidden": "true" },
      drawn("rect", { width: 22, height: 12, rx: 2, class: `segment ${kind}` })), label)));
}

const FIGURES = ["Files", "Size", "Rate", "Left after 48 h"];

function queueTable(answer) {
  const heads = ["Queue", "Files", "Size", "Done", "Left after 48 h", "Waits for"];
  return dataTable("Expected ends", heads, answer.queues.map((queue) => [
    route(queue.folder, queue.destination), files(queue.files), bytes(queue.bytes), endOf(queue),
    queue.left_files ? `${files(queue.left_files)}, ${bytes(queue.left_bytes)}` : "nothing",
    element("ul", { class: "lines" }, reasonsOf(queue).map((reason) => element("li", {}, reason))),
  ]), { figures: FIGURES, kind: "wide" });
}

function endOf(queue) {
  if (queue.ends) return time(queue.ends);
  return element("span", { class: "quiet" }, queue.obstacles.length ? "not known" : "not within a month");
}

function reasonsOf(queue) {
  return [
    ...queue.waits.map((wait) => [element("strong", {}, holdWords(wait).word), " ", prose(wait.text), " ",
      wait.until ? until(wait.until) : "without a known end", `, ${duration(wait.seconds)} in all`]),
    ...queue.obstacles.map((each) => [icon("warning"), prose(each.text)]),
    queue.paused > 0 && `${files(queue.paused, "upload")} paused one by one are not planned`,
    queue.standby > 0 && `${files(queue.standby, "upload")} go only if another destination does not take them`,
    queue.copying > 0 && `${files(queue.copying)} not copied yet`,
  ].filter(Boolean);
}

function stepTable(answer) {
  if (!answer.steps.length) {
    return element("p", { class: "empty" }, "Nothing is sent in this time, as far as the plan knows.");
  }
  const heads = ["From", "To", "Queue", "Network", "Files", "Size", "Rate", "Then"];
  return dataTable("Periods of sending", heads, answer.steps.map((step) => [
    time(step.from), time(step.to), route(step.folder, step.destination),
    [step.interface, networkName(step.network)].filter(Boolean).join(", "),
    count(step.files), bytes(step.bytes), rate(step.rate), thenOf(step),
  ]), { figures: FIGURES, key: 2, kind: "wide" });
}

function thenOf(step) {
  if (step.end === "done") return "all sent";
  if (step.end === "until") return "goes on";
  return step.holds.map((hold) => [holdWords(hold).word, ": ", prose(hold.text)]);
}

function rateNotes(answer) {
  const sources = { given: "given", measured: "measured", usage: "the best hour of the last week" };
  return answer.rates.filter((each) => each.rate).map((each) =>
    `${each.destination ?? "all destinations"}: ${rate(each.rate)} (${sources[each.source] ?? each.source})`);
}
