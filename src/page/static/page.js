// SPDX-License-Identifier: GPL-3.0-or-later
// Shows the sections that /events sends. Subjects, domains and queue ids come from outside: all text goes in by textContent.
"use strict";

const $ = (id) => document.getElementById(id);
const values = {};
let paused = false;

// Numbers and times, for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const brief = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, notation: "compact" });
const number = (n) => (n === null || n === undefined ? "" : whole.format(n));
const two = (n) => String(n).padStart(2, "0");

const round = new Intl.NumberFormat("en", { maximumSignificantDigits: 2, notation: "compact", compactDisplay: "long" });

function share(ratio) {
  if (ratio === null || ratio === undefined) return "";
  const percent = 100 * ratio;
  if (percent === 0) return "0 %";
  if (percent < 0.1) return "< 0.1 %";
  return `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

// A chance too small to matter is shown without a number.
const odds = (chance) => (chance < 1e-12 ? "next to none" : chance > 0.01 ? share(chance) : `1 in ${round.format(1 / chance)}`);

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
  return at.toDateString() === new Date().toDateString() ? time : `${day(at)} ${time}`;
}

const day = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;

// `16:08`, or the day with it.
const since = (seconds) => clock(seconds).slice(0, -3);

// Tables: a row remains the same element while its key remains, so that keyboard focus on it remains, too.

function text(cell, value, name = "") {
  if (cell.textContent !== value) cell.textContent = value;
  if (cell.className !== name) cell.className = name;
}

// A word, and the whole text where it is clicked.
function folded(cell, word, whole, name) {
  if (!cell.firstElementChild) {
    const details = document.createElement("details");
    details.append(document.createElement("summary"), document.createElement("div"));
    cell.replaceChildren(details);
  }
  const [summary, rest] = cell.firstElementChild.children;
  if (summary.textContent !== word) summary.textContent = word;
  if (rest.textContent !== whole) rest.textContent = whole;
  cell.className = name;
}

// The domains of the senders, the subject where it may be seen, and a button that shows the messages.
function mailing(cell, entry) {
  if (!cell.firstElementChild) {
    cell.className = "name whole plain";
    const [domains, subject, button] = ["div", "div", "button"].map((kind) => document.createElement(kind));
    button.type = "button";
    button.className = "link";
    cell.append(domains, subject, button);
  }
  const [domains, subject, button] = cell.children;
  names(domains, entry.domains.map((domain) => domain || "<>"), entry["more-domains"], "names");
  text(subject, entry.subject ?? (entry["subject-hash"] ? `subject #${entry["subject-hash"]}` : ""), entry.subject ? "" : "soft");
  if (button.textContent !== `${entry.signature.slice(0, 12)}…`) button.textContent = `${entry.signature.slice(0, 12)}…`;
  button.title = entry.signature;
  button.onclick = () => filter(entry.signature);
}

// Both ends of a name that is too long for a column: the end of a domain names its owner. The mouse shows all of it.
const short = (name) => (name.length > 29 ? `${name.slice(0, 8)}…${name.slice(-20)}` : name);

function name_of(cell, value, name = "name plain") {
  text(cell, short(value), name);
  cell.title = value;
}

