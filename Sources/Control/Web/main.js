// The frame around the views: signing in, the address, the connection, the theme and dropped files.

import { isUnlocked, mayChange, resumeSession, session, signInWithCode, signInWithToken, signOut } from "./api.js";
import { clearResult, hideNotice, showNotice, showResult, unlocking } from "./actions.js";
import { announce, button, element, fill, foreign, icon, link, setAttribute } from "./dom.js";
import { addDialog, ask, field } from "./dialogs.js";
import { duration, refreshRelative, time } from "./format.js";
import { begin, end, refreshStatus, retryConnection, state, subscribe } from "./store.js";
import { closeUpload, openUpload } from "./upload.js";
import { check } from "./view-check.js";
import { now } from "./view-now.js";
import { plan } from "./view-plan.js";
import { history, queue } from "./view-uploads.js";
import { usage } from "./view-usage.js";

const VIEWS = { now, queue, plan, usage, history, check };
const THEMES = ["auto", "light", "dark"];
const main = document.getElementById("main");
let current = { name: null, view: null };

/** What an address shows that names no view. */
const missing = {
  title: "No such view",
  mount(root) {
    const given = element("code");
    fill(root, element("h1", { tabindex: "-1" }, missing.title), element("div", { class: "empty" }, icon("warning"),
      element("p", {}, "The address ", given, " names no view of this page."),
      element("a", { class: "button", href: link("now") }, icon("now"), element("span", {}, "Show what happens now"))));
    const update = () => fill(given, foreign(location.hash));
    update();
    return { update, unmount() {} };
  },
};

const viewNamed = (name) => VIEWS[name] ?? missing;

/** `#/queue?folder=door` as `["queue", {folder: "door"}]`. */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  if (path && !Object.hasOwn(VIEWS, path)) return ["missing", {}];
  return [path || "now", Object.fromEntries(new URLSearchParams(query))];
}

/** Goes to another view, or to the same one with other parameters. */
function go(name, params, { replace = false } = {}) {
  const target = link(name, params);
  if (!replace) location.hash = target;
  else {
    window.history.replaceState(null, "", target);
    show();
  }
}

/** Shows what the address says. */
function show() {
  if (!session.person) return;
  const [name, params] = address();
  if (name !== current.name) {
    current.view?.unmount();
    const isFirst = current.name === null;
    const root = element("div", { class: `view view-${name}` });
    fill(main, root);
    current = { name, role: session.person.role, view: viewNamed(name).mount(root, params, go) };
    hideNotice();
    document.title = `${viewNamed(name).title} · Sluice`;
    scrollTo(0, 0);
    // A new view is read from its heading on.
    if (!isFirst && !params.upload) root.querySelector("h1").focus({ preventScroll: true });
  } else current.view.update(params);
  markCurrent();
  if (params.upload) openUpload(params.upload, () => go(...without(address(), "upload"), { replace: true }));
  else closeUpload();
}

function markCurrent() {
  for (const item of document.querySelectorAll("#views a")) {
    setAttribute(item, "aria-current", item.dataset.view === current.name && "page");
  }
}

function without([name, params], key) {
  const { [key]: _, ...rest } = params;
  return [name, rest];
}

function showFrame() {
  const { person } = session;
  fill(document.getElementById("views"), person && Object.entries(VIEWS).map(([name, { title }]) =>
    element("a", { href: link(name), "data-view": name }, icon(name), element("span", {}, title))));
  markCurrent();
  const role = person && (mayChange() ? isUnlocked() ? "may change" : "locked" : "may look");
  fill(document.getElementById("person"),
    person && element("span", { class: "who" }, icon(mayChange() && isUnlocked() ? "allow" : "lock"),
      element("bdi", {}, person.name), element("span", { class: "quiet" }, `, ${role}`)),
    person && mayChange() && !isUnlocked() && button("Unlock", { class: "small", onclick: unlock }),
    person && button("Sign out", { class: "small plain", onclick: leave }), themeButton());
}

/** The theme that was chosen by hand. A browser may refuse to keep anything. */
function keptTheme() {
  try {
    return localStorage.getItem("theme") ?? "auto";
  } catch {
    return "auto";
  }
}

function themeButton() {
  const theme = keptTheme();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  return button(`Theme: ${theme}`, { class: "small plain", onclick: () => {
    localStorage.setItem("theme", next);
    applyTheme();
    showFrame();
    document.querySelector("#person button:last-child").focus();
  } });
}

