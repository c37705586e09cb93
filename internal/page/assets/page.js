"use strict";
// The page works without this. It renews the parts that name an address in data-live, every data-every seconds, and offers
// to tick all. What is fetched is a page of this server, in which everything from messages is escaped.
const renew = part => setTimeout(async () => {
  try {
    const answer = document.hidden ? null : await fetch(part.dataset.live, { cache: "no-store" });
    const fresh = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (fresh) {
      const focused = part.contains(document.activeElement) ? document.activeElement : null;
      const again = focused?.id ? "#" + focused.id : focused?.href ? `a[href="${CSS.escape(focused.getAttribute("href"))}"]` : null;
      part.replaceChildren(...fresh.childNodes);
      Object.assign(part.dataset, fresh.dataset);
      if (!fresh.dataset.live) delete part.dataset.live;
      if (again) part.querySelector(again)?.focus();
    }
  } catch { /* the server or the network is away; the next try tells */ }
  if (part.dataset.live) renew(part);
}, 1000 * part.dataset.every);
document.querySelectorAll("[data-live]").forEach(renew);

const all = document.getElementById("all");
if (all) {
  all.hidden = false;
  all.addEventListener("change", () => document.getElementsByName("sequence").forEach(box => { box.checked = all.checked; }));
}
