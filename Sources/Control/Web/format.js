// Numbers and times in words: sizes in decimal units as on the command line, times local to the viewer.

import { element } from "./dom.js";

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const number = new Intl.NumberFormat("en-GB");
const full = new Intl.DateTimeFormat("en-GB", {
  weekday: "long", day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit",
  second: "2-digit", timeZoneName: "short",
});
const dayAndMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "short" });

export const count = (value) => number.format(value ?? 0);

/** `1 file`, `12 files`. */
export const files = (value, noun = "file") => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** `9.6 GB`. */
export function bytes(value) {
  if (value === null || value === undefined) return "";
  let amount = Math.abs(value);
  let unit = 0;
  while (amount >= 999.5 && unit < UNITS.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  const digits = unit === 0 ? 0 : amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0;
  return `${value < 0 ? "-" : ""}${amount.toFixed(digits)}\u00a0${UNITS[unit]}`;
}

export const rate = (value) => (value === null || value === undefined ? "" : `${bytes(value)}/s`);

export const percent = (fraction) => {
  // An upload with bytes left is not shown as complete.
  const value = fraction >= 1 ? 100 : Math.min(99.9, (fraction ?? 0) * 100);
  return `${value < 10 && value > 0 ? value.toFixed(1) : Math.floor(value)}\u00a0%`;
};

/** `3 h 20 min`: the two largest units. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  if (whole < 600) return whole % 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole / 60} min`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** `1:02:03` for the length of a recording. */
export function clockLength(seconds) {
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] ? parts : parts.slice(1);
  return shown.map((part, index) => (index ? String(part).padStart(2, "0") : part)).join(":");
}

const two = (value) => String(value).padStart(2, "0");
export const clock = (date, withSeconds) =>
  `${two(date.getHours())}:${two(date.getMinutes())}${withSeconds ? `:${two(date.getSeconds())}` : ""}`;
export const day = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
/** `Mon 30 Nov`. */
export const dayName = (date) => `${weekday.format(date)} ${dayAndMonth.format(date)}`;
/** `30 Nov`. */
export const shortDay = (date) => dayAndMonth.format(date);
export const fullTime = (date) => full.format(date);

/** As short as possible: `22:00` today, `Tue 06:00` within six days, else `2026-12-01 06:00`. */
export function shortTime(date, withSeconds) {
  const now = new Date();
  if (day(date) === day(now)) return clock(date, withSeconds);
  if (Math.abs(date - now) < 6 * 86400e3) return `${weekday.format(date)} ${clock(date, withSeconds)}`;
  return `${day(date)} ${clock(date)}`;
}

/** A `<time>` with the full time as its title. */
export function time(text, { seconds, clockOnly } = {}) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return element("span", {}, text ?? "");
  return element("time", { datetime: date.toISOString(), title: fullTime(date) },
    clockOnly ? clock(date) : shortTime(date, seconds));
}

/** `until 22:00 (in 3 h 20 min)`. The words follow the clock: see `refreshRelative`. */
export function until(text, word = "until") {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return element("span", {}, text ?? "");
  const shown = element("time", { datetime: date.toISOString(), title: fullTime(date), "data-until": word });
  shown.textContent = untilWords(date, word);
  return shown;
}

/** `3 min ago`, which follows the clock too. */
export function ago(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return element("span", {}, text ?? "");
  const shown = element("time", { datetime: date.toISOString(), title: fullTime(date), "data-ago": "" });
  shown.textContent = agoWords(date);
  return shown;
}

function untilWords(date, word = "until") {
  const left = (date - Date.now()) / 1000;
  return left > 0 ? `${word} ${shortTime(date)} (in ${duration(left)})` : `${word} ${shortTime(date)}`;
}

function agoWords(date) {
  const passed = (Date.now() - date) / 1000;
  if (passed < 5) return "just now";
  return passed < 6 * 86400 ? `${duration(passed)} ago` : shortTime(date);
}

/** Brings the words of all times on the page up to date. */
export function refreshRelative(root = document) {
  for (const node of root.querySelectorAll("time[data-until], time[data-ago]")) {
    const date = new Date(node.dateTime);
    const words = node.dataset.until === undefined ? agoWords(date) : untilWords(date, node.dataset.until);
    if (node.textContent !== words) node.textContent = words;
  }
}
