// SPDX-License-Identifier: GPL-3.0-or-later
// Shows what /events tells. Subjects, domains and queue ids come from outside: all text goes in by textContent.
"use strict";

const $ = (id) => document.getElementById(id);
const values = {};
let paused = false;

// Numbers and times, for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const number = (n) => (n === null || n === undefined ? "" : whole.format(n));
const two = (n) => String(n).padStart(2, "0");

function share(ratio) {
  if (ratio === null || ratio === undefined) return "";
  if (ratio === 0) return "0";
  return ratio < 1e-4 ? ratio.toExponential(1) : (100 * ratio).toPrecision(3).replace(/\.?0+$/, "") + " %";
}

function bytes(n) {
  let unit = 0;
  while (n >= 1000 && unit < 4) {
    n /= 1000;
    unit += 1;
  }
  return `${n >= 100 || unit === 0 ? Math.round(n) : n.toFixed(1)} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
}

function span(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

const ago = (seconds) => (seconds === null || seconds === undefined ? "never" : `${span(seconds)} ago`);

function clock(seconds) {
  const at = new Date(seconds * 1000);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return at.toDateString() === new Date().toDateString() ? time : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

// Tables: rows stay what they are while their key does, so that whoever is on one with the keyboard stays there.

function text(cell, value, name = "") {
  if (cell.textContent !== value) cell.textContent = value;
  if (cell.className !== name) cell.className = name;
}

function button(cell, value, act) {
  let inner = cell.firstElementChild;
  if (!inner) {
    inner = document.createElement("button");
    inner.type = "button";
    inner.className = "link";
    cell.append(inner);
  }
  if (inner.textContent !== value) inner.textContent = value;
  inner.onclick = act;
}

function gauge(cell, ratio) {
  if (!cell.firstElementChild) {
    cell.className = "number";
    cell.append(document.createElement("meter"), document.createElement("span"));
  }
  const [meter, label] = cell.children;
  meter.value = ratio;
  meter.setAttribute("aria-label", "fill");
  label.textContent = share(ratio);
}

function rows(table, items, key, fill) {
  const body = table.tBodies[0];
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const focused = document.activeElement;
  const known = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  items.forEach((item, i) => {
    const name = String(key(item));
    let row = known.get(name);
    known.delete(name);
    if (!row) {
      row = document.createElement("tr");
      row.dataset.key = name;
      for (const column of names) row.insertCell().dataset.name = column;
    }
    if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] || null);
    fill(row.cells, item);
  });
  for (const row of known.values()) row.remove();
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  table.hidden = items.length === 0;
  const empty = table.parentElement.querySelector(".empty");
  if (empty) empty.hidden = items.length > 0;
}

// Sections.

const shown = {
  overview(overview) {
    text($("role"), overview.role);
    document.title = `bulkmark ${overview.role} · ${location.host}`;
    const is_milter = overview.role === "milter";
    $("s-bulk").hidden = $("s-recent").hidden = !is_milter;
    text($("h-verdicts"), is_milter ? "Messages" : "Reported signatures");
    tiles();
  },

  status(status) {
    const daemon = status.daemon;
    if (daemon) {
      text($("where"), `${location.host} · ${daemon.version} · up for ${span(daemon["uptime-seconds"])}`);
      links(daemon);
      clients(daemon);
    }
    ledger(status);
    tiles();
  },

  minutes: charts,
  minute: charts,

  bulk(list) {
    const now = Date.now() / 1000;
    rows($("bulk"), list, (entry) => entry.signature, (cells, entry) => {
      button(cells[0], entry.signature, () => filter(entry.signature));
      text(cells[1], number(entry.body), "number");
      text(cells[2], number(entry.near), "number");
      text(cells[3], number(entry.messages), "number");
      text(cells[4], clock(entry.first), "number");
      text(cells[5], ago(Math.max(0, Math.round(now - entry.last))), "number");
      text(cells[6], entry.domains.map((domain) => domain || "<>").join(", ") + (entry["more-domains"] ? ", …" : ""));
      text(cells[7], entry.subject ?? (entry["subject-hash"] ? `#${entry["subject-hash"]}` : ""), entry.subject ? "" : "code");
    });
  },

  recent(list) {
    const wanted = $("filter").value.trim().toLowerCase();
    const has = (entry) => [entry.id, entry.signature, entry.mailing, entry.domain, entry.verdict, entry.action, entry.reason]
      .some((value) => value && value.toLowerCase().includes(wanted));
    const found = list.filter((entry) => wanted === "" || has(entry));
    rows($("recent"), found, (entry) => `${entry.at} ${entry.id} ${entry.ms}`, (cells, entry) => {
      text(cells[0], clock(entry.at), "number");
      text(cells[1], entry.id, "code");
      text(cells[2], entry.reason ? `${entry.verdict} (${entry.reason})` : entry.verdict, `verdict ${entry.verdict}`);
      text(cells[3], number(entry.body), "number");
      text(cells[4], number(entry.near), "number");
      text(cells[5], entry.domain || "<>");
      text(cells[6], entry.action);
      text(cells[7], entry.ms.toFixed(1), "number");
      text(cells[8], entry.signature ?? "", "code");
    });
    text($("recent").parentElement.querySelector(".empty"), list.length ? "None of the last has that." : "No message yet.", "empty");
  },

  config(config) {
    text($("config"), JSON.stringify(config, null, 2));
  },
};

