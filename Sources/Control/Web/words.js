// The words for states, holds and results, each with its picture: a colour alone says nothing.

import { element, foreign, visibly } from "./dom.js";
import { ago, bytes, files, percent, rate, time, until } from "./format.js";

/** Tones: `good`, `active`, `wait`, `warn`, `bad`, `quiet`. */
const STATES = {
  settling: ["Settling", "settling", "wait"],
  staging: ["Being copied", "disk", "wait"],
  queued: ["Queued", "queue", "quiet"],
  waiting: ["Waiting", "wait", "wait"],
  opening: ["Opening", "up", "active"],
  uploading: ["Uploading", "up", "active"],
  finishing: ["Finishing", "up", "active"],
  completed: ["Completed", "ok", "good"],
  failed: ["Failed", "failed", "bad"],
  cancelled: ["Cancelled", "cancel", "quiet"],
  expired: ["Expired", "cancel", "warn"],
  superseded: ["Superseded", "cancel", "quiet"],
};

const HOLDS = {
  operator: ["Paused", "pause"],
  global: ["Paused", "pause"],
  quota: ["Quota", "usage"],
  metered: ["Metered network", "usage"],
  offline: ["No route", "lost"],
  clock: ["Clock not set", "plan"],
  rule: ["Rule", "plan"],
  backoff: ["Waits to retry", "retry"],
  destination: ["No answer", "lost"],
  rate_limit: ["Asked to wait", "wait"],
  auth: ["Token rejected", "lock"],
  disk: ["No space", "disk"],
  alternative: ["Other destination first", "wait"],
  absent: ["Disk absent", "disk"],
  busy: ["Busy", "wait"],
  settling: ["Settling", "settling"],
  gathering: ["Waits for its group", "wait"],
};

/** Rules that the configuration has short forms for. */
const RULES = { windows: ["Outside the window", "plan"], metered: ["Metered network", "usage"] };

/** Holds that a person may have to do something about. */
const TROUBLE = new Set(["destination", "auth", "disk", "absent", "offline", "clock"]);

export const stateWords = (state) => STATES[state] ?? [state, "file", "quiet"];

/** `{word, icon, tone, text, when}` of a hold. */
export function holdWords(hold) {
  const [word, icon] = RULES[hold.rule] ?? HOLDS[hold.kind] ?? [hold.kind, "wait"];
  return { word, icon, tone: TROUBLE.has(hold.kind) ? "warn" : "wait", text: hold.text, until: hold.until };
}

/** Whether a person paused this upload by itself: a pause of its folder or of everything is resumed there. */
export const isPaused = (upload) => upload.holds.some((hold) => hold.kind === "operator");

/** The hold to show: the one that ends last, and one without an end before all others. */
function mainHold(holds) {
  return holds.reduce((last, hold) => {
    if (!last || !hold.until) return last && !last.until ? last : hold;
    return last.until && hold.until > last.until ? hold : last;
  }, null);
}

/** How much of a file is on its way or has arrived: the bytes that the fraction means. */
export const sentWords = ({ fraction, total }) =>
  `${percent(fraction)}, ${bytes(Math.round(fraction * total))} of ${bytes(total)}`;

/** What to say about an upload in one line. */
export function describe(upload) {
  const [word, icon, tone] = stateWords(upload.state);
  const { progress } = upload;
  const plain = { word, icon, tone, text: "" };
  if (upload.staging) {
    const { work, fraction, rate: speed } = upload.staging;
    const done = fraction === undefined ? bytes(upload.staging.done) : percent(fraction);
    return { word: work[0].toUpperCase() + work.slice(1), icon: "disk", tone: "active",
      text: `${done} ${rate(speed)}` };
  }
  if (tone === "active") {
    const left = [sentWords(progress), rate(progress.rate)];
    return { ...plain, text: left.filter(Boolean).join(", "), fraction: progress.fraction };
  }
  if (upload.state === "waiting" && upload.holds.length) return holdWords(mainHold(upload.holds));
  if (upload.error && upload.list !== "completed") {
    return { ...plain, text: upload.error.message, next: upload.next_attempt_at };
  }
  if (upload.state === "completed" && upload.remote?.verified_by) {
    return { ...plain, text: `verified by ${upload.remote.verified_by}` };
  }
  if (progress.fraction > 0) return { ...plain, text: `${percent(progress.fraction)} sent` };
  return plain;
}

/** When an upload ended, or how long it waits. */
export function whenOf(upload) {
  const said = describe(upload);
  if (said.until) return until(said.until);
  if (said.next) return until(said.next, "next try");
  if (upload.finished_at) return ago(upload.finished_at);
  return element("span", { class: "quiet" }, "added ", ago(upload.created_at));
}

/** A text of the daemon or of a server: isolated, with the keys between backticks set as code. */
export function prose(text, attributes) {
  const parts = visibly(text).split("`");
  // An odd number of backticks does not pair.
  if (parts.length % 2 === 0) return foreign(text, attributes);
  return element("bdi", attributes, parts.map((part, index) => (index % 2 ? element("code", {}, part) : part)));
}

/** `front-door to nas`. */
export function route(folder, destination) {
  return element("span", { class: "route" }, foreign(folder === "-" ? "by hand" : folder), " to ",
    foreign(destination));
}

/** `(keep, 3 min)`-like facts of a hold: since when, and the rule that makes it. */
export function holdFacts(hold) {
  const place = hold.file ? `${hold.file}:${hold.line ?? ""}` : "";
  return [
    element("span", {}, "since ", time(hold.since)),
    hold.until ? until(hold.until) : element("span", {}, "no known end"),
    place && element("span", {}, "rule ", foreign(hold.rule ?? ""), " in ", foreign(place)),
    hold.facts?.length > 0 && element("span", {}, `ends when one of these changes: ${hold.facts.join(", ")}`),
  ];
}

const NETWORKS = {
  unmetered: "Unmetered",
  metered: "Metered",
  unknown: "Cost unknown",
  local: "This machine",
  any: "Not asked",
};

export const networkName = (name) => NETWORKS[name] ?? name;

// Files that a person adds.

/** `Added: 2 files to nas.` */
export function addedWords(items) {
  const sums = new Map();
  for (const { isDone, to } of items) if (isDone) sums.set(to, (sums.get(to) ?? 0) + 1);
  const parts = [...sums].map(([to, sum]) => `${files(sum)} to ${to}`);
  return parts.length ? `Added: ${parts.join(", ")}.` : "";
}

/** Why a file was not added, or may not be. */
export const failureWords = ({ file, failure }) => `${file.name}: ${failure.message}`;

/** As many files have room in a notice. */
const MAX_FAILURES = 4;

/** What became of files whose dialog is gone: the first failure, and each file that the daemon may have after all. */
export function stoppedWords(items) {
  const failed = items.filter((item) => item.failure);
  const told = failed.filter((item, index) => index === 0 || item.failure.isUnknown);
  const rest = told.length - MAX_FAILURES;
  return [
    "Stopped.", addedWords(items) || (failed.some((item) => item.failure.isUnknown) ? "" : "No file was added."),
    // A text of the daemon may have no full stop.
    ...told.slice(0, MAX_FAILURES).map((item) => failureWords(item).replace(/[^.]$/, "$&.")),
    rest > 0 && `Not known either: ${files(rest, "more file")}.`,
  ].filter(Boolean).join(" ");
}
