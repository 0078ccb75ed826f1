/** The list of runs, brought up to date by asking the server for the page anew: it alone filters, counts and writes rows. */
import { language, t } from "../i18n/language";
import { translateStatic } from "../i18n/static";
import { labelTimes } from "../data/moments";

const PARTS = ["runs", "week", "num-runs", "num-targets"] as const;

/** The two runs that the reader has chosen; they stay chosen when the list shows others. */
export class Choice {
  private readonly chosen = new Map<"a" | "b", string>();

  /** Take note of what is chosen in the list. */
  read(root: ParentNode): void {
    for (const side of ["a", "b"] as const) {
      const picked = root.querySelector<HTMLInputElement>(`input[type=radio][name=${side}]:checked`);
      if (picked !== null) this.chosen.set(side, picked.value);
    }
  }

  /** Both sides must be chosen before they can be compared. */
  guard(root: ParentNode): void {
    const button = root.querySelector<HTMLButtonElement>("#compare button");
    if (button === null) return;
    button.disabled = !["a", "b"].every((side) => root.querySelector(`input[name=${side}]:is(:checked, [type=hidden])`) !== null);
    button.title = button.disabled ? t("Choose one run as A and one as B in the list.") : "";
  }

  /** Choose the same again in a new list; what it does not show travels unseen. */
  restore(root: ParentNode): void {
    const form = root.querySelector("#compare");
    for (const [side, id] of this.chosen) {
      const radios = [...root.querySelectorAll<HTMLInputElement>(`input[type=radio][name=${side}]`)];
      const shown = radios.find(({ value }) => value === id);
      if (shown !== undefined) shown.checked = true;
      else if (form !== null) {
        for (const radio of radios) radio.required = false;
        const unseen = Object.assign(document.createElement("input"), { type: "hidden", name: side, value: id });
        form.append(unseen);
        // A choice in the list takes its place.
        for (const radio of radios) radio.addEventListener("change", () => unseen.remove());
      }
    }
  }
}

/** Put the list of a page that was fetched in the place of the one in view; returns the ids that were not there before. */
export function replaceList(current: Document, fetched: Document, choice: Choice): string[] {
  const before = new Set(idsOf(current));
  const focused = current.activeElement;
  const key = focused?.closest("#runs") ? keyOf(focused) : null;
  choice.read(current);
  for (const id of PARTS) {
    const [old, fresh] = [current.getElementById(id), fetched.getElementById(id)];
    if (old === null || fresh === null) continue;
    const kept = scrolled(old);
    old.replaceChildren(...[...fresh.childNodes].map((node) => current.importNode(node, true)));
    translateStatic(old, language());
    kept(old);
  }
  choice.restore(current);
  choice.guard(current);
  labelTimes(current);
  if (key !== null) current.querySelector<HTMLElement>(key)?.focus({ preventScroll: true });
  return idsOf(current).filter((id) => !before.has(id));
}

/** The ids of the runs in view. */
export function idsOf(root: ParentNode): string[] {
  return [...root.querySelectorAll<HTMLElement>("tr[data-run]")].map((row) => row.dataset["run"] ?? "");
}

/** How to find an element again once its list was replaced. */
function keyOf(element: Element): string | null {
  const row = element.closest<HTMLElement>("tr[data-run]")?.dataset["run"];
  const within = row === undefined ? "#runs" : `tr[data-run="${CSS.escape(row)}"]`;
  const name = element.getAttribute("name");
  if (name !== null) return `${within} [name="${CSS.escape(name)}"]`;
  const cell = element.closest("td");
  if (cell !== null && cell.className !== "") return `${within} td.${CSS.escape(cell.className)} a`;
  return element.matches(".scroll") ? "#runs .scroll" : null;
}

/** How far the table was scrolled aside, to be done again. */
function scrolled(part: Element): (fresh: Element) => void {
  const left = part.querySelector(".scroll")?.scrollLeft ?? 0;
  return (fresh) => {
    const box = fresh.querySelector(".scroll");
    if (box !== null) box.scrollLeft = left;
  };
}

/** The address of the list that a form asks for; what is empty is left out. */
export function addressOf(form: HTMLFormElement): string {
  const given = [...new FormData(form)].filter((entry): entry is [string, string] => typeof entry[1] === "string" && entry[1].trim() !== "");
  const query = new URLSearchParams(given).toString();
  return query === "" ? "/" : `/?${query}`;
}