function filter(what) {
  $("filter").value = what;
  shown.recent(values.recent);
  $("filter").focus();
}

const slices = () => values.status?.daemon?.ledger.slices ?? [];
const sum = (list) => list.reduce((total, n) => total + n, 0);

function tiles() {
  const { overview, status } = values;
  if (!overview || !status) return;
  const fills = slices().map((slice) => slice.fill ?? 0);
  const list = [
    ["judged since the start", number(overview.judged)],
    ["mean time to a verdict", overview.judged ? `${(1000 * overview["judging-seconds"] / overview.judged).toFixed(1)} ms` : "–"],
    ["false bulk (estimate)", share(sum(slices().map((slice) => slice["false-bulk"] ?? 0)))],
    ["fullest filter", share(Math.max(0, ...fills))],
    ["open connections", number(overview.connections)],
    ["disk left", status.disk ? bytes(status.disk.available) : "–"],
  ];
  const is_milter = overview.role === "milter";
  const links = status.daemon?.links ?? [];
  if (is_milter && links.length) list.push(["waiting reports", number(status.daemon.ledger.spool)]);
  const tiles = $("tiles");
  list.slice(is_milter ? 0 : 2).forEach(([name, value], i) => {
    let tile = tiles.children[i];
    if (!tile) {
      tile = document.createElement("div");
      tile.append(document.createElement("dt"), document.createElement("dd"));
      tiles.append(tile);
    }
    text(tile.children[0], name);
    text(tile.children[1], value);
  });
  problems(overview, status);
}

function problems(overview, status) {
  const found = [];
  if (!overview.available) found.push("The ledger cannot be read or written: nothing is counted.");
  for (const link of status.daemon?.links ?? []) if (link.error) found.push(`${link.url}: ${link.error}`);
  const lost = [["reports-dropped", "reports were dropped, since no server took them"], ["log-lines-dropped", "log lines were lost"], ["reloads-failed", "reloads failed: an older configuration may be in force"]];
  for (const [name, what] of lost) if (overview[name]) found.push(`${number(overview[name])} ${what}.`);
  const list = $("problems");
  list.hidden = found.length === 0;
  if (list.textContent !== found.join("")) {
    list.replaceChildren(...found.map((what) => {
      const item = document.createElement("li");
      item.textContent = what;
      return item;
    }));
  }
}

function ledger(status) {
  const disk = status.disk ? ` The file has ${bytes(status.disk.ledger)}; ${bytes(status.disk.available)} of ${bytes(status.disk.size)} are left on its disk.` : "";
  text($("ledger-note"), `False bulk is the estimated chance that a new message shows ${status.threshold}.${disk}`, "note");
  rows($("ledger"), slices(), (slice) => `${slice.window} ${slice.slice} ${slice.counted}`, (cells, slice) => {
    text(cells[0], new Date(slice.window * 1000).toISOString().slice(0, 16).replace("T", " ") + (slice.slice ? ` (${slice.slice + 1})` : ""), "number");
    text(cells[1], slice.counted === "own" ? "here" : "elsewhere");
    text(cells[2], number(slice.signatures), "number");
    text(cells[3], number(slice.capacity), "number");
    gauge(cells[4], slice.fill ?? 0);
    text(cells[5], share(slice["false-bulk"]), "number");
    text(cells[6], bytes(slice.memory), "number");
  });
}

