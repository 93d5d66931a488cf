// Keeps an open page current: pieces come as server-sent events, lists are fetched again when
// something happened to them. Without it the pages work as well, they only do not move.
"use strict";

const REFRESH_MS = 2000;
// A reader of the screen is told how far it is, and not for every file.
const SAY_MS = 10000;

function showLocalTimes(root) {
  const two = (number) => String(number).padStart(2, "0");
  for (const one of root.querySelectorAll("time[datetime]")) {
    const at = new Date(one.dateTime);
    const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
    const hour = [two(at.getHours()), two(at.getMinutes()), two(at.getSeconds())].join(":");
    one.textContent = `${day} ${hour}`;
  }
}

// Puts a new element in the place of an old one; what had the focus gets it back.
function replace(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.replaceWith(fresh);
  if (focused) {
    document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

function elementOf(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

function follow(address) {
  const live = document.getElementById("live");
  const said = document.getElementById("said");
  const list = document.querySelector("[data-refresh]");
  let fetching = false;
  let wanted = "";
  let fetchedAt = 0;
  let saidAt = 0;

  function show(state, words) {
    live.hidden = false;
    live.dataset.state = state;
    if (live.textContent !== words) {
      live.textContent = words;
    }
  }

  async function refresh() {
    const place = document.querySelector("[data-refresh]");
    if (fetching || !place || place.dataset.mark === wanted) {
      return;
    }
    fetching = true;
    await new Promise((done) => setTimeout(done, Math.max(0, fetchedAt + REFRESH_MS - Date.now())));
    let fresh = null;
    try {
      const answer = await fetch(location.pathname + location.search);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      fresh = page.getElementById(place.id);
    } catch {
      // The stream of events tells when the server is back.
    }
    if (fresh) {
      showLocalTimes(fresh);
      replace(place, document.adoptNode(fresh));
    } else {
      wanted = place.dataset.mark;
    }
    fetchedAt = Date.now();
    fetching = false;
    refresh();
  }

  const source = new EventSource(address);
  source.addEventListener("open", () => show("on", "Live"));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) {
      show("off", "Not live: reload this page");
    } else {
      show("wait", "Connecting again…");
    }
  });
  source.addEventListener("signed-out", () => {
    source.close();
    show("off", "Signed out: reload this page");
  });
  source.addEventListener("piece", (event) => {
    const { id, html } = JSON.parse(event.data);
    const fresh = elementOf(html);
    const old = document.getElementById(id);
    if (old) {
      const moved = old.dataset.percent !== fresh.dataset.percent;
      replace(old, fresh);
      if (moved && Date.now() > saidAt + SAY_MS) {
        saidAt = Date.now();
        said.textContent = `${fresh.dataset.name}: ${fresh.dataset.percent} % done`;
      }
    } else {
      document.querySelector("[data-cards]")?.append(fresh);
    }
  });
  if (list) {
    source.addEventListener("changed", (event) => {
      wanted = JSON.parse(event.data).mark;
      refresh();
    });
  }
  // A page that the browser keeps for going back must not keep a connection.
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

showLocalTimes(document);
if (document.body.dataset.events) {
  follow(document.body.dataset.events);
}