function applyTheme() {
  const theme = keptTheme();
  setAttribute(document.documentElement, "data-theme", theme !== "auto" && theme);
}

// Signing in.

/** A field for a token. Password managers may keep it; the page does not. */
function tokenField() {
  return element("input", { type: "password", name: "token", autocomplete: "current-password", required: true,
    spellcheck: "false" });
}

function leaveView() {
  current.view?.unmount();
  current = { name: null, view: null };
}

function closeQuestions(which = "") {
  for (const dialog of document.querySelectorAll(`dialog.question${which}`)) dialog.close();
}

function showSignIn(reason) {
  leaveView();
  document.title = "Sign in · Sluice";
  const typed = tokenField();
  const result = element("p", { class: "result", role: "alert" });
  const form = element("form", { class: "sign-in" }, element("h1", {}, "Sign in"),
    field("Token", typed, "one of control.tokens in the configuration"), result,
    button("Sign in", { type: "submit", class: "primary" }),
    element("p", { class: "quiet" }, "Or run ", element("code", {}, "sluice web"),
      " on the machine, and open the link that it prints within a minute."));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = typed.value;
    typed.value = "";
    if (!given) return;
    await clearResult(result);
    try {
      await signInWithToken(given);
      start();
    } catch (failure) {
      showResult(result, failure.message, "bad");
    }
  });
  fill(main, form);
  showFrame();
  if (reason) showResult(result, reason, "bad");
  typed.focus();
}

/** What ends the open questions for a token as answered, when a link has signed the tab in meanwhile. */
const tokenQuestions = new Set();

/** Asks for the token over the present view, which stays as it is. */
function askForToken(title, reason) {
  const typed = tokenField();
  let end = null;
  return ask({
    title,
    kind: "token",
    onopen(given) {
      end = given;
      tokenQuestions.add(end);
    },
    close: () => tokenQuestions.delete(end),
    body: [element("p", {}, reason), field("Token", typed, "or open a new link of sluice web in this tab")],
    confirm: title,
    async submit(place) {
      try {
        await signInWithToken(typed.value);
        return true;
      } catch (failure) {
        showResult(place, failure.message, "bad");
        return false;
      }
    },
  });
}

async function unlock() {
  const isDone = await askForToken("Unlock",
    "After a reload the page may look, and needs the token again for changes.");
  if (isDone) {
    if (current.role !== session.person.role) start();
    else showFrame();
    announce(mayChange() ? "Unlocked." : "Signed in with the role view.");
  }
  return isDone && mayChange();
}
unlocking.ask = unlock;

let isAsking = false;
let hasBegun = false;

/** A session ends while the page is in use: the view stays, and goes on after signing in again. */
session.onlost = async (failure) => {
  if (isAsking || !session.person) return;
  isAsking = true;
  showFrame();
  hasBegun = false;
  const isDone = await askForToken("Sign in again", `The session is over: ${failure.message.replace(/\.$/, "")}.`);
  isAsking = false;
  if (!isDone) leaveLocally("Sign in to go on.");
  // A link that answered the question has begun by itself.
  else if (!hasBegun) start();
};

async function leave() {
  try {
    await signOut();
    leaveLocally();
  } catch (failure) {
    showNotice(`You are still signed in: ${failure.message}`);
  }
}

function leaveLocally(reason) {
  hideNotice();
  session.person = null;
  end();
  closeQuestions();
  closeUpload();
  showConnection();
  showSignIn(reason);
}

function start() {
  clearTimeout(showUnreachable.timer);
  hasBegun = true;
  // Another role has other controls.
  if (current.role !== session.person.role) {
    closeQuestions();
    closeUpload();
    leaveView();
  }
  showFrame();
  show();
  begin();
}

/** The code of `sluice web` leaves the address bar at once. */
async function arrive(before = link("now")) {
  const code = /^#code=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (code) window.history.replaceState(null, "", before);
  clearTimeout(showUnreachable.timer);
  try {
    if (code) await signInWithCode(code);
    else await resumeSession();
    for (const endAsDone of tokenQuestions) endAsDone();
    start();
  } catch (failure) {
    const isOver = failure.status === 401;
    const reason = code ? `The link ${isOver ? "is no longer good" : "did not work"}: ${failure.message}`
      : isOver ? null : failure.message;
    // A link may have signed the tab in while the page asked for an earlier session.
    if (session.person) {
      if (code) showNotice(reason);
    } else if (failure.status === 0 || failure.status >= 500) showUnreachable(failure);
    else showSignIn(reason);
  }
}