function links(daemon) {
  $("s-links").hidden = daemon.links.length === 0;
  text($("h-links"), daemon.role === "server" ? "Peers" : "Upstream servers");
  rows($("links"), daemon.links, (link) => link.url, (cells, link) => {
    text(cells[0], link.url, "code");
    text(cells[1], link.error ?? (link.active ? "followed" : "in reserve"), link.error ? "wrong" : "");
    text(cells[2], link.behind === null ? "does not answer" : link.behind ? `${number(link.behind)} updates` : "up to date", link.behind === null ? "wrong" : "");
    text(cells[3], ago(link["heard-seconds-ago"]), "number");
    text(cells[4], bytes(link["bytes-in"]), "number");
    text(cells[5], bytes(link["bytes-out"]), "number");
  });
}

function clients(daemon) {
  const list = daemon.clients ?? [];
  $("s-clients").hidden = list.length === 0;
  rows($("clients"), list, (client) => client.name, (cells, client) => {
    text(cells[0], client.name);
    text(cells[1], client.role);
    text(cells[2], number(client.signatures), "number");
    text(cells[3], number(client.batches), "number");
    text(cells[4], ago(client["heard-seconds-ago"]), "number");
    text(cells[5], number(client.refused), client.refused ? "number wrong" : "number");
    text(cells[6], client["last-refusal"] ?? "");
  });
}

// Charts: stacked bars, the sum of all kinds behind, each kind before the sum of those below it.

const drawn = {};

function counts_of(name) {
  const series = values.minutes.series.find((series) => series.name === name);
  const now = values.minute.counts[values.minutes.series.indexOf(series)];
  return [...series.counts, now];
}

function charts() {
  if (!values.minutes || !values.minute) return;
  const names = values.minutes.series.map((series) => series.name);
  const counts = Object.fromEntries(names.map((name) => [name, counts_of(name)]));
  const end = values.minute.at;
  draw("hour", names, counts, 60, 1, end);
  draw("day", names, counts, 24 * 60, 15, end);
  const total = (name, minutes) => sum(counts[name].slice(-minutes));
  rows($("totals"), names, (name) => name, (cells, name) => {
    text(cells[0], name, `verdict ${name}`);
    text(cells[1], number(total(name, 60)), "number");
    text(cells[2], number(total(name, 24 * 60)), "number");
  });
  for (const [id, minutes, what] of [["hour", 60, "last hour"], ["day", 24 * 60, "last day"]]) {
    $(id).setAttribute("aria-label", `${what}: ${names.map((name) => `${name} ${number(total(name, minutes))}`).join(", ")}`);
  }
}

function draw(id, names, counts, minutes, step, end) {
  const places = minutes / step;
  const times = Array.from({ length: places }, (_, i) => end - (places - 1 - i) * step * 60);
  const stepped = names.map((name) => {
    const last = counts[name].slice(-minutes);
    return times.map((_, i) => sum(last.slice(i * step, (i + 1) * step)));
  });
  let below = times.map(() => 0);
  const stacked = stepped.map((list) => (below = list.map((count, i) => count + below[i])));
  const data = [times, ...stacked.reverse()];
  if (drawn[id]) drawn[id].setData(data);
  else drawn[id] = chart($(id), [...names].reverse(), data);
}

function chart(place, names, data) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
  const bars = uPlot.paths.bars({ size: [0.9, 40], align: -1 });
  return new uPlot({
    width: Math.max(200, place.clientWidth),
    height: 210,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(4, high * 1.05)] } },
    axes: [
      { ...axis, size: 32, values: (_, ticks) => ticks.map((tick) => { const at = new Date(tick * 1000); return `${two(at.getHours())}:${two(at.getMinutes())}`; }) },
      { ...axis, size: 48, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? number(tick) : "")) },
    ],
    series: [{}, ...names.map((name) => ({ label: name, fill: colour(name), stroke: colour(name), width: 0, points: { show: false }, paths: bars }))],
  }, data, place);
}

function redraw() {
  for (const id of Object.keys(drawn)) {
    drawn[id].destroy();
    delete drawn[id];
  }
  charts();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let resizing;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(redraw, 150);
});

// The stream.

function show(name) {
  if (!paused && name in values) shown[name](values[name]);
}

function state(what, name) {
  text($("state"), what, name);
}

$("filter").addEventListener("input", () => values.recent && shown.recent(values.recent));
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", paused);
  text($("pause"), paused ? "Go on" : "Pause");
  state(paused ? "paused" : "live", paused ? "" : "live");
  Object.keys(shown).forEach(show);
});

const source = new EventSource("events");
source.onopen = () => state(paused ? "paused" : "live", paused ? "" : "live");
source.onerror = () => state("no connection; trying again …", "lost");
for (const name of Object.keys(shown)) {
  source.addEventListener(name, (event) => {
    values[name] = JSON.parse(event.data);
    show(name);
  });
}
