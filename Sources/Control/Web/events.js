// The one stream of events. It is read with `fetch`, because an EventSource shows neither the status of an answer nor
// the heartbeats by which a dead connection is noticed.

import { session, SILENCE } from "./api.js";

/** The daemon gives an event of the last 10 s with the present holds of its upload, and an older one without holds. */
const FRESHNESS = 8000;
/** No message is on its way for longer. */
const LATENESS = 60_000;
/** How long a daemon whose time is not known may need to send the events that were missed. */
const CATCHING_UP = 3000;
const FIRST_DELAY = 1000;
const LONGEST_DELAY = 30_000;

/** The clock of the daemon, which may differ from the one here, as far as its messages tell. */
class DaemonClock {
  /** A time of the daemon from just now. It was on its way for a while: the largest difference is the best. */
  hear(text) {
    const heard = Date.parse(text) - Date.now();
    if (Number.isNaN(heard)) return;
    // It was set back.
    const isBehind = heard < this.offset - LATENESS;
    if (this.offset === undefined || heard > this.offset || isBehind) this.offset = heard;
  }

  /** In milliseconds; `null` while the time of the daemon is not known. */
  ageOf(text) {
    return this.offset === undefined ? null : this.now - Date.parse(text);
  }

  /** As milliseconds since 1970; until the daemon has told its time, that of the viewer. */
  get now() {
    return Date.now() + (this.offset ?? 0);
  }
}

/**
 * Follows the events while the page is visible, and connects again by itself.
 *
 * @param on `event(event)`, whose `isOld` says that it may be too old to tell how its upload is now; `stale()`: events
 *   were missed, and everything has to be read again; `unnumbered()`: nothing was read yet that tells where to begin;
 *   `connected()`; `lost({since, next, reason})`, also for each further try; `refused()`: the session is over.
 */
export class EventStream {
  constructor(on) {
    this.on = on;
    this.seq = null;
    this.lostSince = null;
    this.delay = FIRST_DELAY;
    this.clock = new DaemonClock();
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.start()));
    addEventListener("online", () => this.retryNow());
  }

  /** Begins after the event `seq`, the last one that the page knows. */
  follow(seq) {
    this.seq = Math.max(this.seq ?? 0, seq);
    if (!this.connection) this.start({ isCurrent: true });
  }

  /** @param isCurrent Whether the number was just read. In a hidden tab the connection begins later. */
  start({ isCurrent = false } = {}) {
    if (document.hidden || this.connection || !session.person) return;
    // Only one try may be due at a time.
    clearTimeout(this.timer);
    if (this.seq === null) this.on.unnumbered();
    else this.connect(isCurrent);
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.connection?.abort();
    this.connection = null;
  }

  retryNow() {
    if (!this.lostSince) return;
    this.stop();
    this.start();
  }

  async connect(isCurrent) {
    const connection = new AbortController();
    this.connection = connection;
    // After an older number the daemon first sends what was missed.
    this.catchesUpUntil = isCurrent ? 0 : performance.now() + CATCHING_UP;
    let reason = "the connection was closed";
    // A daemon that was stopped as it is still takes connections, and answers none of them.
    this.expectBytes(connection);
    try {
      const answer = await fetch(`v1/events?since=${this.seq}`, { signal: connection.signal, cache: "no-store" });
      if (answer.status === 401) {
        this.stop();
        this.lostSince = null;
        this.on.refused();
        return;
      }
      if (answer.ok) {
        await this.read(answer.body.getReader(), connection);
      } else {
        const value = await answer.json().catch(() => null);
        reason = value?.error?.message ?? `it answered ${answer.status}`;
      }
    } catch (error) {
      if (["TypeError", "AbortError"].includes(error.name)) reason = "it does not answer";
    }
    // Another connection may have begun meanwhile, or the page was hidden.
    if (this.connection === connection) this.wait(reason);
  }

  async read(reader, connection) {
    const decoder = new TextDecoder();
    let text = "";
    this.expectBytes(connection);
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.connection !== connection) return;
      this.expectBytes(connection);
      if (this.lostSince || !this.isConnected) this.greet();
      text += decoder.decode(value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) this.parse(block);
    }
  }

  greet() {
    this.isConnected = true;
    this.lostSince = null;
    this.delay = FIRST_DELAY;
    this.on.connected();
  }

  expectBytes(connection) {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => connection.abort(), SILENCE);
  }

  parse(block) {
    const data = block.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
    if (!data) return;
    const event = JSON.parse(data);
    if (event.type === "reset") {
      // Numbers begin again if the database was built again.
      this.seq = event.seq;
      this.on.stale();
      return;
    }
    if (event.type === "overflow") return;
    this.seq = Math.max(this.seq, event.seq);
    event.isOld = this.isOld(event);
    this.on.event(event);
  }

  /** Without a time of the daemon to compare with, what comes right after a connection may be old. */
  isOld({ type, ts }) {
    if (type === "progress") {
      this.clock.hear(ts);
      return false;
    }
    const age = this.clock.ageOf(ts);
    if (age === null && performance.now() < this.catchesUpUntil) return true;
    if (age > FRESHNESS) return true;
    this.clock.hear(ts);
    return false;
  }

  /** Waits longer after each try, with some chance in it, so that many pages do not return at the same moment. */
  wait(reason) {
    clearTimeout(this.watchdog);
    this.connection = null;
    this.isConnected = false;
    this.lostSince ??= new Date();
    const delay = this.delay * (0.8 + Math.random() * 0.4);
    this.delay = Math.min(LONGEST_DELAY, this.delay * 2);
    this.on.lost({ since: this.lostSince, next: new Date(Date.now() + delay), reason });
    this.timer = setTimeout(() => this.start(), delay);
  }
}