// The client without its address, if it has a name.
const client_of = (client) => client.replace(/^([^[]+) \[.*$/, "$1");

// Names below each other: the first, and all of them under the mouse.
function names(cell, list, more, name) {
  const rest = list.length - 3;
  const shown = list.length > 3 ? [...list.slice(0, 3), more ? "and others" : `and ${rest} more`] : more ? [...list, "and others"] : list;
  cell.title = list.join("\n");
  const now = shown.join("\n");
  if (cell.dataset.names === now) return;
  cell.dataset.names = now;
  cell.className = name;
  cell.replaceChildren(...shown.map((value) => {
    const line = document.createElement("span");
    line.textContent = short(value);
    return line;
  }));
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

const phone = matchMedia("(max-width: 46rem)");
const whole_list = { bulk: false, "user-reports": false, policies: false, recent: false };

// The first entries of a list, or all on request.
function first(id, list, most) {
  const button = $(`more-${id}`);
  button.hidden = list.length <= most;
  text(button, whole_list[id] ? "Show fewer" : `Show all ${list.length}`);
  return whole_list[id] ? list : list.slice(0, most);
}

// Columns that have nothing in any row are left out.
function without(table, column, empty) {
  for (const row of [table.tHead.rows[0], ...table.tBodies[0].rows]) if (row.cells[column]) row.cells[column].hidden = empty;
}

const host_of = (url) => {
  try {
    return new URL(url).hostname;
  } catch {
    return url;
  }
};

const shown = {
  overview(overview) {
    text($("host"), overview.host);
    document.title = `${overview.host} · bulkmark ${overview.role}`;
    const is_milter = overview.role !== "server";
    $("s-bulk").hidden = $("s-recent").hidden = !is_milter;
    text($("h-verdicts"), is_milter ? "Messages" : "Reported signatures");
    tiles();
  },

  status(status) {
    const daemon = status.daemon;
    if (daemon) {
      text($("where"), `bulkmark ${daemon.role} ${daemon.version} · up for ${span(daemon["uptime-seconds"])}`);
      links(daemon);
      fleet(daemon.fleet);
      members(daemon.fleet);
      clients(daemon);
      interfaces(daemon);
    }
    ledger(status);
    tiles();
  },

  minutes: charts,
  minute: charts,
  hours: charts,
  hour: charts,

  bulk(list) {
    const now = Date.now() / 1000;
    const table = $("bulk");
    rows(table, first("bulk", list, phone.matches ? 6 : 12), (entry) => entry.signature, (cells, entry) => {
      mailing(cells[0], entry);
      text(cells[1], number(entry.body), "number");
      text(cells[2], number(entry.near), "number");
      text(cells[3], number(entry.messages), "number");
      text(cells[4], Object.entries(entry.done).map(([what, count]) => `${what} ${number(count)}`).join(", "), "done plain");
      text(cells[5], ago(Math.max(0, Math.round(now - entry.last))), "number");
      cells[5].title = `first at ${clock(entry.first)}`;
      names(cells[6], [...new Set(entry.clients.map(client_of))], entry["more-clients"], "names");
      text(cells[7], entry.suggestion ?? "", "code");
    });
    without(table, 6, !values.overview?.clients);
    without(table, 7, !list.some((entry) => entry.suggestion));
  },

  "user-reports"(list) {
    $("s-user-reports").hidden = list.length === 0;
    const now = Date.now() / 1000;
    const threshold = values.config?.thresholds?.spam;
    rows($("user-reports"), first("user-reports", list, phone.matches ? 4 : 8), (said) => said.mailing, (cells, said) => {
      text(cells[0], said.subject || `${said.mailing.slice(0, 12)}…`, said.subject ? "name whole plain" : "code fixed whole plain");
      cells[0].title = said.mailing;
      text(cells[1], said.weight.toLocaleString("en", { maximumFractionDigits: 3 }), said.weight >= threshold ? "number wrong" : "number");
      text(cells[2], number(said.spam), "number");
      text(cells[3], number(said["not-spam"]), "number");
      text(cells[4], ago(Math.max(0, Math.round(now - said.last))), "number");
      cells[4].title = `first at ${clock(said.first)}`;
    });
  },

  policies(list) {
    $("s-policies").hidden = list.length === 0;
    rows($("policies"), first("policies", list, phone.matches ? 6 : 12), (entry) => entry.policy, (cells, entry) => {
      name_of(cells[0], entry.policy);
      text(cells[1], number(entry.messages), "number");
      text(cells[2], number(entry.bulk), "number");
      text(cells[3], number(entry.spam), "number");
      text(cells[4], Object.entries(entry.done).map(([what, count]) => `${what} ${number(count)}`).join(", "), "done plain");
    });
  },

  recent(list) {
    const wanted = $("filter").value.trim().toLowerCase();
    const has = (entry) => [entry.id, entry.signature, entry.mailing, entry.domain, entry.verdict, entry.action, entry.would && `would ${entry.would}`, entry.reason, entry.client, ...entry.recipients]
      .some((value) => value && value.toLowerCase().includes(wanted));
    const found = list.filter((entry) => wanted === "" || has(entry));
    const table = $("recent");
    rows(table, first("recent", found, wanted ? 60 : phone.matches ? 6 : 12), (entry) => `${entry.at} ${entry.id} ${entry.ms}`, (cells, entry) => {
      text(cells[0], clock(entry.at), "number plain");
      text(cells[1], entry.id, "code fixed plain");
      const because = [entry.would ? `would ${entry.would}` : entry.action, entry.reason, entry.spam && `called spam by ${entry.spam}`].filter((what) => what).join(", ");
      text(cells[2], because ? `${entry.verdict} (${because})` : entry.verdict, `verdict ${entry.verdict}`);
      text(cells[3], number(entry.body), "number");
      text(cells[4], number(entry.near), "number");
      name_of(cells[5], entry.domain || "<>");
      name_of(cells[6], entry.client ? client_of(entry.client) : "", "name");
      cells[6].title = entry.client ?? "";
      names(cells[7], entry.recipients, entry.nrcpt > entry.recipients.length, "names");
      text(cells[8], entry.ms.toFixed(1), "number");
      text(cells[9], entry.signature ? `${entry.signature.slice(0, 12)}…` : "", "code fixed");
      cells[9].title = entry.signature ?? "";
    });
    without(table, 6, !values.overview?.clients);
    without(table, 7, !values.overview?.recipients);
    text($("recent").parentElement.querySelector(".empty"), list.length ? "None of the last messages matches." : "No message yet.", "empty");
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

// The number of messages of a kind in the last day.
const of_day = (name) => sum(counts_of("minutes", "minute", name));

function tiles() {
  const { overview, status } = values;
  if (!overview || !status || !values.minutes || !values.minute) return;
  const links = status.daemon?.links ?? [];
  const disk = ["disk left", status.disk ? bytes(status.disk.available) : "–", "", Boolean(status.disk?.short)];
  const is_milter = overview.role !== "server";
  let list;
  if (is_milter) {
    const all = sum(values.minutes.series.map((series) => of_day(series.name)));
    const [bulk, spam, unknown] = ["bulk", "spam", "unknown"].map(of_day);
    const part = (count) => (all ? share(count / all) : "");
    list = [
      ["messages in a day", number(all), ""],
      ["bulk", number(bulk), part(bulk)],
      ...(spam ? [["spam", number(spam), part(spam)]] : []),
      ["not judged", number(unknown), unknown ? part(unknown) : "", unknown > all / 100],
      ["mean time to a verdict", overview.judged ? `${(1000 * overview["judging-seconds"] / overview.judged).toFixed(1)} ms` : "–", ""],
      ["open connections", number(overview.connections), ""],
      disk,
    ];
    if (links.length) list.push(["reports that wait", number(status.daemon.ledger.spool), ""]);
  } else {
    list = [
      ["signatures in a day", number(of_day("signatures")), ""],
      ["clients", number((status.daemon?.clients ?? []).length), ""],
      ["open connections", number(overview.connections), ""],
      ["fullest filter", share(Math.max(0, ...slices().map((slice) => slice.fill ?? 0))), ""],
      disk,
    ];
  }
  const tiles = $("tiles");
  while (tiles.children.length > list.length) tiles.lastChild.remove();
  list.forEach(([name, value, small, is_wrong], i) => {
    let tile = tiles.children[i];
    if (!tile) {
      tile = document.createElement("div");
      const value = document.createElement("dd");
      value.append(document.createElement("span"), " ", document.createElement("small"));
      tile.append(document.createElement("dt"), value);
      tiles.append(tile);
    }
    text(tile.children[0], name);
    text(tile.children[1].children[0], value, is_wrong ? "wrong" : "");
    text(tile.children[1].children[1], small);
  });
  problems(overview, status, links);
}

// Whether the error is a server's refusal.
const refuses = (link) => /\b4\d\d [A-Z]/.test(link.error);

// The problems with other servers as one sentence; null if there are none.
function outage(links, overview) {
  const what = links.filter((link) => link.error).map((link) => {
    const host = host_of(link.url);
    const name = links.filter((other) => host_of(other.url) === host).length > 1 ? new URL(link.url).host : host;
    if (/^(other clock|the log's disk)/.test(link.error)) return link.error;
    const heard = link["heard-seconds-ago"];
    const from = heard === null || heard === undefined ? overview.started : Date.now() / 1000 - heard;
    return refuses(link) ? `${name} refuses us` : `${name} is down since ${since(from)}`;
  });
  if (what.length === 0) return null;
  const told = what.join(", and ");
  if (overview.role === "server") return `${told}.`;
  const other = links.find((link) => !link.error);
  return other ? `${told}; ${host_of(other.url)} is followed.` : `${told}, counting alone.`;
}

function problems(overview, status, links) {
  const found = [];
  if (!overview.available) found.push("The ledger cannot be read or written: nothing is counted.");
  const pause = overview.pause;
  if (pause) found.push(`Paused ${pause.until ? `until ${since(pause.until)}` : "until bulkmark resume"} by ${pause.by}${pause.reason ? `: ${pause.reason}` : ""}. Nothing is refused.`);
  if (status.disk?.short) found.push(`Of the ledger's disk, ${bytes(status.disk.available)} of ${bytes(status.disk.size)} are left.`);
  const down = outage(links, overview);
  if (down) found.push(down);
  const hook = status.daemon?.webhook;
  if (hook?.error) found.push(`The webhook at ${hook.host} has accepted no event since ${since(hook["failing-since"])}: ${hook.error}.`);
  for (const advice of status.daemon?.fleet?.advice ?? []) found.push(`${advice[0].toUpperCase()}${advice.slice(1)}.`);
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
  const chance = sum(slices().map((slice) => slice["false-bulk"] ?? 0));
  const bulk = status.daemon?.ledger.bulk;
  const apart = bulk ? ` The list of bulk has ${number(bulk.signatures)} signatures, in ${bytes(bulk.memory)}.` : "";
  text($("ledger-note"), `The chance that a new message shows ${status.threshold} by mistake: ${odds(chance)}.${apart}${disk}`, "note");
  rows($("ledger"), slices(), (slice) => `${slice.window} ${slice.slice} ${slice.counted}`, (cells, slice) => {
    const from = new Date(slice.window * 1000).toISOString();
    text(cells[0], from.slice(0, from.endsWith("T00:00:00.000Z") ? 10 : 16).replace("T", " ") + (slice.slice ? ` (${slice.slice + 1})` : ""), "number plain");
    text(cells[1], slice.counted === "own" ? "here" : "elsewhere", "fixed plain");
    text(cells[2], `${number(slice.signatures)} of ${brief.format(slice.capacity)}`.trim(), "number");
    gauge(cells[3], slice.fill ?? 0);
    text(cells[4], bytes(slice.memory), "number");
  });
}

function links(daemon) {
  $("s-links").hidden = daemon.links.length === 0;
  text($("h-links"), daemon.fleet ? "Log of the fleet" : daemon.role === "server" ? "Peers" : "Upstream servers");
  rows($("links"), daemon.links, (link) => link.url, (cells, link) => {
    name_of(cells[0], host_of(link.url), "name plain whole");
    cells[0].title = link.url;
    if (link.error) {
      folded(cells[1], refuses(link) ? "refuses us" : "fails", link.error.replace(`${link.url}: `, ""), "wrong whole");
    } else {
      text(cells[1], link.active ? "followed" : "in reserve");
    }
    text(cells[2], link.behind === null ? "does not answer" : link.behind ? `${number(link.behind)} ${daemon.fleet ? "steps" : "updates"}` : "up to date", link.behind === null ? "wrong fixed" : "fixed");
    text(cells[3], ago(link["heard-seconds-ago"]), "number");
    text(cells[4], bytes(link["bytes-in"]), "number");
    text(cells[5], bytes(link["bytes-out"]), "number");
  });
}

function fleet(fleet) {
  $("s-fleet").hidden = !fleet;
  if (!fleet) return;
  const said = [`${fleet.aggregates ? "An aggregator" : "A milter"}, ${fleet["in-step"] ? "in step with the log" : "not in step with the log"}: step ${number(fleet.version)} of epoch ${number(fleet.epoch)}`];
  if (fleet["stepped-seconds-ago"] !== null) said[0] += `, ${ago(fleet["stepped-seconds-ago"])}`;
  if (fleet["batches-behind"]) said.push(`${number(fleet["batches-behind"])} batches in the log are not counted yet`);
  if (fleet.aggregates) {
    const others = fleet.steps - fleet["steps-won"];
    said.push(`${number(fleet["steps-won"])} steps were made here since the start, ${number(others)} by other aggregators`);
  }
  text($("fleet-note"), `${said.join(". ")}.`, "note");
  rows($("fleet"), fleet.reporters ?? [], (member) => member.name, (cells, member) => {
    text(cells[0], member.name, "name plain");
    text(cells[1], number(member.batches), "number");
    text(cells[2], ago(Math.max(0, Math.round(Date.now() / 1000 - member["last-at"]))), "number");
  });
}

function members(fleet) {
  const list = fleet?.members ?? [];
  $("s-members").hidden = list.length === 0;
  rows($("members"), list, (member) => member.name, (cells, member) => {
    const waits = member["waiting-seconds"];
    text(cells[0], member.name, "name plain");
    text(cells[1], member.state, member.state === "well" ? "fixed" : "wrong fixed");
    text(cells[2], member.role.replace("-", " "), "fixed");
    text(cells[3], member.program, "fixed");
    text(cells[4], number(member.step), "number");
    text(cells[5], member["lag-seconds"] === null ? "" : span(member["lag-seconds"]), "number");
    text(cells[6], `${number(member.uncovered)}${member.uncovered && waits ? ` for ${span(waits)}` : ""}`, "number");
    text(cells[7], member.state === "absent" ? "" : ago(member["heard-seconds-ago"]), "number");
  });
  const seen = fleet?.mailings ?? [];
  $("s-mailings").hidden = seen.length === 0;
  rows($("mailings"), seen, (entry) => entry.signature, (cells, entry) => {
    text(cells[0], entry.subject ?? `${entry.signature.slice(0, 12)}…`, entry.subject ? "name plain whole" : "code plain");
    cells[0].title = entry.signature;
    text(cells[1], number(entry.count), "number");
    text(cells[2], number(entry.recipients), "number");
    text(cells[3], clock(entry.last), "number");
    names(cells[4], entry.members, false, "names");
  });
}

function clients(daemon) {
  const list = daemon.clients ?? [];
  $("s-clients").hidden = list.length === 0;
  rows($("clients"), list, (client) => client.name, (cells, client) => {
    text(cells[0], client.name, "name plain");
    const trouble = !["well", "not-heard", "unapproved"].includes(client.state);
    text(cells[1], client.state.replaceAll("-", " "), trouble ? "wrong fixed" : "fixed");
    text(cells[2], client.limits ? `partner, ${client.limits}` : client.role, "fixed");
    text(cells[3], client.version ?? "", "fixed");
    text(cells[4], number(client.today), "number");
    text(cells[5], number(client.signatures), "number");
    text(cells[6], ago(client["reported-seconds-ago"]), "number");
    text(cells[7], ago(client["heard-seconds-ago"]), "number");
    text(cells[8], number(client.refused), client.refused ? "number wrong" : "number");
    text(cells[9], client["last-refusal"] ?? "");
  });
}

function interfaces(daemon) {
  const list = daemon.interfaces ?? [];
  $("s-interfaces").hidden = list.length === 0;
  rows($("interfaces"), list, (entry) => entry.name, (cells, entry) => {
    const { counted, asked, nominated, refused, "timed-out": late } = entry.requests;
    name_of(cells[0], entry.name, "name plain");
    cells[0].title = entry.address;
    text(cells[1], entry.error ?? `open at ${entry.address}`, entry.error ? "wrong whole" : "whole");
    text(cells[2], number(entry.connections), "number");
    text(cells[3], number(counted), "number");
    text(cells[4], number(asked), "number");
    text(cells[5], number(nominated), "number");
    text(cells[6], number(refused + late), refused + late ? "number wrong" : "number");
    cells[6].title = `${number(refused)} refused, ${number(late)} did not come in time`;
  });
}

// Charts: stacked bars, the sum of all kinds behind, each kind before the sum of those below it.

const drawn = {};

// The counts before the present minute or hour, and in it.
function counts_of(before, present, name) {
  const series = values[before].series.find((series) => series.name === name);
  if (!series) return [];
  return [...series.counts, values[present].counts[values[before].series.indexOf(series)]];
}

// The beginnings of the last local days and hours, and the index of the one that each count of a list belongs to.
function spans(count, seconds, end, step) {
  const at = Array.from({ length: count }, (_, i) => end - (count - 1 - i) * seconds);
  const begin = (time) => {
    if (step) return end - Math.floor((end - time) / step) * step;
    const local = new Date(time * 1000);
    return new Date(local.getFullYear(), local.getMonth(), local.getDate()).getTime() / 1000;
  };
  const begins = at.map(begin);
  const times = [...new Set(begins)];
  return { times, places: begins.map((time) => times.indexOf(time)) };
}

function charts() {
  if (!values.minutes || !values.minute || !values.hours || !values.hour) return;
  const names = values.minutes.series.map((series) => series.name);
  const minutes = Object.fromEntries(names.map((name) => [name, counts_of("minutes", "minute", name)]));
  const hours = Object.fromEntries(names.map((name) => [name, counts_of("hours", "hour", name)]));
  const of_hour = Object.fromEntries(names.map((name) => [name, minutes[name].slice(-60)]));
  draw("hour", names, of_hour, spans(60, 60, values.minute.at, 60));
  draw("day", names, minutes, spans(24 * 60, 60, values.minute.at, 15 * 60));
  draw("month", names, hours, spans(31 * 24, 3600, values.hour.at, 0));
  const totals = (name) => [sum(of_hour[name]), sum(minutes[name]), sum(hours[name])];
  rows($("totals"), names, (name) => name, (cells, name) => {
    text(cells[0], name, `verdict ${name}`);
    totals(name).forEach((total, i) => text(cells[i + 1], number(total), "number"));
  });
  ["hour", "day", "month"].forEach((id, i) => {
    $(id).setAttribute("aria-label", `last ${id}: ${names.map((name) => `${name} ${number(totals(name)[i])}`).join(", ")}`);
  });
  tiles();
}

function draw(id, names, counts, { times, places }) {
  const stepped = names.map((name) => {
    const totals = times.map(() => 0);
    counts[name].forEach((count, i) => { totals[places[i]] += count; });
    return totals;
  });
  let below = times.map(() => 0);
  const stacked = stepped.map((list) => (below = list.map((count, i) => count + below[i])));
  const data = [times, ...stacked.reverse()];
  if (drawn[id]) drawn[id].setData(data);
  else drawn[id] = chart($(id), [...names].reverse(), data, id === "month");
}

function chart(place, names, data, by_day) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
  const bars = uPlot.paths.bars({ size: [0.9, 40], align: 1 });
  // The last bar goes on beyond its beginning.
  const step = data[0].length > 1 ? data[0][1] - data[0][0] : 60;
  const label = (tick) => {
    const at = new Date(tick * 1000);
    return by_day ? `${two(at.getMonth() + 1)}-${two(at.getDate())}` : `${two(at.getHours())}:${two(at.getMinutes())}`;
  };
  return new uPlot({
    width: Math.max(200, place.clientWidth),
    height: place.clientHeight || 180,
    padding: [8, by_day ? 22 : 12, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true, range: (_, low, high) => [low, high + step] }, y: { range: (_, low, high) => [0, Math.max(4, high * 1.05)] } },
    axes: [
      { ...axis, size: 32, values: (_, ticks) => ticks.map(label) },
      { ...axis, size: 48, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? (tick < 10000 ? number(tick) : brief.format(tick)) : "")) },
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
for (const id of ["bulk", "user-reports", "policies", "recent"]) {
  $(`more-${id}`).addEventListener("click", () => {
    whole_list[id] = !whole_list[id];
    shown[id](values[id]);
  });
}
phone.addEventListener("change", () => ["bulk", "user-reports", "policies", "recent"].forEach((id) => values[id] && shown[id](values[id])));
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
