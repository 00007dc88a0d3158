// Everything that the views share: the status, the running transfers and the connection. Changes are collected and told
// once for each frame.

import { Failure, get, session, soon } from "./api.js";
import { EventStream } from "./events.js";

const RUNNING = ["opening", "uploading", "finishing"];
/** Events may come in crowds: the status is read at most this often. */
const STATUS_INTERVAL = 5000;
/** Some holds begin and end without an event, such as a window that opens. */
const IDLE_INTERVAL = 30_000;
/** Ways change without an event: they are read with a status, at most this often. */
const ROUTES_INTERVAL = 60_000;

const MOVES = new Set(["added", "completed", "failed", "cancelled", "removed", "flushed", "loaded"]);
const FINAL = new Set(["completed", "failed", "cancelled", "expired", "superseded"]);
const WAITS = new Set(["paused", "resumed", "allowed", "quota_reached"]);

/** Whether another upload may be in a list after an event, or none. A retry has an event like any other state. */
export const changesLists = ({ type, detail }) => MOVES.has(type) || (type === "state" && FINAL.has(detail?.from));

/**
 * Whether uploads may wait for other reasons after an event, though none of them has an event of its own. A renewed
 * credential is for all uploads to a destination, and its event has the one that was being sent.
 */
export const changesWaits = ({ type, op }) => type === "credential" || (!op && WAITS.has(type));

export const state = {
  status: null,
  /** What went wrong with the last reading of the status. */
  statusFailure: null,
  /** When the status was read, by `performance.now()`. */
  readAt: -Infinity,
  /** Running uploads by id. */
  transfers: new Map(),
  /** Whether those that ran before the page did are among them. */
  hasTransfers: false,
  /** `since`, `next` and `reason` of a lost connection. */
  lost: null,
  routes: null,
};

const listeners = new Map();
const changed = new Set();
const pendingEvents = [];
let frame = 0;

/**
 * Calls `listener` in the next frame after a change.
 *
 * @param topic `status`, `transfers`, `connection`, `events` (with the list of them) or `stale` (read again).
 * @returns A function that ends it.
 */
export function subscribe(topic, listener) {
  if (!listeners.has(topic)) listeners.set(topic, new Set());
  listeners.get(topic).add(listener);
  return () => listeners.get(topic).delete(listener);
}

function notify(topic) {
  changed.add(topic);
  frame ||= requestAnimationFrame(flush);
}

function flush() {
  frame = 0;
  const topics = [...changed];
  changed.clear();
  const events = pendingEvents.splice(0);
  for (const topic of topics) {
    for (const listener of listeners.get(topic) ?? []) listener(topic === "events" ? events : undefined);
  }
}

const stream = new EventStream({
  event(event) {
    meanwhile?.push(event);
    followTransfer(event);
    if (event.type !== "progress") refreshSoon();
    // A crowd of events while no frame is drawn must not fill the memory.
    if (pendingEvents.length > 5000) notify("stale");
    else pendingEvents.push(event);
    notify("events");
  },
  stale: reloadAll,
  unnumbered: reloadAll,
  connected() {
    const wasLost = state.lost !== null;
    state.lost = null;
    notify("connection");
    if (wasLost) reloadAll();
  },
  lost(details) {
    state.lost = details;
    notify("connection");
  },
  refused() {
    state.lost = null;
    notify("connection");
    session.onlost(new Failure(401, "unauthorized", "it was ended elsewhere"));
  },
});

/** Ids of transfers that ended lately: their progress may still be on its way. */
const over = new Set();

function followTransfer({ type, op: upload }) {
  if (!upload || (type === "progress" && over.has(upload.id))) return;
  if (upload.list === "ongoing" && RUNNING.includes(upload.state)) {
    over.delete(upload.id);
    state.transfers.set(upload.id, upload);
  } else if (state.transfers.delete(upload.id)) {
    over.add(upload.id);
    if (over.size > 200) over.delete(over.values().next().value);
  } else return;
  notify("transfers");
}

/** The time of the daemon, in milliseconds since 1970, and a time of it from just now. */
export const daemonNow = () => stream.clock.now;
export const hearTime = (text) => stream.clock.hear(text);

