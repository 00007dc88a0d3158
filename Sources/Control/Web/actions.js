// The commands: which ones an upload takes, how they are sent, and where their result is shown.

import { get, isUnlocked, mayChange, post } from "./api.js";
import { announce, button, element, fill, foreign, icon } from "./dom.js";
import { files } from "./format.js";
import { refreshStatus, state } from "./store.js";
import { isPaused } from "./words.js";

/** Asks for the token again; set by the module that can. Resolves to whether changes are possible now. */
export const unlocking = { ask: async () => false };

/** Label, picture and the words for the result of each command on uploads. */
export const COMMANDS = {
  pause: { label: "Pause", icon: "pause", done: "Paused" },
  resume: { label: "Resume", icon: "resume", done: "Resumed" },
  now: { label: "Try now", icon: "retry", done: "Tried now", path: "resume" },
  retry: { label: "Retry", icon: "retry", done: "Begun again" },
  allow: { label: "Allow…", icon: "allow", opens: true },
  priority: { label: "Priority…", icon: "up", opens: true },
  cancel: { label: "Cancel…", icon: "cancel", opens: true, danger: true },
  remove: { label: "Remove…", icon: "remove", opens: true, danger: true },
};

/** Kinds of holds from which `allow` can make an exception, by the kind of the hold. */
export const ALLOWED = new Set(["rule", "metered", "quota"]);

/** The names of the commands that the state of an upload permits. */
export function commandsFor(upload) {
  switch (upload.list) {
    case "ongoing": {
      const names = [isPaused(upload) ? "resume" : "pause"];
      if (upload.holds.some((hold) => ["backoff", "destination", "auth"].includes(hold.kind))
        || upload.next_attempt_at) {
        names.push("now");
      }
      if (upload.holds.some((hold) => ALLOWED.has(hold.kind))) names.push("allow");
      return [...names, "priority", "cancel"];
    }
    case "completed": return ["remove"];
    case "failed": return ["retry", "cancel", "remove"];
    case "cancelled": return ["retry", "remove"];
    default: return upload.state === "completed" ? [] : ["retry"];
  }
}

/** Why no command can be given; `null` where one can. */
export function reasonAgainst() {
  if (!mayChange()) return "You are signed in with the role view: you may look, and change nothing.";
  if (state.lost) return "There is no connection to the daemon.";
  return null;
}

/** Makes sure that changes are possible, and asks for the token where they are not. */
export async function ensureUnlocked() {
  if (isUnlocked()) return true;
  return mayChange() && unlocking.ask();
}

/**
 * For what waits before it opens a question: whether the person still looks at that which they asked from. It is false
 * after a way to another view and back, when the filters have changed, and over another dialog.
 */
export function standpoint() {
  const look = () => [location.hash, document.querySelector("main .view"),
    [...document.querySelectorAll("dialog[open]")].at(-1)];
  const before = look();
  return () => look().every((each, index) => each === before[index]);
}

/**
 * Sends a command, and shows the result at `place` and to screen readers.
 *
 * @param done The sentence for success, or a function of the answer that returns it.
 * @returns The answer; `null` if it failed.
 */
export async function run(path, body, { place, done }) {
  if (!(await ensureUnlocked())) return null;
  showResult(place, null);
  try {
    const answer = await post(`v1/${path}`, body);
    const text = typeof done === "function" ? done(answer) : done;
    showResult(place, text, answer.refused || answer.ok === false ? "warn" : "good");
    refreshStatus();
    return answer;
  } catch (failure) {
    showResult(place, failure.message, "bad");
    return null;
  }
}

const PICTURES = { good: "ok", warn: "warning", bad: "failed" };

/** Shows a sentence about a command where it was given. */
export function showResult(place, text, tone = "good") {
  if (place) {
    fill(place, text && [icon(PICTURES[tone]), foreign(text)]);
    place.className = `result ${tone}`;
    place.title = text ?? "";
  }
  if (text) announce(tone === "bad" ? `Not done: ${text}` : text);
}

/** Screen readers notice that a text has gone after this many milliseconds. */
const NOTICED = 100;