function showUnreachable(failure) {
  leaveView();
  fill(main, element("div", { class: "empty" }, icon("lost"), element("h1", {}, "The daemon does not answer"),
    element("p", {}, failure.message), element("p", { class: "quiet" }, "The page tries again every few seconds."),
    button("Try now", { icon: "retry", onclick: () => arrive() })));
  showFrame();
  tryAgainLater();
}

/** A hidden tab asks nothing. */
function tryAgainLater() {
  clearTimeout(showUnreachable.timer);
  showUnreachable.timer = setTimeout(() => (document.hidden ? tryAgainLater() : arrive()), 5000);
}

// The connection.

function showConnection() {
  const box = document.getElementById("connection");
  const { lost, statusFailure } = state;
  document.body.classList.toggle("lost", Boolean(lost));
  const problem = lost ?? (statusFailure && { reason: statusFailure.message });
  box.hidden = !problem;
  if (!problem) {
    if (box.dataset.kind) announce("Connected again.");
    delete box.dataset.kind;
    fill(box);
    return;
  }
  const kind = lost ? `lost ${lost.since.getTime()}` : "status";
  if (box.dataset.kind !== kind) {
    const isFocused = box.contains(document.activeElement);
    box.dataset.kind = kind;
    const again = button("Try now", { class: "small", onclick: () => (state.lost ? retryConnection()
      : refreshStatus()) });
    const words = element("span", {}, lost ? ["No connection to the daemon since ", time(lost.since, { seconds: true }),
      ". What you see is from then."] : "The daemon has no status: ");
    announce(lost ? "No connection to the daemon." : `The daemon has no status: ${problem.reason}`);
    // The countdown is not spoken: a live region would repeat it each second.
    box.reason = element("span", { class: "quiet", "aria-hidden": "true" });
    fill(box, icon("lost"), words, box.reason, again);
    if (isFocused) again.focus();
  }
  countDown();
}

function countDown() {
  const { lost, statusFailure } = state;
  const { reason } = document.getElementById("connection");
  if (!reason) return;
  if (!lost) reason.textContent = statusFailure?.message ?? "";
  else {
    const left = Math.max(0, (lost.next - Date.now()) / 1000);
    reason.textContent = `${lost.reason}; ${left > 0.5 ? `next try in ${duration(left)}` : "trying now"}`;
  }
}

// Dropped files.

function isFiles(event) {
  return session.person && mayChange() && [...(event.dataTransfer?.types ?? [])].includes("Files");
}

function listenForDrops() {
  const cover = document.getElementById("drop");
  addEventListener("dragover", (event) => {
    if (!isFiles(event)) return;
    event.preventDefault();
    cover.hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) cover.hidden = true;
  });
  addEventListener("drop", (event) => {
    cover.hidden = true;
    if (!isFiles(event)) return;
    event.preventDefault();
    const dropped = [...event.dataTransfer.items].filter((item) => item.kind === "file").map((item) =>
      ({ file: item.getAsFile(), isFolder: item.webkitGetAsEntry?.()?.isDirectory }));
    const folders = dropped.filter((each) => each.isFolder).map((each) => each.file.name);
    const note = folders.length > 0
      && `Folders cannot be added here: ${folders.join(", ")}. Drop their files, or let the daemon watch the folder.`;
    const chosen = dropped.filter((each) => !each.isFolder).map((each) => each.file);
    if (chosen.length) addDialog(chosen, note);
    else if (note) showNotice(note);
  });
}

applyTheme();
subscribe("connection", showConnection);
subscribe("status", showConnection);
listenForDrops();
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", (event) => {
  if (location.hash.startsWith("#code=")) {
    arrive(new URL(event.oldURL).hash || link("now"));
    return;
  }
  // A question belongs to the view that it was asked over; one for a token, and what was begun already, to the tab.
  closeQuestions(":not([data-busy], .token)");
  show();
});
setInterval(() => {
  if (document.hidden) return;
  refreshRelative();
  if (state.lost) countDown();
}, 1000);
arrive();