let timer = 0;
/** When the timer rings. */
let due = Infinity;
let reading = null;

/** Reads the status soon, but not more often than the interval allows. */
export function refreshSoon() {
  schedule(Math.max(0, state.readAt + STATUS_INTERVAL - performance.now()));
}

function schedule(delay) {
  if (performance.now() + delay >= due) return;
  clearTimeout(timer);
  due = performance.now() + delay;
  timer = setTimeout(() => {
    due = Infinity;
    if (!document.hidden && session.person && !state.lost) refreshStatus();
  }, delay);
}

/** Reads the status now, as after a command. */
export function refreshStatus() {
  reading ??= readStatus().finally(() => {
    reading = null;
    readOthers();
    schedule(state.transfers.size || areTransfersDue || state.statusFailure ? STATUS_INTERVAL : IDLE_INTERVAL);
  });
  return reading;
}

async function readStatus() {
  try {
    state.status = await get("v1/status", {}, soon());
    state.statusFailure = null;
    state.readAt = performance.now();
    const running = state.status.destinations.reduce((sum, each) => sum + each.running, 0);
    if (running === 0 && state.transfers.size) {
      state.transfers.clear();
      notify("transfers");
    }
    // Before the first event nothing tells which number the page is at.
    if (stream.seq === null) stream.follow(state.status.seq);
  } catch (failure) {
    if (failure.status === 401) return;
    state.statusFailure = failure;
    // Without a status there is no stream yet that would find out.
    if (failure.status === 0 && stream.seq === null) stream.wait("it does not answer");
  }
  notify("status");
}

/** What a status leads to: the ways once in a while, and the transfers if they could not be read. */
function readOthers() {
  if (!session.person || state.statusFailure || state.lost) return;
  if (performance.now() - routesAt > ROUTES_INTERVAL) readRoutes();
  if (areTransfersDue && !meanwhile) readTransfers();
}

let areTransfersDue = true;
/** The events that came since the reading of the transfers began. */
let meanwhile = null;

/** Running uploads come by events; those that ran before the page did are read once, or again after a failure. */
async function readTransfers() {
  const mine = (meanwhile = []);
  const ask = (word) => get("v1/uploads", { state: word, limit: 64 });
  const pages = await Promise.all(RUNNING.map(ask)).catch(() => null);
  if (meanwhile !== mine) return;
  meanwhile = null;
  areTransfersDue = pages === null;
  if (pages) {
    state.hasTransfers = true;
    state.transfers = new Map(pages.flatMap((page) => page.uploads).map((upload) => [upload.id, upload]));
    for (const id of state.transfers.keys()) over.delete(id);
    // An event may be newer than the answers, and come before them.
    const read = Math.min(...pages.map((page) => page.seq));
    for (const event of mine) {
      if (event.seq > read || (event.type === "progress" && event.seq === read)) followTransfer(event);
    }
  }
  notify("transfers");
}

let routesAt = -Infinity;

/** The daemon may not know routes; then no way is shown. */
async function readRoutes() {
  routesAt = performance.now();
  const answer = await get("v1/routes").catch(() => null);
  state.routes = answer && new Map(answer.destinations.map((each) => [each.destination, each]));
  notify("status");
}

/** Reads everything again: at the start, after a lost connection and after missed events. */
function reloadAll() {
  notify("stale");
  return readAll();
}

async function readAll() {
  areTransfersDue = true;
  meanwhile = null;
  routesAt = -Infinity;
  await refreshStatus();
}

/** Begins, after signing in. */
export async function begin() {
  // The first view reads for itself.
  await (state.status ? reloadAll() : readAll());
  if (stream.seq !== null && !state.lost) stream.start();
}

export function retryConnection() {
  stream.retryNow();
}

/** Forgets everything, after signing out. */
export function end() {
  stream.stop();
  stream.seq = null;
  meanwhile = null;
  over.clear();
  Object.assign(state,
    { status: null, statusFailure: null, readAt: -Infinity, transfers: new Map(), hasTransfers: false, lost: null });
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && session.person) refreshSoon();
});