/** Takes away what an earlier try said. Waits for screen readers, which then speak the same text again. */
export async function clearResult(place) {
  const isEmpty = !place.firstChild;
  showResult(place, null);
  if (!isEmpty) await new Promise((resolve) => setTimeout(resolve, NOTICED));
}

/** What a command said stays to be read when its dialog is gone: in the drawer, or at the bottom of the page. */
export function showOutcome(result) {
  if (!result.firstChild) return;
  const place = document.querySelector("dialog.drawer > .result") ?? element("p");
  fill(place, [...result.childNodes]);
  place.className = result.className;
  if (!place.isConnected) openNotice(place);
}

/** Says what has no place of its own: at the bottom of the page, or in the dialog over it. */
export function showNotice(text, tone = "bad") {
  const place = [...document.querySelectorAll("dialog[open]")].at(-1)?.querySelector(".result") ?? element("p");
  showResult(place, text, tone);
  if (!place.isConnected) openNotice(place);
}

function openNotice(place) {
  const notice = document.getElementById("notice");
  fill(notice, place, button("Close", { class: "small plain", onclick: hideNotice }));
  notice.hidden = false;
}

export function hideNotice() {
  document.getElementById("notice").hidden = true;
}

/** The sentence for the answer of a command on uploads. */
export function doneText(word) {
  return (answer) => {
    const refused = answer.refused ? ` ${files(answer.refused, "upload")} refused: ${answer.refusal}` : "";
    return `${word}: ${files(answer.count ?? answer.uploads?.length ?? 0, "upload")}.${refused}`;
  };
}

/** A command on uploads that needs no further question. */
export const runPlain = (name, ids, place) =>
  run(COMMANDS[name].path ?? name, { ids }, { place, done: doneText(COMMANDS[name].done) });

/** Ends the pause of a folder, a destination or everything. The daemon counts no uploads for it. */
export const resumeAll = (selection, place) => run("resume", selection,
  { place, done: selection.all ? "Everything is resumed." : `Resumed: uploads ${scopeText(selection)}.` });

/** A button for a command; disabled with the reason where it cannot be given. */
export function commandButton(label, picture, onclick, attributes = {}) {
  const control = button(label, { icon: picture, onclick, ...attributes });
  const reason = reasonAgainst();
  if (reason) {
    control.disabled = true;
    control.title = reason;
  }
  control.dataset.command = "";
  return control;
}

/** Disables or enables all buttons of commands, as the connection is lost and found. */
export function refreshCommands(root = document) {
  const reason = reasonAgainst();
  for (const control of root.querySelectorAll("[data-command]")) {
    control.disabled = reason !== null;
    if (reason) control.title = reason;
    else control.removeAttribute("title");
  }
}

/** What a command can be limited to: `{all}`, or `{folder}`, `{destination}` or both. */
export function scopeOf(value) {
  const [kind, ...rest] = value.split(":");
  if (kind === "all") return { all: true };
  return kind === "both" ? JSON.parse(rest.join(":")) : { [kind]: rest.join(":") };
}

/** The reverse, as the value of a choice. */
export function scopeValue({ folder, destination }) {
  if (folder && destination) return `both:${JSON.stringify({ folder, destination })}`;
  return folder ? `folder:${folder}` : destination ? `destination:${destination}` : "all";
}

export function scopeText({ folder, destination }) {
  const to = destination ? ` to ${destination}` : "";
  if (folder) return `${folder === "-" ? "added by hand" : `of folder ${folder}`}${to}`;
  return to ? to.trim() : "of all folders";
}

/** How many uploads of a list a command with this selection applies to, as the daemon counts them now. */
export async function countIn({ folder, destination }, list) {
  const page = await get("v1/uploads", { folder, destination, list, limit: 1 });
  return (page.selected ?? page.counts)[list];
}

/** `1,234 failed uploads`; `null`: the daemon did not say how many. */
export function uploadsIn(number, list) {
  return number === null ? `an unknown number of ${list} uploads` : files(number, `${list} upload`);
}

/** The result line beside controls. It needs a role where the page around a dialog, with its live region, is inert. */
export const resultPlace = (role) => element("p", { class: "result", role });
